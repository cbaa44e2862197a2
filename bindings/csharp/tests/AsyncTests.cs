// SPDX-License-Identifier: Apache-2.0
//
// The async forms: the same text, no thread of the pool held, nothing ahead of the reader, tokens
// of the caller in the exception, no continuation that needs the caller's context.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using NUnit.Framework;

namespace Waste.Tests
{
    [TestFixture]
    public class AsyncTests
    {
        private const string Question = "What is the capital of Italy?";
        private const string Rome = "The capital of Italy is Rome.";

        [Test]
        public void Async_forms_give_the_same_text()
        {
            Limits.Done(Use());
        }

        [Test]
        public void Nothing_runs_ahead_of_the_reader()
        {
            using (var scripted = new Scripted(Scripted.Endless))
            {
                AsyncPieceStream stream = scripted.Chat.StreamAsync("x");
                IAsyncEnumerator<Piece> pieces = stream.GetAsyncEnumerator();
                Assert.Throws<InvalidOperationException>(() => stream.GetStats());
                for (int count = 1; count <= 3; count++)
                {
                    Assert.That(Limits.Result(pieces.MoveNextAsync().AsTask()), Is.True);
                    Assert.That(pieces.Current.Text, Is.EqualTo("ha"));
                    Thread.Yield();
                    Assert.That(stream.GetStats().GeneratedTokens, Is.EqualTo(count));
                }
                Limits.Done(stream.DisposeAsync().AsTask());
                Assert.That(Limits.Result(pieces.MoveNextAsync().AsTask()), Is.False);
                Assert.That(stream.Completion.Text, Is.EqualTo("hahaha"));
                Assert.That(scripted.Chat.Ask("y", new GenerationOptions { MaxTokens = 1 }).Text,
                            Is.EqualTo("ha"));
            }
        }

        [Test]
        public void Either_token_cancels_and_is_told()
        {
            using (var scripted = new Scripted(
                       "{\"answers\": [[\"one\", {\"stall_ms\": 60000}, \"two\"]]}"))
            {
                CheckToken(scripted.Chat, (chat, token) =>
                    chat.StreamAsync("x", null, token).GetAsyncEnumerator());
                CheckToken(scripted.Chat, (chat, token) =>
                    chat.StreamAsync("x").GetAsyncEnumerator(token));
                using (var source = new CancellationTokenSource())
                {
                    Task<Completion> answer = scripted.Chat.AskAsync("x", null, source.Token);
                    Limits.Until(() => scripted.Chat.Position > 0, "the answer runs");
                    source.Cancel();
                    CheckCancelled(answer, source.Token);
                }
                using (var source = new CancellationTokenSource())
                {
                    source.Cancel();
                    CheckCancelled(scripted.Chat.AskAsync("x", null, source.Token), source.Token);
                    CheckCancelled(WasteModel.OpenAsync(Places.Mini, null, null, source.Token),
                                   source.Token);
                }
            }
        }

        [Test]
        public void Waiting_answers_hold_no_thread_of_the_pool()
        {
            const int Answers = 24;
            const string Slow = "{\"answers\": [[{\"stall_ms\": 60000}, \"x\"]]}";
            using (var scripted = new Scripted(Slow))
            {
                int before = BusyPoolThreads();
                var chats = Enumerable.Range(0, Answers).Select(
                    index => scripted.Model.CreateChat()).ToList();
                var steps = chats.Select(
                    chat => chat.StreamAsync("x").GetAsyncEnumerator().MoveNextAsync().AsTask())
                    .ToList();
                Limits.Until(() => chats.All(chat => chat.Position > 0), "all answers run");
                Assert.That(BusyPoolThreads() - before, Is.LessThan(Answers / 2));
                Stopwatch since = Stopwatch.StartNew();
                Limits.Done(Task.Run(() => { }));
                Assert.That(since.Elapsed, Is.LessThan(Limits.Latency), "the pool answers");
                scripted.Model.Dispose();
                foreach (Task<bool> step in steps)
                    Assert.That(() => Limits.Result(step),
                                Throws.InstanceOf<OperationCanceledException>());
            }
        }

