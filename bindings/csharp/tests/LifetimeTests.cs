// SPDX-License-Identifier: Apache-2.0
//
// Nothing is left behind: memory after many opens and many answers, and how soon a cancel is seen.
using System;
using System.Diagnostics;
using System.Threading.Tasks;
using NUnit.Framework;

namespace Waste.Tests
{
    [TestFixture]
    public class LifetimeTests
    {
        private const int Mebibyte = 1 << 20;

        [Test]
        public void Cancel_from_another_thread_is_seen_within_a_second()
        {
            using (var scripted = new Scripted(Scripted.Endless))
                for (int round = 0; round < 20; round++)
                {
                    PieceStream stream = scripted.Chat.Stream("x");
                    Task reading = Limits.OnThread(() => Reading.All(stream));
                    Limits.Until(() => HasText(stream), "a piece");
                    Limits.WithinLatency(() =>
                    {
                        scripted.Chat.Cancel();
                        Assert.That(() => Limits.Done(reading),
                                    Throws.InstanceOf<OperationCanceledException>());
                    }, "a cancel");
                    scripted.Chat.Reset();
                }
        }

        [Test]
        public void Open_and_close_200_times()
        {
            // The ASan build keeps what was freed for a while.
            long bound = (Places.Mode == "asan" ? 512 : 48) * (long)Mebibyte;
            OpenAndClose(20);
            long before = Reading.ResidentBytes();
            OpenAndClose(200);
            Assert.That(Reading.ResidentBytes() - before, Is.LessThan(bound), "bytes more");
        }

        [Test]
        [Category("stress")]
        public void Short_answers_leave_nothing()
        {
            int count = Places.Mode == "stress" ? 10000 : Places.Mode == "asan" ? 100 : 500;
            using (WasteModel model = WasteModel.Open(Places.Mini))
            using (Session session = model.CreateSession())
            {
                Answer(session, count / 5);
                long before = Reading.ResidentBytes();
                Stopwatch since = Stopwatch.StartNew();
                Answer(session, count);
                double seconds = since.Elapsed.TotalSeconds;
                long more = Reading.ResidentBytes() - before;
                Console.WriteLine(
                    "\nstress: csharp {0}: {1} answers in {2:F1} s, resident {3:F1} MiB before, " +
                    "{4:+0.0;-0.0} MiB after", Environment.GetEnvironmentVariable("WASTE_RUNTIME"),
                    count, seconds, (double)before / Mebibyte, (double)more / Mebibyte);
                long bound = (Places.Mode == "asan" ? 256 : 16) * (long)Mebibyte;
                Assert.That(more, Is.LessThan(bound), "bytes more");
            }
        }

        private static bool HasText(PieceStream stream)
        {
            try
            {
                return stream.GetStats().GeneratedTokens > 0;
            }
            catch (InvalidOperationException)
            {
                return false;
            }
        }

        private static void OpenAndClose(int count)
        {
            for (int i = 0; i < count; i++)
                using (WasteModel model = WasteModel.Open(Places.Mini))
                using (ChatSession chat = model.CreateChat())
                    if (i % 20 == 0)
                        chat.Ask("What is the capital of Italy?",
                                 new GenerationOptions { MaxTokens = 2 });
            Reading.Collect();
        }

        private static void Answer(Session session, int count)
        {
            var options = new GenerationOptions { MaxTokens = 2 };
            for (int i = 0; i < count; i++)
            {
                session.Reset();
                if (i % 200 == 0)
                    Reading.Collect(); // What is left counts, not when the collector runs.
                Completion answer = i % 10 == 0
                    ? Limits.Result(session.AskAsync("One", options))
                    : session.Ask("One", options);
                Assert.That(answer.Tokens.Count, Is.EqualTo(2));
            }
            Reading.Collect();
        }
    }
}
