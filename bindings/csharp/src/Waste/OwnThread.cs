// SPDX-License-Identifier: Apache-2.0
//
// Blocking work as a task, on a background thread of its own: a thread of the pool that waits for
// seconds starves whoever shares the pool.
using System;
using System.Threading;
using System.Threading.Tasks;

namespace Waste
{
    internal static class OwnThread
    {
        // The library needs 64 KiB of its caller's stack at most.
        private const int StackBytes = 512 * 1024;

        internal static Task<T> Run<T>(string name, Func<T> work)
        {
            TaskCompletionSource<T> result = NewSource<T>();
            Start(name, () =>
            {
                try
                {
                    result.SetResult(work());
                }
                catch (Exception failed)
                {
                    Fail(result, failed);
                }
            });
            return result.Task;
        }

        internal static void Start(string name, ThreadStart work)
        {
            new Thread(work, StackBytes) { IsBackground = true, Name = name }.Start();
        }

        /// <summary>Continuations never run on the thread that completes it.</summary>
        internal static TaskCompletionSource<T> NewSource<T>()
        {
            return new TaskCompletionSource<T>(TaskCreationOptions.RunContinuationsAsynchronously);
        }

        /// <summary>A cancel makes the task a cancelled one, with its token.</summary>
        internal static void Fail<T>(TaskCompletionSource<T> result, Exception failed)
        {
            var cancelled = failed as OperationCanceledException;
            if (cancelled != null)
                result.TrySetCanceled(cancelled.CancellationToken);
            else
                result.SetException(failed);
        }
    }
}
