// SPDX-License-Identifier: Apache-2.0
//
// The errors of the library as one family: WasteException has the status and the library's own
// message, and the statuses that a program reacts to have a class of their own. Cancelling is not
// in the family: it is OperationCanceledException, as everywhere in .NET.
using System;
using System.Collections.Generic;

namespace Waste
{
    /// <summary>
    /// A call of the library failed. <see cref="Exception.Message"/> names the file, the record and
    /// the numbers, as the library wrote it.
    /// </summary>
    public class WasteException : Exception
    {
        /// <summary>An error with its status and message.</summary>
        public WasteException(WasteStatus status, string message) : base(message)
        {
            Status = status;
        }

        /// <summary>What kind of error it is.</summary>
        public WasteStatus Status { get; }
    }

    /// <summary>
    /// The file cannot be used: it is no container (Format), damaged (Corrupt), of a newer version
    /// (Version), or of a kind this build cannot run (Unsupported).
    /// </summary>
    public sealed class ModelFormatException : WasteException
    {
        /// <summary>An error with its status and message.</summary>
        public ModelFormatException(WasteStatus status, string message) : base(status, message) { }
    }

    /// <summary>The RAM budget does not suffice.</summary>
    public sealed class RamBudgetException : WasteException
    {
        /// <summary>An error with its message and the budget that would do.</summary>
        public RamBudgetException(string message, long neededBytes)
            : base(WasteStatus.RamBudget, message)
        {
            NeededBytes = neededBytes;
        }

        /// <summary>The smallest budget that would do, in bytes.</summary>
        public long NeededBytes { get; }
    }

    /// <summary>The text does not fit the session's context; the session is unchanged.</summary>
    public sealed class ContextFullException : WasteException
    {
        /// <summary>An error with its message.</summary>
        public ContextFullException(string message) : base(WasteStatus.ContextFull, message) { }
    }

    /// <summary>
    /// Another call on the session runs, or an answer of it lives; that one is not affected.
    /// </summary>
    public sealed class SessionBusyException : WasteException
    {
        /// <summary>An error with its message.</summary>
        public SessionBusyException(string message) : base(WasteStatus.Busy, message) { }
    }

    /// <summary>
    /// The native library was not found, could not be loaded, or is of another version than this
    /// assembly. The message has every path that was tried, with the reason.
    /// </summary>
    public sealed class WasteNativeLoadException : WasteException
    {
        /// <summary>An error with its message and the paths that were tried.</summary>
        public WasteNativeLoadException(string message, IReadOnlyList<string> triedPaths)
            : base(WasteStatus.Io, message)
        {
            TriedPaths = triedPaths;
        }

        /// <summary>Every path that was tried, in order.</summary>
        public IReadOnlyList<string> TriedPaths { get; }
    }
}
