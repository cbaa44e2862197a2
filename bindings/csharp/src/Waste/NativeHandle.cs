// SPDX-License-Identifier: Apache-2.0
//
// The owner of one native object. P/Invoke holds a SafeHandle for the length of each call, so
// neither Dispose on another thread nor the collector frees under a call; after Dispose a call
// throws ObjectDisposedException. The library's free may be called from any thread, the finalizer's
// included, in any order.
using System;
using System.Runtime.InteropServices;
using Waste.Native;

namespace Waste
{
    internal sealed class NativeHandle : SafeHandle
    {
        internal NativeHandle(IntPtr address) : base(IntPtr.Zero, true)
        {
            SetHandle(address);
        }

        public override bool IsInvalid
        {
            get { return handle == IntPtr.Zero; }
        }

        protected override bool ReleaseHandle()
        {
            WasteNative.waste_free_address(handle);
            return true;
        }

        /// <summary>Asks the native object to stop. Any thread; nothing happens once it is
        /// freed.</summary>
        internal void Cancel()
        {
            try
            {
                WasteNative.waste_cancel(this);
            }
            catch (ObjectDisposedException)
            {
                // Freed in the meantime: what it did has stopped.
            }
        }
    }
}
