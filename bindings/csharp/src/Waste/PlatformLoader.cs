// SPDX-License-Identifier: Apache-2.0
//
// The system's own way to load a library, for runtimes without NativeLibrary: LoadLibraryEx on
// Windows, dlopen elsewhere. dlopen is in libdl or, since glibc 2.34, on musl and on Apple's
// systems, in libc; whichever answers first is used.
#if !NET8_0_OR_GREATER
using System;
using System.ComponentModel;
using System.IO;
using System.Runtime.InteropServices;
using System.Text;

namespace Waste
{
    internal static class PlatformLoader
    {
        private const int Now = 2;
        private const int SearchBesideTheFile = 8;

        /// <summary>Null if the library is loaded, else why not.</summary>
        internal static string Load(string path)
        {
            if (RuntimeInformation.IsOSPlatform(OSPlatform.Windows))
                return LoadOnWindows(path);
            byte[] name = Encoding.UTF8.GetBytes(path + "\0");
            try
            {
                return OpenLibdl(name, Now) != IntPtr.Zero ? null : Text(ErrorLibdl());
            }
            catch (DllNotFoundException)
            {
                return OpenLibc(name, Now) != IntPtr.Zero ? null : Text(ErrorLibc());
            }
        }

        private static string LoadOnWindows(string path)
        {
            int flags = Path.IsPathRooted(path) ? SearchBesideTheFile : 0;
            return LoadLibraryEx(path, IntPtr.Zero, flags) != IntPtr.Zero
                ? null
                : new Win32Exception(Marshal.GetLastWin32Error()).Message;
        }

        private static string Text(IntPtr message)
        {
            return message == IntPtr.Zero ? "dlopen gave no reason"
                                          : Marshal.PtrToStringAnsi(message);
        }

        [DllImport("libdl.so.2", EntryPoint = "dlopen")]
        private static extern IntPtr OpenLibdl(byte[] path, int flags);

        [DllImport("libdl.so.2", EntryPoint = "dlerror")]
        private static extern IntPtr ErrorLibdl();

        [DllImport("libc", EntryPoint = "dlopen")]
        private static extern IntPtr OpenLibc(byte[] path, int flags);

        [DllImport("libc", EntryPoint = "dlerror")]
        private static extern IntPtr ErrorLibc();

        [DllImport("kernel32", EntryPoint = "LoadLibraryExW", CharSet = CharSet.Unicode,
                   SetLastError = true)]
        private static extern IntPtr LoadLibraryEx(string path, IntPtr reserved, int flags);
    }
}
#endif
