// SPDX-License-Identifier: Apache-2.0
//
// One answer in progress, for one reader. Next pulls one piece and is the only thing that runs the
// model; Cancel and Close may come from any thread. The answer ends once, and then holds its
// Completion and no native memory: its session is free for the next one. A piece that the library
// has handed out is always delivered; a cancel is told by the Next after it.
//
// Keeps its session alive; is itself known weakly, so that an answer nobody reads is collected.
using System;
using System.Diagnostics;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Waste.Native;

namespace Waste
{
    internal sealed class Generation
    {
        private const int BufferBytes = 1024;
        private const int PollMilliseconds = 2;

        private readonly Session session;
        private readonly NativeHandle handle;
        private readonly bool logProbs;
        private readonly CancellationToken first;
        private readonly CancellationToken second;
        private readonly object reading = new object();
        private readonly byte[] buffer = new byte[BufferBytes];
        private readonly byte[] error = NativeError.NewImage();
        private readonly waste_token info = new waste_token();
        private readonly StringBuilder text = new StringBuilder();
        private readonly StringBuilder thinking = new StringBuilder();
        private readonly StringBuilder tool = new StringBuilder();
        private readonly CancellationTokenRegistration firstRegistration;
        private readonly CancellationTokenRegistration secondRegistration;
        private volatile Completion completion;
        private volatile Ending closing;
        private bool tellsCancel;

        internal Generation(Session session, IntPtr address, GenerationOptions options,
                            CancellationToken first, CancellationToken second)
        {
            this.session = session;
            this.first = first;
            this.second = second;
            handle = new NativeHandle(address);
            logProbs = options.LogProbs;
            try
            {
                AddStops(options);
            }
            catch
            {
                handle.Dispose();
                info.Dispose();
                throw;
            }
            var self = new WeakReference<Generation>(this);
            firstRegistration = first.Register(CancelWeakly, self);
            secondRegistration = second.Register(CancelWeakly, self);
        }

        /// <summary>Who ended the answer before the model did.</summary>
        internal enum Ending
        {
            /// <summary>Nobody.</summary>
            None,
            /// <summary>Its reader: it just ends.</summary>
            ReaderClosed,
            /// <summary>Its session or model was closed: the reader is told of a cancel.</summary>
            SessionClosed,
        }

        /// <summary>All of the answer once it has ended, else null.</summary>
        internal Completion Completion
        {
            get { return completion; }
        }

        /// <summary>Pulls one piece; false when the answer has ended. Throws once why it ended
        /// otherwise.</summary>
        internal bool Next(out Piece piece)
        {
            lock (reading)
            {
                piece = default(Piece);
                if (completion != null)
                    return TellCancelOnce();
                long size = WasteNative.waste_next(handle, buffer, buffer.Length, info, error);
                if (size > 0)
                {
                    piece = ReadPiece((int)size);
                    if (closing != Ending.None)
                        End();
                    return true;
                }
                Exception failure = size < 0 ? NativeError.From(size, error, Token()) : null;
                End();
                if (failure == null || closing == Ending.ReaderClosed)
                    return false;
                tellsCancel = false;
                throw failure;
            }
        }

        /// <summary>Asks the answer to stop. Any thread, any time.</summary>
        internal void Cancel()
        {
            handle.Cancel();
        }

        internal WasteStats GetStats()
        {
            Completion ended = completion;
            if (ended != null)
                return ended.Stats;
            try
            {
                return ReadStats();
            }
            catch (ObjectDisposedException)
            {
                return completion.Stats; // It ended in the meantime.
            }
        }

        /// <summary>Ends the answer; waits a bounded time for a Next that runs. If that does not
        /// leave in time, it ends the answer when it does.</summary>
        internal void Close(Ending ending, Stopwatch since)
        {
            BeginClose(ending);
            TimeSpan left = CallGate.Patience - since.Elapsed;
            TryEnd(left > TimeSpan.Zero ? left : TimeSpan.Zero);
        }

