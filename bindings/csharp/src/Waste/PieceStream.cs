// SPDX-License-Identifier: Apache-2.0
//
// An answer as IEnumerable: the thread of the loop runs the model, one piece a step.
using System;
using System.Collections;
using System.Collections.Generic;
using System.Threading;

namespace Waste
{
    /// <summary>
    /// An answer, piece by piece. It can be read once; the work begins with the enumeration.
    /// Leaving the loop (or Dispose) cancels what is left and frees the session at once. Reading is
    /// for one thread; <see cref="Cancel"/>, <see cref="Dispose"/> and <see cref="GetStats"/> are
    /// for any.
    /// </summary>
    public sealed class PieceStream : IEnumerable<Piece>, IDisposable
    {
        private readonly Answer answer;

        internal PieceStream(Answer answer)
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

        /// <summary>Starts the answer. Once.</summary>
        public IEnumerator<Piece> GetEnumerator()
        {
            answer.Claim();
            answer.Start(CancellationToken.None);
            return new Enumerator(answer);
        }

        IEnumerator IEnumerable.GetEnumerator()
        {
            return GetEnumerator();
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

        /// <summary>Ends the answer; waits a second at most for a step of its reader.</summary>
        public void Dispose()
        {
            answer.Close();
        }

        internal Completion ReadAll()
        {
            using (IEnumerator<Piece> pieces = GetEnumerator())
                while (pieces.MoveNext())
                {
                    // The answer collects them.
                }
            return Completion;
        }

        private sealed class Enumerator : IEnumerator<Piece>
        {
            private readonly Answer answer;
            private Piece current;

            internal Enumerator(Answer answer)
            {
                this.answer = answer;
            }

            public Piece Current
            {
                get { return current; }
            }

            object IEnumerator.Current
            {
                get { return current; }
            }

            public bool MoveNext()
            {
                return answer.Next(out current);
            }

            public void Reset()
            {
                throw new NotSupportedException(Answer.ReadOnce);
            }

            public void Dispose()
            {
                answer.Close();
            }
        }
    }
}
