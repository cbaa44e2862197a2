// SPDX-License-Identifier: Apache-2.0
//
// The behaviour matrix, rows about closing and threads: 10, 11 and 17, and use after Dispose.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using NUnit.Framework;

namespace Waste.Tests
{
    [TestFixture]
    public class MatrixCloseTests
    {
        private const string Stalls =
            "{\"answers\": [[\"one\", {\"stall_ms\": 60000}, \"two\"]]}";

        [Test]
        public void Row10_close_session_during_generate()
        {
            using (var scripted = new Scripted(Stalls))
                CheckCloseEnds(scripted, scripted.Chat.Dispose);
        }

        [Test]
        public void Row10_close_model_during_generate()
        {
            using (var scripted = new Scripted(Stalls))
                CheckCloseEnds(scripted, scripted.Model.Dispose);
        }

        [Test]
        public void Row10_dispose_async_during_generate()
        {
            using (var scripted = new Scripted(Stalls))
                CheckCloseEnds(scripted,
                               () => Limits.Done(scripted.Model.DisposeAsync().AsTask()));
            using (var scripted = new Scripted(Stalls))
                CheckCloseEnds(scripted,
                               () => Limits.Done(scripted.Chat.DisposeAsync().AsTask()));
        }

        [Test]
        public void Row10_close_during_an_async_stream()
        {
            using (var scripted = new Scripted(Stalls))
            {
                IAsyncEnumerator<Piece> pieces =
                    scripted.Chat.StreamAsync("x").GetAsyncEnumerator();
                Assert.That(Limits.Result(pieces.MoveNextAsync().AsTask()), Is.True);
                Task<bool> step = pieces.MoveNextAsync().AsTask();
                Assert.Throws<InvalidOperationException>(() => pieces.MoveNextAsync());
                Limits.WithinLatency(scripted.Model.Dispose, "closing the model");
                Assert.That(() => Limits.Result(step),
                            Throws.InstanceOf<OperationCanceledException>());
                Assert.That(Limits.Result(pieces.MoveNextAsync().AsTask()), Is.False);
            }
        }

        [Test]
        public void Row10_close_between_two_pieces_is_told_by_the_next_step()
        {
            using (var scripted = new Scripted(Scripted.Endless))
            {
                PieceStream stream = scripted.Chat.Stream("x");
                IEnumerator<Piece> pieces = stream.GetEnumerator();
                Assert.That(pieces.MoveNext(), Is.True);
                scripted.Chat.Dispose();
                Assert.That(() => pieces.MoveNext(), Throws.TypeOf<OperationCanceledException>());
                Assert.That(pieces.MoveNext(), Is.False);
                Assert.That(stream.Completion.Text, Is.EqualTo("ha"));
                Assert.That(stream.GetStats().GeneratedTokens, Is.GreaterThanOrEqualTo(1));
            }
        }

        [Test]
        public void Row11_free_in_any_order()
        {
            for (int order = 0; order < 6; order++)
            {
                var scripted = new Scripted(Scripted.Endless);
                PieceStream stream = scripted.Chat.Stream("x");
                IEnumerator<Piece> pieces = stream.GetEnumerator();
                Assert.That(pieces.MoveNext(), Is.True);
                var actions = new List<Action>
                {
                    stream.Dispose, scripted.Chat.Dispose, scripted.Model.Dispose,
                };
                Take(actions, order / 2)();
                Take(actions, order % 2)();
                Take(actions, 0)();
                Assert.Throws<ObjectDisposedException>(() => scripted.Chat.Ask("y"));
                Assert.That(stream.Completion.Text, Is.EqualTo("ha"));
                scripted.Dispose();
            }
        }

        [Test]
        public void Row11_collector_frees_what_nobody_closed()
        {
            for (int round = 0; round < 20; round++)
            {
                Limits.Done(Limits.OnThread(() =>
                {
                    WasteModel model = WasteModel.Open(Places.Script("endless"));
                    ChatSession chat = model.CreateChat();
                    IEnumerator<Piece> pieces = chat.Stream("x").GetEnumerator();
                    Assert.That(pieces.MoveNext(), Is.True);
                    Session raw = model.CreateSession();
                    raw.Eval(new[] { 1, 2, 3 });
                    Assert.That(raw.Fork().Position, Is.EqualTo(3));
                }));
                Reading.Collect();
            }
            using (var scripted = new Scripted(Scripted.Endless))
            {
                Task pressure = Limits.OnThread(() =>
                {
                    for (int i = 0; i < 50; i++)
                        Reading.Collect();
                });
                while (!pressure.IsCompleted)
                {
                    scripted.Chat.Reset();
                    Assert.That(
                        scripted.Chat.Ask("x", new GenerationOptions { MaxTokens = 3 }).Text,
                        Is.EqualTo("hahaha"));
                }
                Limits.Done(pressure);
            }
        }

