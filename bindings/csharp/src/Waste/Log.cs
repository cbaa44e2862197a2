// SPDX-License-Identifier: Apache-2.0
//
// The lines that a model or a job has to say: what was left out, what was fallen back to.
using System.Collections.Generic;
using System.Text;
using Waste.Native;

namespace Waste
{
    internal static class Log
    {
        private const int LongestLineBytes = 4096;

        internal static IReadOnlyList<string> Read(NativeHandle handle)
        {
            var lines = new List<string>();
            var buffer = new byte[LongestLineBytes];
            byte[] error = NativeError.NewImage();
            long size;
            while ((size = NativeError.Check(
                        WasteNative.waste_log_next(handle, buffer, buffer.Length, error),
                        error)) > 0)
                lines.Add(Encoding.UTF8.GetString(buffer, 0, (int)size));
            return lines;
        }
    }
}
