// SPDX-License-Identifier: Apache-2.0
//
// A conversation as a list of tokens: the raw session, and what a chat shares with it. Starting and
// reading answers is in Session.Answers.cs.
using System;
using System.Diagnostics;
using System.Threading;
using System.Threading.Tasks;
using Waste.Native;

namespace Waste
{
    /// <summary>
    /// A session: a list of tokens and the model's state after them. One call at a time: a second
    /// one gets <see cref="SessionBusyException"/>; stats and Dispose are for any thread. Disposing
    /// cancels what is under way, waits a second at most, and may happen more than once.
    /// </summary>
    public partial class Session : IDisposable, IAsyncDisposable
    {
        private readonly CallGate gate;
        private readonly NativeHandle handle;
        private float[] logits;
        private int logitRows;

        internal Session(WasteModel model, IntPtr address)
        {
            gate = new CallGate(GetType().Name);
            handle = new NativeHandle(address);
            Model = model;
            model.Add(this);
        }

        /// <summary>The model that it belongs to.</summary>
        public WasteModel Model { get; }

        /// <summary>Tokens that it holds.</summary>
        public long Position
        {
            get { return GetStats().Position; }
        }

        /// <summary>Rows of logits that the last <see cref="Eval"/> kept.</summary>
        public int LogitRows
        {
            get { return logitRows; }
        }

        /// <summary>Runs tokens through the model. When it fails or is cancelled, the session holds
        /// what it held before.</summary>
        /// <param name="tokens">What to append.</param>
        /// <param name="rows">Keep the logits of that many last tokens, for
        /// <see cref="GetLogits()"/>.</param>
        /// <param name="cancellationToken">Cancels it, within a layer of the model or one read.
        /// </param>
        /// <exception cref="ContextFullException">They do not fit.</exception>
        /// <exception cref="SessionBusyException">An answer lives, or another call runs.
        /// </exception>
        /// <exception cref="OperationCanceledException">The token, <see cref="Cancel"/> or Dispose
        /// cancelled it.</exception>
        /// <exception cref="WasteException">IO, Corrupt, or Argument.</exception>
        public void Eval(int[] tokens, int rows = 1,
                         CancellationToken cancellationToken = default(CancellationToken))
        {
            if (tokens == null)
                throw new ArgumentNullException(nameof(tokens));
            if (rows < 0 || rows > tokens.Length)
                throw new ArgumentOutOfRangeException(nameof(rows));
            byte[] error = NativeError.NewImage();
            using (gate.Enter())
            using (Evaluation running = BeginEvaluation())
            using (cancellationToken.Register(Evaluation.Cancel, running))
            {
                if (running.IsCancelled)
                    throw NativeError.Cancelled("cancelled before it began", cancellationToken);
                var kept = new float[(long)rows * Model.Info.VocabSize];
                long count = WasteNative.waste_eval(handle, tokens, tokens.Length, kept,
                                                    kept.Length, error);
                if (count < 0)
                    throw NativeError.From(count, error, cancellationToken);
                logits = kept;
                logitRows = rows;
            }
        }

        /// <summary>The same on a thread of its own, for callers that must not block.</summary>
        /// <param name="tokens">As for <see cref="Eval"/>.</param>
        /// <param name="rows">As for <see cref="Eval"/>.</param>
        /// <param name="cancellationToken">Cancels it.</param>
        public Task EvalAsync(int[] tokens, int rows = 1,
                              CancellationToken cancellationToken = default(CancellationToken))
        {
            return OwnThread.Run("Waste eval", () =>
            {
                Eval(tokens, rows, cancellationToken);
                return true;
            });
        }

        /// <summary>The logits that the last <see cref="Eval"/> kept: rows one after another,
        /// each of the vocabulary's size.</summary>
        /// <exception cref="InvalidOperationException">None were kept.</exception>
        public float[] GetLogits()
        {
            return (float[])KeptLogits().Clone();
        }

        /// <summary>The tokens that it holds.</summary>
        public int[] GetTokens()
        {
            byte[] error = NativeError.NewImage();
            using (gate.Enter())
            {
                var tokens = new int[256];
                long count;
                while ((count = NativeError.Check(
                            WasteNative.waste_session_tokens(handle, tokens, tokens.Length, error),
                            error)) > tokens.Length)
                    tokens = new int[count];
                Array.Resize(ref tokens, (int)count);
                return tokens;
            }
        }

