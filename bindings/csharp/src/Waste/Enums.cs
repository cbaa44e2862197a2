// SPDX-License-Identifier: Apache-2.0
//
// The choices and answers of the library that are one of a few names. Values are those of
// waste/waste.h, and a test compares them with the generated constants.
namespace Waste
{
    /// <summary>What a call ended with. Values are never reused.</summary>
    public enum WasteStatus
    {
        /// <summary>It went well.</summary>
        Ok = 0,
        /// <summary>The system refused an open, a read or a write.</summary>
        Io = -1,
        /// <summary>This is not a file that the library understands.</summary>
        Format = -2,
        /// <summary>It is one, and it is damaged: copy or convert it again.</summary>
        Corrupt = -3,
        /// <summary>It is sound, and this build cannot run it.</summary>
        Unsupported = -4,
        /// <summary>The caller asked for something that cannot be.</summary>
        Argument = -5,
        /// <summary>The budget is below the floor, or another session does not fit.</summary>
        RamBudget = -6,
        /// <summary>The system gave no memory or thread.</summary>
        NoMemory = -7,
        /// <summary>The text does not fit the session's context.</summary>
        ContextFull = -8,
        /// <summary>Another call on this session runs, or an answer of it lives.</summary>
        Busy = -9,
        /// <summary>The work was cancelled. Thrown as OperationCanceledException.</summary>
        Cancelled = -10,
        /// <summary>The file was written by a newer version.</summary>
        Version = -11,
        /// <summary>A bug of the library: please report the message.</summary>
        Internal = -12,
    }

    /// <summary>Who says a message of a conversation.</summary>
    public enum Role
    {
        /// <summary>Instructions to the model.</summary>
        System = 0,
        /// <summary>The person.</summary>
        User = 1,
        /// <summary>The model.</summary>
        Assistant = 2,
    }

    /// <summary>Which part of an answer a piece belongs to.</summary>
    public enum Channel
    {
        /// <summary>What the model says.</summary>
        Response = 0,
        /// <summary>What it thinks before it says it.</summary>
        Thinking = 1,
        /// <summary>A call of a tool.</summary>
        Tool = 2,
    }

    /// <summary>Why an answer ended.</summary>
    public enum FinishReason
    {
        /// <summary>It has not ended, was closed by its reader, or failed.</summary>
        None = 0,
        /// <summary>The model ended its turn, or a stop string or token came.</summary>
        Stop = 1,
        /// <summary>MaxTokens or the context is reached.</summary>
        Length = 2,
        /// <summary>It was cancelled.</summary>
        Cancelled = 3,
    }

    /// <summary>How experts are read from the drive.</summary>
    public enum IoMode
    {
        /// <summary>Direct where the drive allows it.</summary>
        Auto = 0,
        /// <summary>Past the system's page cache.</summary>
        Direct = 1,
        /// <summary>Through the system's page cache.</summary>
        Buffered = 2,
    }

    /// <summary>How exactly the engine computes.</summary>
    public enum ArithmeticMode
    {
        /// <summary>The fastest that keeps the quality; in this version the same as exact.
        /// </summary>
        Fast = 0,
        /// <summary>32-bit floats over dequantised weights.</summary>
        Exact = 1,
    }

    /// <summary>Instructions that the engine uses. One the machine lacks is Unsupported.</summary>
    public enum InstructionSet
    {
        /// <summary>The best that this machine has.</summary>
        Best = 0,
        /// <summary>Plain C++.</summary>
        Scalar = 1,
        /// <summary>x86-64 with AVX2 and FMA.</summary>
        Avx2 = 2,
        /// <summary>x86-64 with AVX-512.</summary>
        Avx512 = 3,
        /// <summary>Arm64.</summary>
        Neon = 4,
        /// <summary>x86-64 with AVX-512, VBMI and VNNI.</summary>
        Avx512Vbmi = 5,
    }
}
