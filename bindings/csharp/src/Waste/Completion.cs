// SPDX-License-Identifier: Apache-2.0
//
// What an answer is made of: the pieces as they come, and all of it once it has ended.
using System;
using System.Collections.Generic;

namespace Waste
{
    /// <summary>Some text of an answer: whole characters, at least one token's worth mostly.
    /// </summary>
    public readonly struct Piece
    {
        internal Piece(string text, Channel channel, int tokenId, long firstIndex, int tokenCount,
                       double? logProb, long position)
        {
            Text = text;
            Channel = channel;
            TokenId = tokenId;
            FirstIndex = firstIndex;
            TokenCount = tokenCount;
            LogProb = logProb;
            Position = position;
        }

        /// <summary>The text.</summary>
        public string Text { get; }
        /// <summary>The part of the answer that it belongs to.</summary>
        public Channel Channel { get; }
        /// <summary>The last token that this piece consumed.</summary>
        public int TokenId { get; }
        /// <summary>Index in the answer of the first token it consumed.</summary>
        public long FirstIndex { get; }
        /// <summary>Tokens it consumed: several for an emoji, none for the rest of a text.
        /// </summary>
        public int TokenCount { get; }
        /// <summary>Natural logarithm of the token's probability, before penalties; null unless
        /// asked for.</summary>
        public double? LogProb { get; }
        /// <summary>Tokens that the session holds after this piece.</summary>
        public long Position { get; }

        /// <summary>The text.</summary>
        public override string ToString()
        {
            return Text;
        }
    }

    /// <summary>Tokens that an answer cost.</summary>
    public readonly struct Usage
    {
        internal Usage(long promptTokens, long generatedTokens)
        {
            PromptTokens = promptTokens;
            GeneratedTokens = generatedTokens;
        }

        /// <summary>Tokens of the prompt that ran.</summary>
        public long PromptTokens { get; }
        /// <summary>Tokens that were generated.</summary>
        public long GeneratedTokens { get; }
    }

    /// <summary>Time that an answer took.</summary>
    public readonly struct Timings
    {
        internal Timings(TimeSpan prefill, TimeSpan decode)
        {
            Prefill = prefill;
            Decode = decode;
        }

        /// <summary>Time spent on the prompt.</summary>
        public TimeSpan Prefill { get; }
        /// <summary>Time spent on generated tokens.</summary>
        public TimeSpan Decode { get; }
    }

    /// <summary>An answer that has ended. Immutable.</summary>
    public sealed class Completion
    {
        internal Completion(string text, string thinking, string tool, int[] tokens,
                            double[] logProbs, FinishReason finishReason, WasteStats stats)
        {
            Text = text;
            Thinking = thinking;
            Tool = tool;
            Tokens = tokens;
            LogProbs = logProbs;
            FinishReason = finishReason;
            Stats = stats;
            Usage = new Usage(stats.PromptTokens, stats.GeneratedTokens);
            Timings = new Timings(stats.Prefill, stats.Decode);
        }

        /// <summary>What the model said.</summary>
        public string Text { get; }
        /// <summary>What it thought; empty if nothing.</summary>
        public string Thinking { get; }
        /// <summary>Its call of a tool, as text; empty if none.</summary>
        public string Tool { get; }
        /// <summary>Every token of the answer, those whose text was held back included.</summary>
        public IReadOnlyList<int> Tokens { get; }
        /// <summary>Natural logarithms of the tokens' probabilities; null unless asked for.
        /// </summary>
        public IReadOnlyList<double> LogProbs { get; }
        /// <summary>Why it ended.</summary>
        public FinishReason FinishReason { get; }
        /// <summary>Tokens it cost.</summary>
        public Usage Usage { get; }
        /// <summary>Time it took.</summary>
        public Timings Timings { get; }
        /// <summary>All counters of the answer.</summary>
        public WasteStats Stats { get; }

        /// <summary>The text.</summary>
        public override string ToString()
        {
            return Text;
        }
    }
}
