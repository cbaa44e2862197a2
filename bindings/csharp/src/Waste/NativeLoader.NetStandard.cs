// SPDX-License-Identifier: Apache-2.0
//
// How one file becomes what DllImport("waste_csharp") means, in the netstandard2.0 build, which
// runs on many hosts. .NET Core 3 and later have a resolver, reached by reflection because the type
// is not in netstandard2.0. Mono maps the name to the path. Elsewhere (.NET Framework, Unity) the
// file is loaded beforehand, and the runtime then finds it by its name.
#if !NET8_0_OR_GREATER
using System;
using System.IO;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Text;
using Waste.Native;

namespace Waste
{
    internal static partial class NativeLoader
    {
        private static MethodInfo loadLibrary;
        private static bool resolverIsSet;
        private static volatile string resolvedPath;

        private static string AssemblyFolder()
        {
            string location = typeof(WasteNative).Assembly.Location;
            return string.IsNullOrEmpty(location) ? null : Path.GetDirectoryName(location);
        }

        /// <summary>Null if it is loaded, else why not.</summary>
        private static string TryLoad(string path)
        {
            Type loader = Type.GetType("System.Runtime.InteropServices.NativeLibrary, " +
                                       "System.Runtime.InteropServices");
            if (loader != null)
                return TryResolver(loader, path);
            string reason = PlatformLoader.Load(path);
            if (reason == null && Type.GetType("Mono.Runtime") != null)
                MapName(path);
            return reason;
        }

        private static string TryResolver(Type loader, string path)
        {
            loadLibrary = loader.GetMethod("Load", new[] { typeof(string) });
            try
            {
                Load(path);
            }
            catch (TargetInvocationException failed)
            {
                return failed.InnerException.Message;
            }
            resolvedPath = path;
            if (resolverIsSet)
                return null;
            MethodInfo set = loader.GetMethod("SetDllImportResolver");
            Type resolver = set.GetParameters()[1].ParameterType;
            MethodInfo own = typeof(NativeLoader).GetMethod(
                "Resolve", BindingFlags.NonPublic | BindingFlags.Static);
            try
            {
                set.Invoke(null, new object[] { typeof(WasteNative).Assembly,
                                                Delegate.CreateDelegate(resolver, own) });
            }
            catch (TargetInvocationException)
            {
                // The application has set a resolver for this assembly: that one decides.
            }
            resolverIsSet = true;
            return null;
        }

        private static IntPtr Load(string path)
        {
            return (IntPtr)loadLibrary.Invoke(null, new object[] { path });
        }

        // The signature of System.Runtime.InteropServices.DllImportResolver.
        private static IntPtr Resolve(string name, Assembly assembly, DllImportSearchPath? search)
        {
            return name == LibraryName && resolvedPath != null ? Load(resolvedPath) : IntPtr.Zero;
        }

        private static void MapName(string path)
        {
            try
            {
                mono_dllmap_insert(IntPtr.Zero, Terminated(LibraryName), null, Terminated(path),
                                   null);
            }
            catch (EntryPointNotFoundException)
            {
                // A Mono without the map (Unity's) finds the library that was loaded by its name.
            }
        }

        private static byte[] Terminated(string text)
        {
            return Encoding.UTF8.GetBytes(text + "\0");
        }

        [DllImport("__Internal")]
        private static extern void mono_dllmap_insert(IntPtr assembly, byte[] name, byte[] function,
                                                      byte[] targetName, byte[] targetFunction);
    }
}
#endif
