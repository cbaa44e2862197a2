// SPDX-License-Identifier: Apache-2.0
//
// Cancelling Session.Eval: by its token, by Cancel, by closing, at every moment, and only the one
// that is meant. The scripted model stalls far longer than the tests wait.
using System;
using System.Diagnostics;
using System.Threading;
using System.Threading.Tasks;
using NUnit.Framework;

namespace Waste.Tests
{
    [TestFixture]
    public class EvalTests
    {
        private const string Stalls =
            "{\"answers\": [[{\"repeat\": \"ha\"}]], \"prefill_stall_ms\": 20000}";
        private static readonly int[] Two = { 65, 66 };

        [Test]
        public void Token_cancels_an_eval_which_leaves_the_session_as_it_was()
        {
            using (WasteModel model = WasteModel.Open(Places.Mini))
            using (Session session = model.CreateSession())
            using (var source = new CancellationTokenSource())
            {
                int[] begin = model.Tokenizer.Encode("The capital of Italy is");
                session.Eval(begin);
                float[] before = session.GetLogits();
                Task running = Limits.OnThread(() => session.Eval(new int[6000], 1, source.Token));
                Runs(session, begin.Length);
                Limits.WithinLatency(() =>
                {
                    source.Cancel();
                    Assert.That(() => Limits.Done(running), MatrixStreamTests.Cancelled(source));
                }, "a cancel");
                Assert.That(session.GetTokens(), Is.EqualTo(begin));
                Assert.That(session.GetLogits(), Is.EqualTo(before));
                session.Rewind(begin.Length - 1);
                session.Eval(new[] { begin[begin.Length - 1] });
                Assert.That(session.GetLogits(), Is.EqualTo(before).Within(1e-3));
                Assert.That(session.Ask("", new GenerationOptions { MaxTokens = 2 }).Text,
                            Is.EqualTo(" Rome"));
            }
        }

        [Test]
        public void Token_that_cancelled_before_runs_nothing()
        {
            using (var scripted = new Scripted(Stalls))
            using (Session session = scripted.Model.CreateSession())
            using (var source = new CancellationTokenSource())
            {
                source.Cancel();
                Limits.WithinLatency(() =>
                {
                    Assert.That(() => session.Eval(Two, 1, source.Token),
                                MatrixStreamTests.Cancelled(source));
                    Task later = session.EvalAsync(Two, 1, source.Token);
                    Assert.That(() => Limits.Done(later), MatrixStreamTests.Cancelled(source));
                    Assert.That(later.IsCanceled, Is.True);
                }, "a cancel before the call");
                Assert.That(session.Position, Is.EqualTo(0));
            }
        }

        [Test]
        public void Cancel_of_the_session_ends_an_eval()
        {
            using (var scripted = new Scripted(Stalls))
            using (Session session = scripted.Model.CreateSession())
            {
                session.Cancel(); // Nothing runs: this one is forgotten.
                for (int round = 0; round < 3; round++)
                {
                    Task running = Start(session);
                    Limits.WithinLatency(() =>
                    {
                        session.Cancel();
                        session.Cancel();
                        Assert.That(() => Limits.Done(running),
                                    Throws.InstanceOf<OperationCanceledException>());
                    }, "a cancel");
                    Assert.That(session.GetTokens(), Is.Empty);
                }
            }
        }

        [Test]
        public void Closing_ends_an_eval_at_once()
        {
            foreach (bool ofModel in new[] { false, true })
                foreach (bool later in new[] { false, true })
                    using (var scripted = new Scripted(Stalls))
                    {
                        Session session = scripted.Model.CreateSession();
                        Task running = Start(session);
                        Stopwatch since = Stopwatch.StartNew();
                        Close(scripted.Model, session, ofModel, later);
                        Assert.That(since.ElapsedMilliseconds, Is.LessThan(500), "closing");
                        Assert.That(() => Limits.Done(running),
                                    Throws.InstanceOf<OperationCanceledException>());
                        Assert.Throws<ObjectDisposedException>(() => session.Eval(Two));
                    }
        }

        [Test]
        public void Cancel_is_never_lost_whenever_it_comes()
        {
            int rounds = Places.Mode == "asan" ? 100 : 400;
            using (var scripted = new Scripted(Stalls))
            using (Session session = scripted.Model.CreateSession())
                for (int round = 0; round < rounds; round++)
                    using (var source = new CancellationTokenSource())
                    using (var begin = new Barrier(2))
                    {
                        Task running = Limits.OnThread(() =>
                        {
                            begin.SignalAndWait();
                            session.Eval(Two, 1, source.Token);
                        });
                        begin.SignalAndWait();
                        Thread.SpinWait(round * 20);
                        Limits.WithinLatency(() =>
                        {
                            source.Cancel();
                            Assert.That(() => Limits.Done(running),
                                        MatrixStreamTests.Cancelled(source));
                        }, "round " + round);
                    }
        }

        [Test]
        public void Cancelled_token_of_a_refused_eval_does_not_stop_the_one_that_runs()
        {
            using (var scripted = new Scripted(Stalls))
            using (Session session = scripted.Model.CreateSession())
            using (var source = new CancellationTokenSource())
            {
                Task running = Start(session);
                Assert.That(() => session.Eval(Two, 1, source.Token),
                            Throws.TypeOf<SessionBusyException>());
                source.Cancel();
                Assert.That(() => session.Eval(Two, 1, source.Token),
                            Throws.TypeOf<SessionBusyException>());
                Assert.That(running.Wait(50), Is.False, "it goes on");
                session.Cancel();
                Assert.That(() => Limits.Done(running),
                            Throws.InstanceOf<OperationCanceledException>());
            }
        }

        private static Task Start(Session session)
        {
            Task running = Limits.OnThread(() => session.Eval(Two));
            Runs(session, 0);
            return running;
        }

        // Asks for what does not claim the session: a claim could refuse the evaluation itself.
        private static void Runs(Session session, long held)
        {
            Limits.Until(() => session.Position > held, "the evaluation runs");
        }

        private static void Close(WasteModel model, Session session, bool ofModel, bool later)
        {
            if (later)
                Limits.Done((ofModel ? model.DisposeAsync() : session.DisposeAsync()).AsTask());
            else if (ofModel)
                model.Dispose();
            else
                session.Dispose();
        }
    }
}
