// SPDX-License-Identifier: Apache-2.0
//
// Text crosses the boundary as UTF-8 bytes and their count. A string that is no text (half of a
// surrogate pair) is refused instead of being changed silently.
using System;
using System.Text;

namespace Waste
{
    /// <summary>UTF-8 bytes with their count; the array is never empty, so that its address is
    /// never NULL, which would mean "no text".</summary>
    internal readonly struct Utf8
    {
        private static readonly UTF8Encoding Strict = new UTF8Encoding(false, true);

        internal readonly byte[] Bytes;
        internal readonly long Count;

        private Utf8(byte[] bytes, long count)
        {
            Bytes = bytes;
            Count = count;
        }

        /// <summary>The bytes of a text; null stays null, for calls that take no text.
        /// </summary>
        internal static Utf8 From(string text, string name)
        {
            if (text == null)
                return new Utf8(null, 0);
            try
            {
                byte[] bytes = Strict.GetBytes(text);
                return new Utf8(bytes.Length == 0 ? new byte[1] : bytes, bytes.Length);
            }
            catch (EncoderFallbackException broken)
            {
                throw new WasteException(
                    WasteStatus.Argument,
                    name + ": half of a surrogate pair at index " + broken.Index +
                    ", which is no text");
            }
        }

        internal static Utf8 Required(string text, string name)
        {
            if (text == null)
                throw new ArgumentNullException(name);
            return From(text, name);
        }

        /// <summary>Asks for a text with a buffer, and again if that was too small.</summary>
        internal static string Read(Func<byte[], long> ask, int firstCapacity)
        {
            byte[] buffer = new byte[firstCapacity];
            long size = ask(buffer);
            if (size > buffer.Length)
            {
                buffer = new byte[size];
                size = Math.Min(ask(buffer), size);
            }
            return Encoding.UTF8.GetString(buffer, 0, (int)size);
        }
    }
}
