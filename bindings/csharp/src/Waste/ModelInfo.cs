// SPDX-License-Identifier: Apache-2.0
//
// What a model is, and what opening one would cost: plain values, read once.
using Waste.Native;

namespace Waste
{
    /// <summary>What a model is. Immutable.</summary>
    public sealed class ModelInfo
    {
        internal ModelInfo(string architecture, waste_info native)
        {
            Architecture = architecture;
            VocabSize = native.vocab_size;
            LayerCount = native.layer_count;
            HiddenSize = native.hidden_size;
            ExpertCount = native.expert_count;
            ExpertsPerToken = native.experts_per_token;
            ContextTokens = native.context;
            ExpertBytes = native.expert_bytes;
            ContainerBytes = native.container_bytes;
            BudgetBytes = native.budget_bytes;
            CacheSlots = native.cache_slots;
            Threads = native.threads;
            InstructionSet = (InstructionSet)native.isa;
            DirectIo = native.direct_io != 0;
            Thinking = native.thinking != 0;
            EosToken = native.eos_token;
            HasChat = native.has_chat != 0;
            TokenTrunkBytes = native.token_trunk_bytes;
            TokenFlops = native.token_flops;
            ReadLanes = native.read_lanes;
        }

        /// <summary>The manifest's name of the architecture, e.g. "kimi-k3".</summary>
        public string Architecture { get; }
        /// <summary>Token ids are below this.</summary>
        public int VocabSize { get; }
        /// <summary>Layers.</summary>
        public int LayerCount { get; }
        /// <summary>Numbers of one activation.</summary>
        public int HiddenSize { get; }
        /// <summary>Experts of a layer.</summary>
        public int ExpertCount { get; }
        /// <summary>Experts that one token uses in a layer.</summary>
        public int ExpertsPerToken { get; }
        /// <summary>Positions of a session unless it asks for fewer.</summary>
        public long ContextTokens { get; }
        /// <summary>One expert's record on disk, in bytes.</summary>
        public long ExpertBytes { get; }
        /// <summary>All files of the model that are read, in bytes.</summary>
        public long ContainerBytes { get; }
        /// <summary>The RAM budget, in bytes.</summary>
        public long BudgetBytes { get; }
        /// <summary>Experts that fit the memory granted.</summary>
        public long CacheSlots { get; }
        /// <summary>Threads that compute.</summary>
        public int Threads { get; }
        /// <summary>The instructions in use.</summary>
        public InstructionSet InstructionSet { get; }
        /// <summary>Direct reads were obtained, as probed by one real read.</summary>
        public bool DirectIo { get; }
        /// <summary>The model's chat format has a thinking channel.</summary>
        public bool Thinking { get; }
        /// <summary>The token that ends a turn, -1 if none.</summary>
        public int EosToken { get; }
        /// <summary>The container holds a chat format.</summary>
        public bool HasChat { get; }
        /// <summary>Bytes of weights that every token reads from memory.</summary>
        public long TokenTrunkBytes { get; }
        /// <summary>Floating-point operations of a token's matrices, experts included: 2 a weight.
        /// </summary>
        public long TokenFlops { get; }
        /// <summary>Experts read at once; 0 without experts on disk.</summary>
        public int ReadLanes { get; }
    }

    /// <summary>
    /// What opening a model would cost, in bytes. Floor = trunk + state + scratch + staging;
    /// budget = floor + cache + what longer steps of prefill take. Immutable.
    /// </summary>
    public sealed class MemoryPlan
    {
        internal MemoryPlan(waste_memory_plan native)
        {
            Fits = native.fits != 0;
            FloorBytes = native.floor_bytes;
            RecommendedBytes = native.recommended_bytes;
            TrunkBytes = native.trunk_bytes;
            StateBytes = native.state_bytes;
            ScratchBytes = native.scratch_bytes;
            StagingBytes = native.staging_bytes;
            CacheBytes = native.cache_bytes;
            UsableBytes = native.usable_bytes;
            BudgetBytes = native.budget_bytes;
            ReservedBytes = native.reserved_bytes;
        }

        /// <summary>The budget (asked for, or automatic) is at least the floor.</summary>
        public bool Fits { get; }
        /// <summary>The smallest budget that opens this model with one session.</summary>
        public long FloorBytes { get; }
        /// <summary>Floor and two working sets of experts.</summary>
        public long RecommendedBytes { get; }
        /// <summary>Shared weights and codebooks.</summary>
        public long TrunkBytes { get; }
        /// <summary>One session of the context asked for.</summary>
        public long StateBytes { get; }
        /// <summary>Activations of a step, logits.</summary>
        public long ScratchBytes { get; }
        /// <summary>The experts that one step of one layer needs, and those read ahead.</summary>
        public long StagingBytes { get; }
        /// <summary>Experts kept beyond that.</summary>
        public long CacheBytes { get; }
        /// <summary>RAM that this process may use: cgroup limits and
        /// <see cref="ReservedBytes"/> counted.</summary>
        public long UsableBytes { get; }
        /// <summary>Asked for, or automatic.</summary>
        public long BudgetBytes { get; }
        /// <summary>Granted to other open models on this machine, and not used yet.</summary>
        public long ReservedBytes { get; }
    }
}
