// SPDX-License-Identifier: Apache-2.0
//
// Finds and loads the one native file, once, before the first P/Invoke of every public factory:
// WASTE_LIBRARY (a file or a folder, and then nothing else), else the application's and this
// assembly's folder and their runtimes/<rid>/native, the folders that the .NET host names, and last
// the system's own search. What fails is collected, so that one exception tells every path and
// reason, and none is wrapped in a TypeInitializationException. No static constructor is relied on.
using System;
using System.Collections.Generic;
using System.IO;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using Waste.Native;

namespace Waste
{
    internal static partial class NativeLoader
    {
        private const string LibraryName = "waste_csharp";
        private const string Variable = "WASTE_LIBRARY";

        private static readonly object Gate = new object();
        private static volatile bool loaded;

        /// <summary>Loads the library unless it is loaded; throws WasteNativeLoadException. After
        /// a failure the next call tries again. Mono looks a P/Invoke up when it compiles the
        /// method that calls it and keeps what it found: so the callers of this do not call the
        /// library themselves, but a method that is not inlined.</summary>
        internal static void EnsureLoaded()
        {
            if (loaded)
                return;
            lock (Gate)
            {
                if (loaded)
                    return;
                var tried = new List<string>();
                string path = LoadFirst(tried);
                CheckAbi(path, tried);
                loaded = true;
            }
        }

        private static string LoadFirst(List<string> tried)
        {
            var reasons = new List<string>();
            foreach (string path in Candidates())
            {
                tried.Add(path);
                string reason = File.Exists(path) || !Path.IsPathRooted(path)
                    ? TryLoad(path)
                    : "no such file";
                if (reason == null)
                    return path;
                reasons.Add("  " + path + ": " + reason);
            }
            throw new WasteNativeLoadException(
                "The native library of Waste was not found. Set " + Variable +
                " to its file or folder, or put it beside the application. Tried:\n" +
                string.Join("\n", reasons), tried);
        }

        private static IEnumerable<string> Candidates()
        {
            string file = FileName();
            string chosen = Environment.GetEnvironmentVariable(Variable);
            if (!string.IsNullOrEmpty(chosen))
            {
                string full = Path.GetFullPath(chosen);
                yield return Directory.Exists(full) ? Path.Combine(full, file) : full;
                yield break;
            }
            var seen = new HashSet<string>();
            foreach (string folder in Folders())
            {
                if (!seen.Add(folder))
                    continue;
                yield return Path.Combine(folder, file);
                foreach (string rid in RuntimeIdentifiers())
                    yield return Path.Combine(folder, "runtimes", rid, "native", file);
            }
            foreach (string folder in HostFolders())
                if (seen.Add(folder))
                    yield return Path.Combine(folder, file);
            yield return file;
        }

        private static IEnumerable<string> Folders()
        {
            yield return TrimEnd(AppContext.BaseDirectory);
            string own = AssemblyFolder();
            if (!string.IsNullOrEmpty(own))
                yield return TrimEnd(own);
        }

        private static string TrimEnd(string folder)
        {
            string trimmed = folder.TrimEnd(Path.DirectorySeparatorChar);
            return trimmed.Length == 0 ? folder : trimmed;
        }

        /// <summary>Where the .NET host looks: the folders of packages among them.</summary>
        private static IEnumerable<string> HostFolders()
        {
            const string Key = "NATIVE_DLL_SEARCH_DIRECTORIES";
            var folders = AppDomain.CurrentDomain.GetData(Key) as string;
            if (folders == null)
                yield break;
            foreach (string folder in folders.Split(Path.PathSeparator))
                if (folder.Length != 0)
                    yield return TrimEnd(folder);
        }

        private static string FileName()
        {
            if (RuntimeInformation.IsOSPlatform(OSPlatform.Windows))
                return LibraryName + ".dll";
            return "lib" + LibraryName +
                (RuntimeInformation.IsOSPlatform(OSPlatform.OSX) ? ".dylib" : ".so");
        }

        private static IEnumerable<string> RuntimeIdentifiers()
        {
            string cpu = RuntimeInformation.ProcessArchitecture.ToString().ToLowerInvariant();
            if (RuntimeInformation.IsOSPlatform(OSPlatform.Windows))
                return new[] { "win-" + cpu };
            if (RuntimeInformation.IsOSPlatform(OSPlatform.OSX))
                return new[] { "osx-" + cpu };
            return new[] { "linux-" + cpu, "linux-musl-" + cpu, "android-" + cpu };
        }

        /// <summary>This assembly, SWIG's wrapper and the library must be of one header.</summary>
        private static void CheckAbi(string path, List<string> tried)
        {
            string problem;
            try
            {
                problem = AbiProblem();
            }
            catch (EntryPointNotFoundException missing)
            {
                problem = "it lacks a function: " + missing.Message;
            }
            catch (DllNotFoundException unresolved)
            {
                problem = "it was loaded, and the runtime does not find it: " + unresolved.Message;
            }
            if (problem != null)
                throw new WasteNativeLoadException(
                    path + " does not fit this version of Waste.dll: " + problem, tried);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static string AbiProblem()
        {
            int number = WasteNative.waste_abi_version();
            if (number != WasteNative.WASTE_ABI_VERSION)
                return "its ABI number is " + number + ", " + WasteNative.WASTE_ABI_VERSION +
                    " is needed";
            var wrapper = new int[32];
            var library = new int[32];
            long wrapperCount = WasteNative.waste_wrapper_sizes(wrapper, wrapper.Length);
            long libraryCount = WasteNative.waste_abi_sizes(library, library.Length);
            if (wrapperCount != libraryCount)
                return "it has " + libraryCount + " structs, " + wrapperCount + " are needed";
            for (int i = 0; i < wrapperCount; i++)
                if (wrapper[i] != library[i])
                    return "struct " + i + " has " + library[i] + " bytes, " + wrapper[i] +
                        " are needed";
            if (library[0] != NativeError.ImageBytes)
                return "an error has " + library[0] + " bytes, " + NativeError.ImageBytes +
                    " are needed";
            return null;
        }
    }
}
