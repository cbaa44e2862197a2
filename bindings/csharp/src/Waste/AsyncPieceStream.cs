// SPDX-License-Identifier: Apache-2.0
//
// An answer as IAsyncEnumerable. The enumerator is written by hand, so that disposal is exact and
// old compilers build it. A StepThread runs the model; the enumerator is not known to it, so that
// one which is dropped without DisposeAsync is collected and stops the thread.
using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Waste
{
    /// <summary>
    /// An answer, piece by piece, without blocking. It can be read once; the work begins with the
    /// first step, and nothing runs ahead of the reader. Leaving the loop (or DisposeAsync) cancels
    /// what is left and frees the session. One step at a time; <see cref="Cancel"/>,
    /// <see cref="DisposeAsync"/> and <see cref="GetStats"/> are for any thread.
    /// </summary>
    public sealed class AsyncPieceStream : IAsyncEnumerable<Piece>, IAsyncDisposable
    {
        private readonly Answer answer;
        private volatile StepThread thread;

        internal AsyncPieceStream(Answer answer)
        {
            this.answer = answer;
        }

        /// <summary>All of the answer, once it has ended; what had come if it was cancelled, was
        /// left, or failed.</summary>
        /// <exception cref="InvalidOperationException">It has not ended.</exception>
        public Completion Completion
        {
            get { return answer.Completion; }
        }

        /// <summary>Claims the answer for its one reader.</summary>
        /// <param name="cancellationToken">Cancels the answer, as the token of the call does.
        /// </param>
        public IAsyncEnumerator<Piece> GetAsyncEnumerator(
            CancellationToken cancellationToken = default(CancellationToken))
        {
            answer.Claim();
            thread = new StepThread(answer, cancellationToken);
            return new Enumerator(thread);
        }

        /// <summary>Cancels the answer: its reader gets OperationCanceledException.</summary>
        public void Cancel()
        {
            answer.Cancel();
        }

        /// <summary>Counters of the answer so far.</summary>
        /// <exception cref="InvalidOperationException">It has not begun.</exception>
        public WasteStats GetStats()
        {
            return answer.GetStats();
        }

        /// <summary>Ends the answer; done when its thread has left the library.</summary>
        public ValueTask DisposeAsync()
        {
            answer.BeginClose();
            StepThread running = thread;
            return running == null ? default(ValueTask) : new ValueTask(running.Stop());
        }

        private sealed class Enumerator : IAsyncEnumerator<Piece>
        {
            private readonly StepThread thread;

            internal Enumerator(StepThread thread)
            {
                this.thread = thread;
            }

            ~Enumerator()
            {
                thread.Abandon();
            }

            public Piece Current
            {
                get { return thread.Piece; }
            }

            public ValueTask<bool> MoveNextAsync()
            {
                return new ValueTask<bool>(thread.Step());
            }

            public ValueTask DisposeAsync()
            {
                GC.SuppressFinalize(this);
                return new ValueTask(thread.Stop());
            }
        }
    }
}
