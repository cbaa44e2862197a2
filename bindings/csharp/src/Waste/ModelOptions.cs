// SPDX-License-Identifier: Apache-2.0
//
// What may be asked of an open, a session, a conversion and a synthesis. Zero, the value of a new
// object, means the default everywhere. Options are copied when they are used; changing them later
// changes nothing.
using System;
using Waste.Native;

namespace Waste
{
    /// <summary>How a model is opened. Zero in a field means its default.</summary>
    public sealed class ModelOptions
    {
        /// <summary>RAM for everything of this model, in bytes. 0: automatic, as
        /// <see cref="WasteModel.Plan"/> tells.</summary>
        public long RamBudget { get; set; }

        /// <summary>Positions that a session may hold. 0: the model's maximum, at most 8192.
        /// </summary>
        public long ContextTokens { get; set; }

        /// <summary>Threads that compute. 0: one for each CPU of <see cref="CpuList"/>, or without
        /// one for each core granted to this process that is not slow.</summary>
        public int Threads { get; set; }

        /// <summary>How experts are read.</summary>
        public IoMode Io { get; set; }

        /// <summary>Check the checksum of every record that is read, not of headers only.</summary>
        public bool VerifyRecords { get; set; }

        /// <summary>Do not read experts that the next layer is likely to need.</summary>
        public bool NoLookahead { get; set; }

        /// <summary>How exactly the engine computes.</summary>
        public ArithmeticMode Arithmetic { get; set; }

        /// <summary>The instructions to use; one that the machine lacks is Unsupported.</summary>
        public InstructionSet InstructionSet { get; set; }

        /// <summary>Experts read at once, at most 32. 0: 2, 4 or 8, as measured at open.
        /// </summary>
        public int ReadLanes { get; set; }

        /// <summary>The CPUs to compute on, as in "0-3,8"; Linux only. A thread that waits for
        /// tokens is one of those that compute, and is put back where it was after each step. null
        /// or empty: where the system puts them, but on no slow CPU unless <see cref="Threads"/>
        /// are asked for.</summary>
        public string CpuList { get; set; }

        internal static waste_open_options ToNative(ModelOptions options)
        {
            Utf8 cpus = Utf8.From(options?.CpuList, nameof(CpuList));
            var native = new waste_open_options();
            if (options == null)
                return native;
            native.budget_bytes = options.RamBudget;
            native.context = options.ContextTokens;
            native.threads = options.Threads;
            native.io = (int)options.Io;
            native.verify = options.VerifyRecords ? 1 : 0;
            native.lookahead = options.NoLookahead ? 2 : 0;
            native.arithmetic = (int)options.Arithmetic;
            native.isa = (int)options.InstructionSet;
            native.read_lanes = options.ReadLanes;
            if (cpus.Count > 0 && native.set_cpu_list(cpus.Bytes, cpus.Count) != 0)
            {
                native.Dispose();
                throw new OutOfMemoryException("the list of CPUs");
            }
            return native;
        }
    }

    /// <summary>How a session begins.</summary>
    public sealed class SessionOptions
    {
        /// <summary>The system message of a chat; null for none. Not for raw sessions.</summary>
        public string System { get; set; }

        /// <summary>The model may think before it answers, where it can.</summary>
        public bool Thinking { get; set; }

        /// <summary>Positions that the session may hold. 0: those of the open.</summary>
        public long ContextTokens { get; set; }

        internal static waste_session_options ToNative(SessionOptions options)
        {
            var native = new waste_session_options();
            if (options == null)
                return native;
            native.thinking = options.Thinking ? 1 : 0;
            native.context = options.ContextTokens;
            return native;
        }
    }

    /// <summary>How a Hugging Face folder is converted. Zero in a field means its default.
    /// </summary>
    public sealed class ConvertOptions
    {
        /// <summary>Threads that compute. 0: the cores granted to this process.</summary>
        public int Threads { get; set; }

        /// <summary>Codebooks in a row for experts: 2, 3, 4 or 6. 0: 3.</summary>
        public int Stages { get; set; }

        /// <summary>Bits of a codebook index: 8, or 6 for four stages of 64 entries. 0: 8.
        /// </summary>
        public int IndexBits { get; set; }

        /// <summary>Bits of trunk matrices: 3, 4 or 8. 0: 4.</summary>
        public int TrunkBits { get; set; }

        /// <summary>Search width of the expert encoder. 0: 16; 1 is greedy.</summary>
        public int ExpertBeam { get; set; }

        /// <summary>Trunk tensors with fewer elements stay 32-bit floats. 0: 65536.</summary>
        public long QuantiseFrom { get; set; }

        internal static waste_convert_options ToNative(ConvertOptions options)
        {
            var native = new waste_convert_options();
            if (options == null)
                return native;
            native.threads = options.Threads;
            native.stages = options.Stages;
            native.index_bits = options.IndexBits;
            native.trunk_bits = options.TrunkBits;
            native.expert_beam = options.ExpertBeam;
            native.quantise_from = options.QuantiseFrom;
            return native;
        }
    }

    /// <summary>What a model of random weights has. Zero in a field means its default.</summary>
    public sealed class SynthesisOptions
    {
        /// <summary>The first so many layers, at true width. 0: all.</summary>
        public int Layers { get; set; }

        /// <summary>Experts of each layer. 0: all.</summary>
        public int Experts { get; set; }

        /// <summary>The same seed gives the same bytes. 0 is a seed like any other.</summary>
        public long Seed { get; set; }

        internal static waste_synthesis_options ToNative(SynthesisOptions options)
        {
            var native = new waste_synthesis_options();
            if (options == null)
                return native;
            native.layers = options.Layers;
            native.experts = options.Experts;
            native.seed = options.Seed;
            return native;
        }
    }
}