        internal async Task CloseAsync(Ending ending, Stopwatch since)
        {
            BeginClose(ending);
            while (!TryEnd(TimeSpan.Zero) && since.Elapsed < CallGate.Patience)
                await Task.Delay(PollMilliseconds).ConfigureAwait(false);
        }

        /// <summary>The token that cancelled, if one did.</summary>
        private CancellationToken Token()
        {
            return first.IsCancellationRequested ? first : second;
        }

        private static void CancelWeakly(object state)
        {
            Generation generation;
            if (((WeakReference<Generation>)state).TryGetTarget(out generation))
                generation.Cancel();
        }

        /// <summary>Tells a Next that runs to leave; returns at once.</summary>
        internal void BeginClose(Ending ending)
        {
            if (closing == Ending.None)
                closing = ending;
            Cancel();
        }

        private bool TryEnd(TimeSpan patience)
        {
            if (!Monitor.TryEnter(reading, patience))
                return false;
            try
            {
                if (completion == null)
                    End();
            }
            finally
            {
                Monitor.Exit(reading);
            }
            return true;
        }

        /// <summary>A reader that was elsewhere when its session was closed learns it now.
        /// </summary>
        private bool TellCancelOnce()
        {
            if (!tellsCancel)
                return false;
            tellsCancel = false;
            throw NativeError.Cancelled("the session was closed while it answered", Token());
        }

        private void AddStops(GenerationOptions options)
        {
            foreach (string stop in options.Stop)
            {
                Utf8 bytes = Utf8.Required(stop, nameof(GenerationOptions.Stop));
                NativeError.Check(
                    WasteNative.waste_generation_add_stop(handle, bytes.Bytes, bytes.Count, error),
                    error);
            }
            foreach (int id in options.StopTokens)
                NativeError.Check(
                    WasteNative.waste_generation_add_stop_token(handle, id, error), error);
            foreach (var bias in options.LogitBias)
                NativeError.Check(
                    WasteNative.waste_generation_add_bias(handle, bias.Key, bias.Value, error),
                    error);
        }

        private Piece ReadPiece(int size)
        {
            string read = Encoding.UTF8.GetString(buffer, 0, size);
            var channel = (Channel)info.channel;
            StringBuilder all = channel == Channel.Thinking ? thinking
                : channel == Channel.Tool ? tool : text;
            all.Append(read);
            return new Piece(read, channel, info.id, info.first_index, info.count,
                             logProbs ? info.logprob : (double?)null, info.position);
        }

        // Under `reading`, once.
        private void End()
        {
            WasteStats stats = ReadStats();
            int[] tokens = ReadTokens(out double[] values);
            tellsCancel = closing == Ending.SessionClosed &&
                stats.FinishReason != FinishReason.Stop &&
                stats.FinishReason != FinishReason.Length;
            completion = new Completion(text.ToString(), thinking.ToString(), tool.ToString(),
                                        tokens, logProbs ? values : null, stats.FinishReason,
                                        stats);
            handle.Dispose();
            info.Dispose();
            firstRegistration.Dispose();
            secondRegistration.Dispose();
            session.Ended(this);
        }

        private WasteStats ReadStats()
        {
            byte[] image = NativeError.NewImage();
            using (var native = new waste_stats())
            {
                NativeError.Check(WasteNative.waste_generation_stats(handle, native, image), image);
                return new WasteStats(native);
            }
        }

        private int[] ReadTokens(out double[] values)
        {
            byte[] image = NativeError.NewImage();
            long count = NativeError.Check(
                WasteNative.waste_generation_tokens(handle, null, 0, null, 0, image), image);
            var tokens = new int[count];
            values = new double[count];
            NativeError.Check(
                WasteNative.waste_generation_tokens(handle, tokens, count, values, count, image),
                image);
            return tokens;
        }
    }
}