        [Test]
        public void Row17_two_models_four_sessions_four_threads()
        {
            var facts = new Dictionary<string, string>
            {
                { "What is the capital of Italy?", "The capital of Italy is Rome." },
                { "What is the capital of Japan?", "The capital of Japan is Tokyo." },
                { "What is the capital of Spain?", "The capital of Spain is Madrid." },
                { "What is the capital of France?", "The capital of France is Paris." },
            };
            using (WasteModel first = WasteModel.Open(Places.Mini))
            using (WasteModel second = WasteModel.Open(Places.Mini))
            {
                Task[] readers = facts.Select((fact, index) => Limits.OnThread(() =>
                {
                    using (ChatSession chat = (index % 2 == 0 ? first : second).CreateChat())
                        for (int round = 0; round < 3; round++)
                        {
                            chat.Reset();
                            Assert.That(chat.Ask(fact.Key).Text, Is.EqualTo(fact.Value));
                        }
                })).ToArray();
                foreach (Task reader in readers)
                    Limits.Done(reader);
            }
        }

        [Test]
        public void Use_after_dispose_throws_and_dispose_twice_is_fine()
        {
            var scripted = new Scripted(Scripted.Endless);
            PieceStream early = scripted.Chat.Stream("x");
            Session raw = scripted.Model.CreateSession();
            scripted.Chat.Dispose();
            scripted.Chat.Dispose();
            foreach (TestDelegate use in new TestDelegate[]
            {
                () => scripted.Chat.Ask("x"), () => scripted.Chat.Stream("x"),
                () => scripted.Chat.StreamAsync("x"), () => scripted.Chat.AskAsync("x"),
                () => scripted.Chat.AddMessage(Role.User, "x"), () => scripted.Chat.GetTokens(),
                () => scripted.Chat.Reset(), () => scripted.Chat.Rewind(0),
                () => scripted.Chat.Fork(), () => scripted.Chat.Save("x"),
                () => scripted.Chat.Load("x"), () => scripted.Chat.GetStats(),
                () => scripted.Chat.Eval(new[] { 1 }), () => scripted.Chat.Cancel(),
                () => scripted.Chat.GetLogits(), () => early.GetEnumerator(),
            })
                Assert.Throws<ObjectDisposedException>(use);
            WasteModel model = scripted.Model;
            model.Dispose();
            model.Dispose();
            foreach (TestDelegate use in new TestDelegate[]
            {
                () => model.CreateChat(), () => model.CreateSession(), () => model.GetStats(),
                () => model.ReadLog(), () => model.Tokenizer.Encode("x"),
                () => model.Tokenizer.Decode(new[] { 1 }), () => raw.Eval(new[] { 1 }),
            })
                Assert.Throws<ObjectDisposedException>(use);
            Assert.That(model.Info.VocabSize, Is.GreaterThan(0), "plain values stay");
            using (WasteJob job = WasteJob.Verify(Places.Mini))
            {
                job.Dispose();
                job.Dispose();
                Assert.Throws<ObjectDisposedException>(() => job.Wait());
                job.Cancel();
            }
            scripted.Dispose();
        }

        private static void CheckCloseEnds(Scripted scripted, Action close)
        {
            PieceStream stream = scripted.Chat.Stream("x");
            int read = 0;
            Task reading = Limits.OnThread(() =>
            {
                foreach (Piece piece in stream)
                    Interlocked.Increment(ref read);
            });
            Limits.Until(() => Volatile.Read(ref read) == 1, "a piece");
            Limits.WithinLatency(close, "closing");
            Assert.That(() => Limits.Done(reading),
                        Throws.InstanceOf<OperationCanceledException>());
            Assert.That(stream.Completion.Text, Is.EqualTo("one"));
            Assert.Throws<ObjectDisposedException>(() => scripted.Chat.Ask("y"));
        }

        private static Action Take(List<Action> actions, int index)
        {
            Action taken = actions[index];
            actions.RemoveAt(index);
            return taken;
        }
    }
}
