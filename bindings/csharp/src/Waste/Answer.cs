// SPDX-License-Identifier: Apache-2.0
//
// An answer from the wish to its end: asked for, claimed by its one reader, running as a
// Generation, ended. What both kinds of stream share. Any thread.
using System;
using System.Diagnostics;
using System.Threading;

namespace Waste
{
    internal sealed class Answer
    {
        internal const string ReadOnce = "an answer can be read once";

        private readonly object gate = new object();
        private readonly Session session;
        private readonly Utf8 prompt;
        private readonly GenerationOptions options;
        private readonly CancellationToken token;
        private volatile Generation generation;
        private bool claimed;
        private bool cancelled;
        private bool closed;

        internal Answer(Session session, Utf8 prompt, GenerationOptions options,
                        CancellationToken token)
        {
            this.session = session;
            this.prompt = prompt;
            this.options = options;
            this.token = token;
        }

        internal Completion Completion
        {
            get
            {
                Generation running = Running();
                if (running == null || running.Completion == null)
                    throw new InvalidOperationException("the answer has not ended");
                return running.Completion;
            }
        }

        internal void Claim()
        {
            lock (gate)
            {
                if (claimed || closed)
                    throw new InvalidOperationException(ReadOnce);
                claimed = true;
            }
        }

        /// <summary>Starts it, after a claim.</summary>
        internal void Start(CancellationToken second)
        {
            token.ThrowIfCancellationRequested();
            second.ThrowIfCancellationRequested();
            Generation started = session.Start(prompt, options, token, second);
            bool cancelNow, closeNow;
            lock (gate)
            {
                generation = started;
                cancelNow = cancelled;
                closeNow = closed;
            }
            if (cancelNow)
                started.Cancel();
            if (closeNow)
                started.Close(Generation.Ending.ReaderClosed, Stopwatch.StartNew());
        }

        internal bool IsStarted
        {
            get { return Running() != null; }
        }

        internal bool Next(out Piece piece)
        {
            return Running().Next(out piece);
        }

        internal void Cancel()
        {
            Generation running;
            lock (gate)
            {
                cancelled = true;
                running = generation;
            }
            if (running != null)
                running.Cancel();
        }

        internal void CancelFromFinalizer()
        {
            Generation running = generation;
            if (running != null)
                running.Cancel();
        }

        internal WasteStats GetStats()
        {
            Generation running = Running();
            if (running == null)
                throw new InvalidOperationException("the answer has not begun");
            return running.GetStats();
        }

        internal void Close()
        {
            Generation running = MarkClosed();
            if (running != null)
                running.Close(Generation.Ending.ReaderClosed, Stopwatch.StartNew());
        }

        /// <summary>Tells a step that runs to leave; returns at once.</summary>
        internal void BeginClose()
        {
            Generation running = MarkClosed();
            if (running != null)
                running.BeginClose(Generation.Ending.ReaderClosed);
        }

        private Generation MarkClosed()
        {
            lock (gate)
            {
                closed = true;
                return generation;
            }
        }

        private Generation Running()
        {
            lock (gate)
                return generation;
        }
    }
}
