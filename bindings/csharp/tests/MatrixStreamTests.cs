// SPDX-License-Identifier: Apache-2.0
//
// The behaviour matrix, rows about one answer: 5 to 9 and 12.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using NUnit.Framework;

namespace Waste.Tests
{
    [TestFixture]
    public class MatrixStreamTests
    {
        [Test]
        public void Row05_emoji_over_tokens_nul_and_text_that_is_none()
        {
            using (WasteModel model = WasteModel.Open(Places.Script("emoji")))
            using (ChatSession chat = model.CreateChat())
            {
                List<Piece> pieces = chat.Stream("x").ToList();
                Assert.That(string.Concat(pieces), Is.EqualTo("Hi 🐝!"));
                Assert.That(pieces.Single(piece => piece.Text == "🐝").TokenCount, Is.EqualTo(2));
                Assert.That(chat.Ask("y").Text, Is.EqualTo("你好"));
            }
            using (WasteModel model = WasteModel.Open(Places.Script("nul")))
            using (ChatSession chat = model.CreateChat())
                Assert.That(chat.Ask("a\0b").Text, Is.EqualTo("a\0b"));
            using (var scripted = new Scripted("{\"answers\": [[\"fine\"]]}"))
            {
                ChatSession chat = scripted.Chat;
                Refused(() => chat.Ask("half \ud83d"));
                Refused(() => chat.AddMessage(Role.User, "\udc1d half"));
                Refused(() => scripted.Model.Tokenizer.Encode("\ud83d"));
                Refused(() => WasteModel.Open("\ud83d"));
                var options = new GenerationOptions { Stop = { "\ud83d" } };
                Refused(() => chat.Ask("x", options));
                Assert.That(chat.Position, Is.EqualTo(0));
                Assert.That(chat.Ask("x").Text, Is.EqualTo("fine"), "the session is usable");
            }
        }

        [Test]
        public void Row06_stop_string_across_pieces_is_cut_exactly()
        {
            using (WasteModel model = WasteModel.Open(Places.Script("stops")))
            using (ChatSession chat = model.CreateChat())
            {
                var options = new GenerationOptions { Stop = { "END" } };
                List<Piece> pieces = chat.Stream("x", options).ToList();
                Assert.That(string.Concat(pieces), Is.EqualTo("one "));
                Completion second = chat.Ask("y", options);
                Assert.That(second.Text, Is.EqualTo("one ENX two"));
                options = new GenerationOptions { Stop = { "🐝" } };
                Completion third = chat.Ask("z", options);
                Assert.That(third.Text, Is.EqualTo("bee "));
                Assert.That(third.FinishReason, Is.EqualTo(FinishReason.Stop));
            }
        }

        [Test]
        public void Row07a_cancel_before_the_first_piece()
        {
            using (var scripted = new Scripted(Scripted.Endless))
            using (var source = new CancellationTokenSource())
            {
                source.Cancel();
                Assert.That(() => scripted.Chat.Ask("x", null, source.Token), Cancelled(source));
                Assert.That(scripted.Chat.Position, Is.EqualTo(0), "nothing was begun");
                PieceStream stream = scripted.Chat.Stream("x");
                IEnumerator<Piece> pieces = stream.GetEnumerator();
                stream.Cancel();
                Assert.That(() => pieces.MoveNext(), Throws.TypeOf<OperationCanceledException>());
                Assert.That(pieces.MoveNext(), Is.False, "told once");
                Assert.That(stream.Completion.Tokens, Is.Empty);
                CheckReusable(scripted.Chat);
            }
        }

        [Test]
        public void Row07b_cancel_in_the_prefill()
        {
            using (var scripted = new Scripted(
                       "{\"answers\": [[{\"repeat\": \"ha\"}]], \"prefill_stall_ms\": 60000}"))
            using (var source = new CancellationTokenSource())
            {
                Task reading = Limits.OnThread(() => scripted.Chat.Ask("x", null, source.Token));
                Limits.Until(() => scripted.Chat.Position > 0, "the prefill runs");
                Limits.WithinLatency(() =>
                {
                    source.Cancel();
                    Assert.That(() => Limits.Done(reading), Cancelled(source));
                }, "a cancel in the prefill");
            }
        }

