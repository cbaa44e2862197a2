// SPDX-License-Identifier: Apache-2.0
//
// Text to token ids and back, with the model's vocabulary.
using System;
using System.Text;
using Waste.Native;

namespace Waste
{
    /// <summary>The tokenizer of a model. Members may be called from any number of threads.
    /// </summary>
    public sealed class Tokenizer
    {
        private readonly WasteModel model;

        internal Tokenizer(WasteModel model)
        {
            this.model = model;
        }

        /// <summary>Plain text to token ids; special tokens in it are text.</summary>
        /// <exception cref="WasteException">The text is half of a surrogate pair (Argument).
        /// </exception>
        public int[] Encode(string text)
        {
            return Encode(text, false);
        }

        /// <summary>Text in which special tokens ("&lt;|open|&gt;") mean themselves. Never for
        /// text of a user.</summary>
        /// <exception cref="WasteException">The text is half of a surrogate pair (Argument).
        /// </exception>
        public int[] EncodeMarkup(string text)
        {
            return Encode(text, true);
        }

        /// <summary>The text of tokens, special ones as their text. Bytes that are no character
        /// become U+FFFD; <see cref="DecodeBytes"/> gives them raw.</summary>
        /// <exception cref="WasteException">An id is no token (Argument).</exception>
        public string Decode(int[] tokens)
        {
            return Encoding.UTF8.GetString(DecodeBytes(tokens));
        }

        /// <summary>The raw bytes of tokens, special ones as their text; may be no whole UTF-8.
        /// </summary>
        /// <exception cref="WasteException">An id is no token (Argument).</exception>
        public byte[] DecodeBytes(int[] tokens)
        {
            if (tokens == null)
                throw new ArgumentNullException(nameof(tokens));
            byte[] error = NativeError.NewImage();
            using (model.Enter())
            {
                var bytes = new byte[8 * tokens.Length + 16];
                long size;
                while ((size = NativeError.Check(
                            WasteNative.waste_detokenize(model.Handle, tokens, tokens.Length, bytes,
                                                         bytes.Length, error),
                            error)) > bytes.Length)
                    bytes = new byte[size];
                Array.Resize(ref bytes, (int)size);
                return bytes;
            }
        }

        private int[] Encode(string text, bool markup)
        {
            Utf8 bytes = Utf8.Required(text, nameof(text));
            using (model.Enter())
            {
                var tokens = new int[bytes.Count + 1];
                long count;
                while ((count = Encode(bytes, markup, tokens)) > tokens.Length)
                    tokens = new int[count];
                Array.Resize(ref tokens, (int)count);
                return tokens;
            }
        }

        private long Encode(Utf8 text, bool markup, int[] tokens)
        {
            byte[] error = NativeError.NewImage();
            long count = markup
                ? WasteNative.waste_tokenize_markup(model.Handle, text.Bytes, text.Count, tokens,
                                                    tokens.Length, error)
                : WasteNative.waste_tokenize(model.Handle, text.Bytes, text.Count, tokens,
                                             tokens.Length, error);
            return NativeError.Check(count, error);
        }
    }
}
