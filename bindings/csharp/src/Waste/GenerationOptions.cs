// SPDX-License-Identifier: Apache-2.0
//
// What may be asked of one answer. Zero, the value of a new object, means the default everywhere.
// The options are copied when the answer is asked for.
using System.Collections.Generic;
using Waste.Native;

namespace Waste
{
    /// <summary>How one answer is made. Zero in a field means its default.</summary>
    public sealed class GenerationOptions
    {
        /// <summary>Tokens at most. 0: until the turn ends or the context is full.</summary>
        public int MaxTokens { get; set; }

        /// <summary>0: greedy, the likeliest token each time.</summary>
        public double Temperature { get; set; }

        /// <summary>Keep the k likeliest tokens. 0: all.</summary>
        public int TopK { get; set; }

        /// <summary>Keep the smallest set of tokens of this probability. 0: all.</summary>
        public double TopP { get; set; }

        /// <summary>Drop tokens below this share of the likeliest. 0: none.</summary>
        public double MinP { get; set; }

        /// <summary>Divides (or multiplies) the logits of recent tokens. 0: 1.</summary>
        public double RepeatPenalty { get; set; }

        /// <summary>Subtracted once from a token that occurred recently.</summary>
        public double PresencePenalty { get; set; }

        /// <summary>Subtracted for each recent occurrence.</summary>
        public double FrequencyPenalty { get; set; }

        /// <summary>Tokens that count as recent. 0: 64.</summary>
        public int PenaltyWindow { get; set; }

        /// <summary>Same seed, same text. 0 is a seed like any other.</summary>
        public long Seed { get; set; }

        /// <summary>Keep the log-probabilities of the tokens.</summary>
        public bool LogProbs { get; set; }

        /// <summary>The prompt is plain text to continue, not a user's message. A raw session's
        /// prompts are that always.</summary>
        public bool Raw { get; set; }

        /// <summary>Special tokens come out as their text too.</summary>
        public bool MarkupOut { get; set; }

        /// <summary>Text that ends the answer and is not part of it.</summary>
        public IList<string> Stop { get; } = new List<string>();

        /// <summary>Tokens that end the answer and are not part of it.</summary>
        public IList<int> StopTokens { get; } = new List<int>();

        /// <summary>A number added to a token's logit; double.NegativeInfinity forbids it.
        /// </summary>
        public IDictionary<int, double> LogitBias { get; } = new Dictionary<int, double>();

        internal GenerationOptions Copy()
        {
            var copy = new GenerationOptions
            {
                MaxTokens = MaxTokens,
                Temperature = Temperature,
                TopK = TopK,
                TopP = TopP,
                MinP = MinP,
                RepeatPenalty = RepeatPenalty,
                PresencePenalty = PresencePenalty,
                FrequencyPenalty = FrequencyPenalty,
                PenaltyWindow = PenaltyWindow,
                Seed = Seed,
                LogProbs = LogProbs,
                Raw = Raw,
                MarkupOut = MarkupOut,
            };
            foreach (string stop in Stop)
                copy.Stop.Add(stop);
            foreach (int token in StopTokens)
                copy.StopTokens.Add(token);
            foreach (KeyValuePair<int, double> bias in LogitBias)
                copy.LogitBias[bias.Key] = bias.Value;
            return copy;
        }

        internal waste_generation_options ToNative(bool raw)
        {
            var native = new waste_generation_options();
            native.max_tokens = MaxTokens;
            native.temperature = Temperature;
            native.top_k = TopK;
            native.top_p = TopP;
            native.min_p = MinP;
            native.repeat_penalty = RepeatPenalty;
            native.presence_penalty = PresencePenalty;
            native.frequency_penalty = FrequencyPenalty;
            native.penalty_window = PenaltyWindow;
            native.seed = Seed;
            native.logprobs = LogProbs ? 1 : 0;
            native.raw = raw ? 1 : 0;
            native.markup_out = MarkupOut ? 1 : 0;
            return native;
        }
    }
}
