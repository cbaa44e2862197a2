// SPDX-License-Identifier: Apache-2.0
//
// Counts the calls inside one object, so that closing it can wait a bounded time for them, and
// refuses new ones once it is closed. The memory itself is safe without it (NativeHandle); the gate
// makes Dispose mean that nothing runs any more.
using System;
using System.Diagnostics;
using System.Threading;
using System.Threading.Tasks;

namespace Waste
{
    internal sealed class CallGate
    {
        /// <summary>How long closing waits for the calls inside.</summary>
        internal static readonly TimeSpan Patience = TimeSpan.FromSeconds(1);
        private const int PollMilliseconds = 2;

        private readonly object state = new object();
        private readonly string name;
        private int callCount;
        private bool closed;

        internal CallGate(string name)
        {
            this.name = name;
        }

        internal bool IsClosed
        {
            get
            {
                lock (state)
                    return closed;
            }
        }

        /// <summary>Begins a call; dispose what it returns to end it.</summary>
        internal Call Enter()
        {
            lock (state)
            {
                if (closed)
                    throw new ObjectDisposedException(name);
                callCount++;
            }
            return new Call(this);
        }

        /// <summary>No new calls from now on. False if it was closed before.</summary>
        internal bool Close()
        {
            lock (state)
            {
                bool first = !closed;
                closed = true;
                return first;
            }
        }

        internal void WaitUntilIdle(Stopwatch since)
        {
            lock (state)
            {
                TimeSpan left;
                while (callCount > 0 && (left = Patience - since.Elapsed) > TimeSpan.Zero)
                    Monitor.Wait(state, left);
            }
        }

        internal async Task WaitUntilIdleAsync(Stopwatch since)
        {
            while (IsBusy() && since.Elapsed < Patience)
                await Task.Delay(PollMilliseconds).ConfigureAwait(false);
        }

        private bool IsBusy()
        {
            lock (state)
                return callCount > 0;
        }

        private void Leave()
        {
            lock (state)
            {
                callCount--;
                Monitor.PulseAll(state);
            }
        }

        /// <summary>One call inside.</summary>
        internal readonly struct Call : IDisposable
        {
            private readonly CallGate gate;

            internal Call(CallGate gate)
            {
                this.gate = gate;
            }

            public void Dispose()
            {
                gate.Leave();
            }
        }
    }
}