        [Test]
        public void Row07c_cancel_in_a_token()
        {
            using (var scripted = new Scripted(
                       "{\"answers\": [[\"one\", {\"stall_ms\": 60000}, \"two\"], [\"next\"]]}"))
            using (var source = new CancellationTokenSource())
            {
                PieceStream stream = scripted.Chat.Stream("x", null, source.Token);
                var read = new List<string>();
                Task reading = Limits.OnThread(() =>
                {
                    foreach (Piece piece in stream)
                        lock (read)
                            read.Add(piece.Text);
                });
                Limits.Until(() => { lock (read) return read.Count == 1; }, "a piece");
                Limits.WithinLatency(() =>
                {
                    source.Cancel();
                    Assert.That(() => Limits.Done(reading), Cancelled(source));
                }, "a cancel in a token");
                Assert.That(stream.Completion.Text, Is.EqualTo("one"));
                Assert.That(stream.Completion.FinishReason, Is.EqualTo(FinishReason.Cancelled));
                Assert.That(scripted.Chat.Ask("y").Text, Is.EqualTo("next"));
            }
        }

        [Test]
        public void Row07d_cancel_after_the_end_and_twice()
        {
            using (var scripted = new Scripted("{\"answers\": [[\"done\"]]}"))
            {
                PieceStream stream = scripted.Chat.Stream("x");
                Assert.That(Reading.All(stream), Is.EqualTo("done"));
                stream.Cancel();
                stream.Cancel();
                scripted.Chat.Cancel();
                Assert.That(stream.Completion.FinishReason, Is.EqualTo(FinishReason.Stop));
                Assert.That(scripted.Chat.Ask("y").Text, Is.EqualTo("done"));
            }
            using (var scripted = new Scripted(Scripted.Endless))
            {
                PieceStream stream = scripted.Chat.Stream("x");
                Assert.That(() => Reading.All(stream, count =>
                {
                    stream.Cancel();
                    stream.Cancel();
                }), Throws.TypeOf<OperationCanceledException>());
                CheckReusable(scripted.Chat);
            }
        }

        [Test]
        public void Row07e_cancel_from_another_thread_delivers_what_was_pulled()
        {
            using (var scripted = new Scripted(Scripted.Endless))
            {
                PieceStream stream = scripted.Chat.Stream("x");
                string seen = "";
                Assert.That(() => Reading.All(stream, count =>
                {
                    seen += "ha";
                    if (count == 5)
                        Limits.Done(Limits.OnThread(stream.Cancel));
                }), Throws.TypeOf<OperationCanceledException>());
                Assert.That(seen, Is.EqualTo("hahahahaha"));
                Assert.That(stream.Completion.Text, Is.EqualTo(seen));
                Assert.That(stream.Completion.Tokens.Count, Is.EqualTo(5));
                int[] held = scripted.Chat.GetTokens();
                Assert.That(scripted.Model.Tokenizer.Decode(held), Is.StringEnding(seen));
            }
        }

        [Test]
        public void Row08_leaving_the_loop_frees_the_session_at_once()
        {
            using (var scripted = new Scripted(Scripted.Endless))
            {
                PieceStream left = scripted.Chat.Stream("x");
                foreach (Piece piece in left)
                    break;
                Assert.That(left.Completion.Text, Is.EqualTo("ha"));
                CheckReusable(scripted.Chat);

                IEnumerator<Piece> pieces = scripted.Chat.Stream("y").GetEnumerator();
                Assert.That(pieces.MoveNext(), Is.True);
                pieces.Dispose();
                pieces.Dispose();
                Assert.That(pieces.MoveNext(), Is.False, "it just ends");
                CheckReusable(scripted.Chat);

                Limits.Done(LeaveAsync(scripted.Chat));
                CheckReusable(scripted.Chat);
            }
        }

