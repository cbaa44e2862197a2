// SPDX-License-Identifier: Apache-2.0
//
// One Session.Eval in progress, as far as others may stop it. The library stops only an evaluation
// that has begun inside it: a cancel that comes a moment earlier is lost. So a cancel is kept here,
// looked at before the call, and repeated while the call lasts.
//
// A session has one of these at a time, and none of its cancels is delivered once it has ended:
// else one could stop the evaluation after it, or that of another thread. Any thread.
using System;
using System.Threading;

namespace Waste
{
    internal sealed class Evaluation : IDisposable
    {
        private const int RepeatMilliseconds = 5;

        private readonly object state = new object();
        private readonly Session session;
        private Timer repeat;
        private bool cancelled;
        private bool ended;

        internal Evaluation(Session session)
        {
            this.session = session;
        }

        internal bool IsCancelled
        {
            get
            {
                lock (state)
                    return cancelled;
            }
        }

        /// <summary>Asks it to stop, as the callback of a token; returns at once.</summary>
        internal static void Cancel(object evaluation)
        {
            ((Evaluation)evaluation).Cancel();
        }

        internal void Cancel()
        {
            lock (state)
            {
                if (ended || cancelled)
                    return;
                cancelled = true;
                session.Handle.Cancel();
                repeat = new Timer(Repeat, null, RepeatMilliseconds, RepeatMilliseconds);
            }
        }

        /// <summary>The call has left the library.</summary>
        public void Dispose()
        {
            lock (state)
            {
                ended = true;
                if (repeat != null)
                    repeat.Dispose();
            }
            session.Ended(this);
        }

        private void Repeat(object unused)
        {
            lock (state)
                if (!ended)
                    session.Handle.Cancel();
        }
    }
}
