// SPDX-License-Identifier: Apache-2.0
//
// The image of waste_error that crosses the boundary: 520 bytes with the code at 4, the bytes
// needed at 8 and the message at 16 (UTF-8 with a NUL). Turns a status into the exception that
// tells it.
using System;
using System.Text;
using System.Threading;
using Waste.Native;

namespace Waste
{
    internal static class NativeError
    {
        internal const int ImageBytes = 520;
        private const int NeededBytesOffset = 8;
        private const int MessageOffset = 16;

        internal static byte[] NewImage()
        {
            return new byte[ImageBytes];
        }

        /// <summary>Throws what a negative status means; returns any other.</summary>
        internal static long Check(long status, byte[] image)
        {
            if (status < 0)
                throw From(status, image, CancellationToken.None);
            return status;
        }

        /// <summary>The exception for a status; a cancel carries the caller's token if it was
        /// that token which cancelled.</summary>
        internal static Exception From(long status, byte[] image, CancellationToken token)
        {
            string message = Message(image);
            switch (status)
            {
                case WasteNative.WASTE_ERR_CANCELLED:
                    return Cancelled(message, token);
                case WasteNative.WASTE_ERR_FORMAT:
                case WasteNative.WASTE_ERR_CORRUPT:
                case WasteNative.WASTE_ERR_UNSUPPORTED:
                case WasteNative.WASTE_ERR_VERSION:
                    return new ModelFormatException((WasteStatus)status, message);
                case WasteNative.WASTE_ERR_RAM_BUDGET:
                    return new RamBudgetException(message,
                                                  BitConverter.ToInt64(image, NeededBytesOffset));
                case WasteNative.WASTE_ERR_CONTEXT_FULL:
                    return new ContextFullException(message);
                case WasteNative.WASTE_ERR_BUSY:
                    return new SessionBusyException(message);
                default:
                    return new WasteException((WasteStatus)status, message);
            }
        }

        internal static OperationCanceledException Cancelled(string message,
                                                             CancellationToken token)
        {
            return new OperationCanceledException(
                message, token.IsCancellationRequested ? token : CancellationToken.None);
        }

        private static string Message(byte[] image)
        {
            int end = Array.IndexOf(image, (byte)0, MessageOffset);
            if (end < 0)
                end = image.Length;
            return Encoding.UTF8.GetString(image, MessageOffset, end - MessageOffset);
        }
    }
}