        [Test]
        public void Row08_a_dropped_enumerator_is_collected()
        {
            using (var scripted = new Scripted(Scripted.Endless))
            {
                Drop(scripted.Chat);
                Limits.Until(() => IsFree(scripted.Chat), "the stream is collected");
                DropAsync(scripted.Chat);
                Limits.Until(() => IsFree(scripted.Chat), "the async stream is collected");
            }
        }

        [Test]
        public void Row09_a_second_answer_is_busy_and_the_first_unaffected()
        {
            using (var scripted = new Scripted("{\"answers\": [[\"a\", \"b\", \"c\"]]}"))
            {
                string text = Reading.All(scripted.Chat.Stream("x"), count =>
                {
                    var busy = Assert.Throws<SessionBusyException>(() => scripted.Chat.Ask("y"));
                    Assert.That(busy.Status, Is.EqualTo(WasteStatus.Busy));
                    Assert.That(() => Limits.Done(scripted.Chat.AskAsync("y")),
                                Throws.TypeOf<SessionBusyException>());
                    Assert.That(() => scripted.Chat.Reset(), Throws.TypeOf<SessionBusyException>());
                });
                Assert.That(text, Is.EqualTo("abc"));
            }
        }

        [Test]
        public void Row12_longer_than_the_context()
        {
            using (WasteModel model = WasteModel.Open(Places.Script("endless"),
                                                      new ModelOptions { ContextTokens = 128 }))
            using (ChatSession chat = model.CreateChat())
            {
                chat.Ask("x", new GenerationOptions { MaxTokens = 1 });
                int[] held = chat.GetTokens();
                var full = Assert.Throws<ContextFullException>(
                    () => chat.Ask(new string('x', 1000)));
                Assert.That(full.Status, Is.EqualTo(WasteStatus.ContextFull));
                Assert.That(chat.GetTokens(), Is.EqualTo(held), "unchanged");
                Completion toTheEnd = chat.Ask(null);
                Assert.That(toTheEnd.FinishReason, Is.EqualTo(FinishReason.Length));
                Assert.That(chat.Position, Is.EqualTo(128));
            }
        }

        private static void Refused(TestDelegate action)
        {
            var refused = Assert.Throws<WasteException>(action);
            Assert.That(refused.Status, Is.EqualTo(WasteStatus.Argument));
        }

        internal static NUnit.Framework.Constraints.Constraint Cancelled(
            CancellationTokenSource source)
        {
            return Throws.InstanceOf<OperationCanceledException>()
                .And.Property("CancellationToken").EqualTo(source.Token);
        }

        private static void CheckReusable(ChatSession chat)
        {
            Completion next = chat.Ask("again", new GenerationOptions { MaxTokens = 2 });
            Assert.That(next.Text, Is.EqualTo("haha"));
        }

        private static bool IsFree(ChatSession chat)
        {
            Reading.Collect();
            try
            {
                CheckReusable(chat);
                return true;
            }
            catch (SessionBusyException)
            {
                return false;
            }
        }

        private static async Task LeaveAsync(ChatSession chat)
        {
            IAsyncEnumerator<Piece> pieces = chat.StreamAsync("z").GetAsyncEnumerator();
            Assert.That(await pieces.MoveNextAsync().ConfigureAwait(false), Is.True);
            await pieces.DisposeAsync().ConfigureAwait(false);
            await pieces.DisposeAsync().ConfigureAwait(false);
            Assert.That(await pieces.MoveNextAsync().ConfigureAwait(false), Is.False);
        }

        // Own methods on own threads, so that no stack slot keeps what is dropped.
        private static void Drop(ChatSession chat)
        {
            Limits.Done(Limits.OnThread(() =>
            {
                IEnumerator<Piece> pieces = chat.Stream("x").GetEnumerator();
                Assert.That(pieces.MoveNext(), Is.True);
            }));
        }

        private static void DropAsync(ChatSession chat)
        {
            Limits.Done(Limits.OnThread(() =>
            {
                IAsyncEnumerator<Piece> pieces = chat.StreamAsync("x").GetAsyncEnumerator();
                Assert.That(Limits.Result(pieces.MoveNextAsync().AsTask()), Is.True);
            }));
        }
    }
}
