// SPDX-License-Identifier: Apache-2.0
//
// What the net8.0 build has beyond netstandard2.0: the DllImport resolver without reflection, so
// that trimming and NativeAOT see it, and overloads with spans.
#if NET8_0_OR_GREATER
using System;
using System.Reflection;
using System.Runtime.InteropServices;
using Waste.Native;

namespace Waste
{
    internal static partial class NativeLoader
    {
        private static bool resolverIsSet;
        private static IntPtr library;

        // An assembly inside a single file has no folder: AppContext.BaseDirectory stands for it.
        private static string AssemblyFolder()
        {
            return null;
        }

        /// <summary>Null if it is loaded, else why not.</summary>
        private static string TryLoad(string path)
        {
            try
            {
                library = NativeLibrary.Load(path);
            }
            catch (Exception failed) when (failed is DllNotFoundException ||
                                           failed is BadImageFormatException)
            {
                return failed.Message;
            }
            if (!resolverIsSet)
                SetResolver();
            resolverIsSet = true;
            return null;
        }

        private static void SetResolver()
        {
            try
            {
                NativeLibrary.SetDllImportResolver(typeof(WasteNative).Assembly, Resolve);
            }
            catch (InvalidOperationException)
            {
                // The application has set a resolver for this assembly: that one decides.
            }
        }

        private static IntPtr Resolve(string name, Assembly assembly, DllImportSearchPath? search)
        {
            return name == LibraryName ? library : IntPtr.Zero;
        }
    }

    public partial class Session
    {
        /// <summary>Copies the logits that <see cref="Eval"/> kept, row by row.</summary>
        /// <exception cref="ArgumentException">The destination is too small.</exception>
        public void GetLogits(Span<float> destination)
        {
            KeptLogits().CopyTo(destination);
        }
    }
}
#endif
