// SPDX-License-Identifier: Apache-2.0
//
// Counters of a model, a session or an answer, and how far long work is: plain values.
using System;
using Waste.Native;

namespace Waste
{
    /// <summary>
    /// Counters since the object was made. A session's and an answer's count their own work.
    /// Immutable; take a new one for newer numbers.
    /// </summary>
    public sealed class WasteStats
    {
        private const int TicksPerMicrosecond = 10;

        internal WasteStats(waste_stats native)
        {
            FinishReason = (FinishReason)native.finish_reason;
            Position = native.position;
            ContextTokens = native.context;
            PromptTokens = native.prompt_tokens;
            GeneratedTokens = native.generated_tokens;
            Prefill = Microseconds(native.prefill_us);
            Decode = Microseconds(native.decode_us);
            ExpertsHit = native.experts_hit;
            ExpertsMissed = native.experts_missed;
            BytesRead = native.bytes_read;
            ReadTime = Microseconds(native.read_us);
            MemoryBytes = native.memory_bytes;
            PeakRssBytes = native.peak_rss_bytes;
            ExpertsForeseen = native.experts_foreseen;
            SpeculativeReads = native.speculative_reads;
            SpeculativeBytes = native.speculative_bytes;
            ReadStalls = native.read_stalls;
        }

        /// <summary>Answer: why it ended.</summary>
        public FinishReason FinishReason { get; }
        /// <summary>Session: tokens held; answer: those of its session.</summary>
        public long Position { get; }
        /// <summary>Session: most that it can hold.</summary>
        public long ContextTokens { get; }
        /// <summary>Tokens of prompts that ran.</summary>
        public long PromptTokens { get; }
        /// <summary>Tokens that were generated.</summary>
        public long GeneratedTokens { get; }
        /// <summary>Time spent on prompts.</summary>
        public TimeSpan Prefill { get; }
        /// <summary>Time spent on generated tokens.</summary>
        public TimeSpan Decode { get; }
        /// <summary>Uses of an expert that were served from memory.</summary>
        public long ExpertsHit { get; }
        /// <summary>Uses of an expert that were read from disk.</summary>
        public long ExpertsMissed { get; }
        /// <summary>Bytes of experts that were read, those read ahead included.</summary>
        public long BytesRead { get; }
        /// <summary>Time spent waiting for those reads.</summary>
        public TimeSpan ReadTime { get; }
        /// <summary>Model: charged to the budget now; session: its own share. Bytes.</summary>
        public long MemoryBytes { get; }
        /// <summary>Model: peak of the whole process, as the system tells. Bytes.</summary>
        public long PeakRssBytes { get; }
        /// <summary>Of those missed, the uses whose read lookahead had begun, or ended.</summary>
        public long ExpertsForeseen { get; }
        /// <summary>Reads of lookahead that ended, needed in the end or not.</summary>
        public long SpeculativeReads { get; }
        /// <summary>Bytes of those reads; part of <see cref="BytesRead"/>.</summary>
        public long SpeculativeBytes { get; }
        /// <summary>Times that a step had nothing to do but wait for a read.</summary>
        public long ReadStalls { get; }

        private static TimeSpan Microseconds(long count)
        {
            return new TimeSpan(count * TicksPerMicrosecond);
        }
    }

    /// <summary>How far an open, a verification or a conversion is.</summary>
    public readonly struct LoadProgress
    {
        internal LoadProgress(waste_progress native)
        {
            Done = native.done;
            Total = native.total;
            IsFinished = native.finished != 0;
        }

        /// <summary>Work done: bytes for open and verify, tensors for convert.</summary>
        public long Done { get; }
        /// <summary>All of the work in the same unit; 0 until it is known.</summary>
        public long Total { get; }
        /// <summary>The work has ended, well or not.</summary>
        public bool IsFinished { get; }
        /// <summary>From 0 to 1.</summary>
        public double Fraction
        {
            get { return Total > 0 ? Math.Min(1.0, (double)Done / Total) : IsFinished ? 1.0 : 0.0; }
        }
    }
}