        /// <summary>Forgets everything.</summary>
        /// <exception cref="SessionBusyException">An answer lives.</exception>
        public void Reset()
        {
            byte[] error = NativeError.NewImage();
            using (gate.Enter())
                NativeError.Check(WasteNative.waste_session_reset(handle, error), error);
        }

        /// <summary>Goes back to the first tokens. What lies between the nearest snapshot and there
        /// runs again when the session next runs.</summary>
        /// <exception cref="WasteException">It holds fewer (Argument).</exception>
        public void Rewind(long position)
        {
            byte[] error = NativeError.NewImage();
            using (gate.Enter())
                NativeError.Check(WasteNative.waste_session_rewind(handle, position, error), error);
        }

        /// <summary>A second session that holds the same.</summary>
        /// <exception cref="RamBudgetException">No memory is left for another session.</exception>
        public Session Fork()
        {
            return new Session(Model, ForkHandle());
        }

        /// <summary>Writes tokens and state to a file.</summary>
        /// <exception cref="WasteException">It cannot be written (IO).</exception>
        public void Save(string path)
        {
            Utf8 name = Utf8.Required(path, nameof(path));
            byte[] error = NativeError.NewImage();
            using (gate.Enter())
                NativeError.Check(
                    WasteNative.waste_session_save(handle, name.Bytes, name.Count, error), error);
        }

        /// <summary>Reads a saved state back. A file that is damaged, of another model, or too long
        /// is refused and changes nothing.</summary>
        /// <exception cref="WasteException">It cannot be used.</exception>
        public void Load(string path)
        {
            Utf8 name = Utf8.Required(path, nameof(path));
            byte[] error = NativeError.NewImage();
            using (gate.Enter())
                NativeError.Check(
                    WasteNative.waste_session_load(handle, name.Bytes, name.Count, error), error);
        }

        /// <summary>Counters of this session's own work. Any thread.</summary>
        public WasteStats GetStats()
        {
            byte[] error = NativeError.NewImage();
            using (gate.Enter())
            using (var native = new waste_stats())
            {
                NativeError.Check(WasteNative.waste_session_stats(handle, native, error), error);
                return new WasteStats(native);
            }
        }

        /// <summary>Cancels the answer or evaluation under way, waits a second at most for calls
        /// inside, and frees the session.</summary>
        public void Dispose()
        {
            Close(Stopwatch.StartNew());
        }

        /// <summary>The same without a thread that waits.</summary>
        public ValueTask DisposeAsync()
        {
            return new ValueTask(CloseAsync(Stopwatch.StartNew()));
        }

        internal NativeHandle Handle
        {
            get { return handle; }
        }

        internal CallGate.Call Enter()
        {
            return gate.Enter();
        }

        internal IntPtr ForkHandle()
        {
            byte[] error = NativeError.NewImage();
            using (gate.Enter())
            {
                NativeError.Check(
                    WasteNative.waste_session_fork(handle, out IntPtr fork, error), error);
                return fork;
            }
        }

        internal void Close(Stopwatch since)
        {
            if (!gate.Close())
                return;
            Generation answer = CancelWork();
            if (answer != null)
                answer.Close(Generation.Ending.SessionClosed, since);
            gate.WaitUntilIdle(since);
            handle.Dispose();
            Model.Remove(this);
        }

        internal async Task CloseAsync(Stopwatch since)
        {
            if (!gate.Close())
                return;
            Generation answer = CancelWork();
            if (answer != null)
                await answer.CloseAsync(Generation.Ending.SessionClosed, since)
                    .ConfigureAwait(false);
            await gate.WaitUntilIdleAsync(since).ConfigureAwait(false);
            handle.Dispose();
            Model.Remove(this);
        }

        private float[] KeptLogits()
        {
            using (gate.Enter())
            {
                if (logits == null || logitRows == 0)
                    throw new InvalidOperationException("no Eval has kept logits");
                return logits;
            }
        }
    }
}
