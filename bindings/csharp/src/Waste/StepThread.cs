// SPDX-License-Identifier: Apache-2.0
//
// The background thread of one asynchronous answer. It runs one step when the reader asks for one
// and waits otherwise, so at most one piece exists that the reader has not seen. It starts with the
// first step and ends with the answer, or when it is stopped.
using System;
using System.Threading;
using System.Threading.Tasks;

namespace Waste
{
    internal sealed class StepThread
    {
        private readonly object gate = new object();
        private readonly Answer answer;
        private readonly CancellationToken token;
        private readonly AutoResetEvent wake = new AutoResetEvent(false);
        private readonly TaskCompletionSource<bool> ended = OwnThread.NewSource<bool>();
        private TaskCompletionSource<bool> wanted;
        private bool started;
        private volatile bool stopping;

        internal StepThread(Answer answer, CancellationToken token)
        {
            this.answer = answer;
            this.token = token;
        }

        /// <summary>What the last step brought.</summary>
        internal Piece Piece { get; private set; }

        /// <summary>Asks for one step; the task says whether there is a piece.</summary>
        internal Task<bool> Step()
        {
            lock (gate)
            {
                if (wanted != null)
                    throw new InvalidOperationException("the step before this one is under way");
                if (stopping)
                    return Task.FromResult(false);
                if (!started)
                    OwnThread.Start("Waste stream", Run);
                started = true;
                wanted = OwnThread.NewSource<bool>();
                wake.Set();
                return wanted.Task;
            }
        }

        /// <summary>Ends the answer; the task is done when the thread has left. Returns at once.
        /// </summary>
        internal Task Stop()
        {
            answer.BeginClose();
            lock (gate)
            {
                stopping = true;
                if (!started)
                    ended.TrySetResult(true);
            }
            wake.Set();
            return ended.Task;
        }

        /// <summary>The same from a finalizer, which must take no lock: when a process exits, a
        /// thread that holds one may have been stopped for good.</summary>
        internal void Abandon()
        {
            stopping = true;
            answer.CancelFromFinalizer();
            try
            {
                wake.Set();
            }
            catch (ObjectDisposedException)
            {
                // Finalized before this, so no thread waits for it.
            }
        }

        private void Run()
        {
            while (WaitForReader())
            {
                bool more = false;
                Exception failure = null;
                try
                {
                    more = TakeStep();
                }
                catch (Exception failed)
                {
                    failure = failed;
                }
                Deliver(more, failure);
            }
            answer.Close();
            ended.TrySetResult(true);
        }

        private bool WaitForReader()
        {
            while (true)
            {
                lock (gate)
                {
                    if (wanted != null)
                        return true;
                    if (stopping)
                        return false;
                }
                wake.WaitOne();
            }
        }

        private bool TakeStep()
        {
            if (!answer.IsStarted)
                answer.Start(token);
            bool more = answer.Next(out Piece piece);
            Piece = piece;
            return more;
        }

        private void Deliver(bool more, Exception failure)
        {
            TaskCompletionSource<bool> step;
            lock (gate)
            {
                step = wanted;
                wanted = null;
                if (!more)
                    stopping = true;
            }
            if (failure != null)
                OwnThread.Fail(step, failure);
            else
                step.SetResult(more);
        }
    }
}