        [Test]
        public void Blocking_on_a_task_under_a_context_does_not_deadlock()
        {
            Limits.Done(Limits.OnThread(() =>
            {
                SynchronizationContext.SetSynchronizationContext(new Stuck());
                WasteModel model = WasteModel.OpenAsync(Places.Mini).Result;
                ChatSession chat = model.CreateChat();
                Assert.That(chat.AskAsync(Question).Result.Text, Is.EqualTo(Rome));
                IAsyncEnumerator<Piece> pieces = chat.StreamAsync(Question).GetAsyncEnumerator();
                Assert.That(pieces.MoveNextAsync().AsTask().Result, Is.True);
                pieces.DisposeAsync().AsTask().Wait();
                chat.DisposeAsync().AsTask().Wait();
                model.DisposeAsync().AsTask().Wait();
            }));
        }

        private static async Task Use()
        {
            var progress = new List<double>();
            WasteModel model = await WasteModel.OpenAsync(
                Places.Mini, new ModelOptions { ContextTokens = 512 }, new Collected(progress))
                .ConfigureAwait(false);
            Assert.That(progress.Last(), Is.EqualTo(1.0));
            ChatSession chat = model.CreateChat();
            AsyncPieceStream stream = chat.StreamAsync(Question);
            Assert.That(await Reading.AllAsync(stream).ConfigureAwait(false), Is.EqualTo(Rome));
            Assert.That(stream.Completion.FinishReason, Is.EqualTo(FinishReason.Stop));
            Assert.Throws<InvalidOperationException>(() => stream.GetAsyncEnumerator());
            Completion answer = await chat.AskAsync(Question).ConfigureAwait(false);
            Assert.That(answer.Text, Is.EqualTo(Rome));
            await chat.DisposeAsync().ConfigureAwait(false);
            await chat.DisposeAsync().ConfigureAwait(false);
            await model.DisposeAsync().ConfigureAwait(false);
            await model.DisposeAsync().ConfigureAwait(false);
            Assert.Throws<ObjectDisposedException>(() => model.CreateChat());
        }

        private static void CheckToken(
            ChatSession chat,
            Func<ChatSession, CancellationToken, IAsyncEnumerator<Piece>> start)
        {
            chat.Reset();
            using (var source = new CancellationTokenSource())
            {
                IAsyncEnumerator<Piece> pieces = start(chat, source.Token);
                Assert.That(Limits.Result(pieces.MoveNextAsync().AsTask()), Is.True);
                Task<bool> step = pieces.MoveNextAsync().AsTask();
                Limits.WithinLatency(() =>
                {
                    source.Cancel();
                    CheckCancelled(step, source.Token);
                }, "a cancel by token");
                Limits.Done(pieces.DisposeAsync().AsTask());
            }
        }

        private static void CheckCancelled(Task task, CancellationToken token)
        {
            Assert.That(() => Limits.Done(task), Throws.InstanceOf<OperationCanceledException>()
                .And.Property("CancellationToken").EqualTo(token));
            Assert.That(task.IsCanceled, Is.True);
        }

        private static int BusyPoolThreads()
        {
            ThreadPool.GetMaxThreads(out int most, out int ports);
            ThreadPool.GetAvailableThreads(out int free, out ports);
            return most - free;
        }

        /// <summary>A context whose thread is blocked: what is posted never runs.</summary>
        private sealed class Stuck : SynchronizationContext
        {
            public override void Post(SendOrPostCallback callback, object state) { }
        }

        private sealed class Collected : IProgress<LoadProgress>
        {
            private readonly List<double> fractions;

            internal Collected(List<double> fractions)
            {
                this.fractions = fractions;
            }

            public void Report(LoadProgress value)
            {
                fractions.Add(value.Fraction);
            }
        }
    }
}
