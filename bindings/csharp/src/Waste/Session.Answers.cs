// SPDX-License-Identifier: Apache-2.0
//
// How a session starts answers and hands them out: at once, piece by piece, and the same for
// callers that must not block. Also what of a session's work another thread may cancel.
using System;
using System.Threading;
using System.Threading.Tasks;
using Waste.Native;

namespace Waste
{
    public partial class Session
    {
        private readonly object answering = new object();
        private WeakReference<Generation> live;
        private Evaluation evaluation;

        /// <summary>Prompts are plain text to continue.</summary>
        internal virtual bool IsRaw
        {
            get { return true; }
        }

        /// <summary>Answers, piece by piece. The work begins with the enumeration, and each step
        /// of it runs the model until there is text. Leaving the loop cancels what is left.
        /// </summary>
        /// <param name="prompt">Plain text to continue (a raw session) or a user's message (a
        /// chat). Null: answer the messages that were added, or go on with an answer that was cut
        /// short.</param>
        /// <param name="options">Null for the defaults.</param>
        /// <param name="cancellationToken">Cancels the answer.</param>
        /// <remarks>The enumeration throws <see cref="SessionBusyException"/> if an answer lives,
        /// <see cref="ContextFullException"/> if the prompt does not fit,
        /// <see cref="OperationCanceledException"/> when it was cancelled other than by its
        /// reader leaving, and <see cref="WasteException"/> for the rest.</remarks>
        public PieceStream Stream(
            string prompt, GenerationOptions options = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            using (gate.Enter())
                return new PieceStream(Request(prompt, options, cancellationToken));
        }

        /// <summary>The same for callers that must not block: one background thread runs the
        /// model while somebody waits for a piece, and nothing runs ahead of the reader.</summary>
        /// <param name="prompt">As for <see cref="Stream"/>.</param>
        /// <param name="options">Null for the defaults.</param>
        /// <param name="cancellationToken">Cancels the answer.</param>
        public AsyncPieceStream StreamAsync(
            string prompt, GenerationOptions options = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            using (gate.Enter())
                return new AsyncPieceStream(Request(prompt, options, cancellationToken));
        }

        /// <summary>The whole answer; blocks until it is there.</summary>
        /// <param name="prompt">As for <see cref="Stream"/>.</param>
        /// <param name="options">Null for the defaults.</param>
        /// <param name="cancellationToken">Cancels the answer.</param>
        /// <exception cref="OperationCanceledException">It was cancelled; the session holds what
        /// had come.</exception>
        /// <exception cref="WasteException">As for <see cref="Stream"/>.</exception>
        public Completion Ask(string prompt, GenerationOptions options = null,
                              CancellationToken cancellationToken = default(CancellationToken))
        {
            return Stream(prompt, options, cancellationToken).ReadAll();
        }

        /// <summary>The same on a background thread of its own.</summary>
        /// <param name="prompt">As for <see cref="Stream"/>.</param>
        /// <param name="options">Null for the defaults.</param>
        /// <param name="cancellationToken">Cancels the answer.</param>
        public Task<Completion> AskAsync(
            string prompt, GenerationOptions options = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            PieceStream stream = Stream(prompt, options, cancellationToken);
            return OwnThread.Run("Waste answer", () => stream.ReadAll());
        }

        /// <summary>Cancels the answer or evaluation under way, if there is one: its reader or
        /// caller gets <see cref="OperationCanceledException"/>. Any thread.</summary>
        public void Cancel()
        {
            using (gate.Enter())
                CancelWork();
        }

        /// <summary>Cancels what is under way; returns the answer, which has to be ended.
        /// </summary>
        internal Generation CancelWork()
        {
            Generation answer = null;
            Evaluation running;
            lock (answering)
            {
                if (live != null)
                    live.TryGetTarget(out answer);
                running = evaluation;
            }
            if (answer != null)
                answer.Cancel();
            if (running != null)
                running.Cancel();
            return answer;
        }

        internal void Ended(Generation answer)
        {
            lock (answering)
                if (live != null && live.TryGetTarget(out Generation known) && known == answer)
                    live = null;
        }

        internal void Ended(Evaluation ended)
        {
            lock (answering)
                if (evaluation == ended)
                    evaluation = null;
        }

        /// <summary>Lists an evaluation before it runs. A second one is refused here: inside the
        /// library a cancel would be of whichever runs.</summary>
        private Evaluation BeginEvaluation()
        {
            var begun = new Evaluation(this);
            lock (answering)
            {
                if (evaluation != null)
                    throw new SessionBusyException(
                        "another call on this session is running; wait for it, or cancel");
                evaluation = begun;
            }
            if (gate.IsClosed)
                begun.Cancel(); // Closed while it began, and perhaps not seen.
            return begun;
        }

        /// <summary>Starts an answer; throws what waste_generate refuses.</summary>
        internal Generation Start(Utf8 prompt, GenerationOptions options, CancellationToken first,
                                  CancellationToken second)
        {
            byte[] error = NativeError.NewImage();
            using (gate.Enter())
            using (waste_generation_options native = options.ToNative(IsRaw || options.Raw))
            {
                NativeError.Check(
                    WasteNative.waste_generate(handle, prompt.Bytes, prompt.Count, native,
                                               out IntPtr address, error), error);
                var answer = new Generation(this, address, options, first, second);
                lock (answering)
                    live = new WeakReference<Generation>(answer);
                if (gate.IsClosed)
                    answer.Cancel(); // Closed while it started, and perhaps not seen.
                return answer;
            }
        }

        private Answer Request(string prompt, GenerationOptions options, CancellationToken token)
        {
            return new Answer(this, Utf8.From(prompt, nameof(prompt)),
                              (options ?? new GenerationOptions()).Copy(), token);
        }
    }
}
