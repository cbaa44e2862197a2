// SPDX-License-Identifier: Apache-2.0
//
// Each part of the API once, against the small real model where numbers matter.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using NUnit.Framework;

namespace Waste.Tests
{
    [TestFixture]
    public class ApiTests
    {
        private const string Question = "What is the capital of Italy?";
        private const string Rome = "The capital of Italy is Rome.";

        [Test]
        public void Info_plan_and_version()
        {
            Assert.That(WasteModel.LibraryVersion, Is.StringMatching(@"^\d+\.\d+\.\d+$"));
            var options = new ModelOptions
            {
                Threads = 1, ContextTokens = 300, Io = IoMode.Buffered, VerifyRecords = true,
                NoLookahead = true, Arithmetic = ArithmeticMode.Exact,
                InstructionSet = InstructionSet.Scalar, ReadLanes = 3,
            };
            MemoryPlan plan = WasteModel.Plan(Places.Mini, options);
            Assert.That(plan.Fits, Is.True);
            Assert.That(plan.FloorBytes, Is.EqualTo(plan.TrunkBytes + plan.StateBytes +
                                                    plan.ScratchBytes + plan.StagingBytes));
            Assert.That(plan.BudgetBytes,
                Is.GreaterThanOrEqualTo(plan.FloorBytes + plan.CacheBytes));
            Assert.That(plan.RecommendedBytes, Is.GreaterThan(plan.FloorBytes));
            Assert.That(plan.UsableBytes, Is.GreaterThan(plan.BudgetBytes));
            Assert.That(plan.ReservedBytes, Is.GreaterThanOrEqualTo(0));
            using (WasteModel model = WasteModel.Open(Places.Mini, options))
            {
                ModelInfo info = model.Info;
                Assert.That(info.Architecture, Is.EqualTo("kimi-k3"));
                Assert.That(new[]
                {
                    info.VocabSize, info.LayerCount, info.HiddenSize, info.ExpertCount,
                    info.ExpertsPerToken, info.Threads, info.EosToken,
                }, Is.EqualTo(new[] { 2048, 8, 192, 32, 4, 1, 1986 }));
                Assert.That(info.ContextTokens, Is.EqualTo(300));
                Assert.That(info.TokenTrunkBytes, Is.InRange(1, plan.TrunkBytes));
                Assert.That(info.TokenFlops, Is.GreaterThan(2 * info.VocabSize * info.HiddenSize));
                Assert.That(info.ExpertBytes, Is.EqualTo(16384));
                Assert.That(info.ContainerBytes, Is.GreaterThan(7000000));
                Assert.That(info.BudgetBytes, Is.EqualTo(plan.BudgetBytes));
                Assert.That(info.CacheSlots, Is.GreaterThan(0));
                Assert.That(info.ReadLanes, Is.EqualTo(3));
                Assert.That(info.InstructionSet, Is.EqualTo(InstructionSet.Scalar));
                Assert.That(new[] { info.DirectIo, info.Thinking, info.HasChat },
                            Is.EqualTo(new[] { false, true, true }));
            }
            foreach (int lanes in new[] { -1, 33 })
                Refused(() => WasteModel.Open(Places.Mini, new ModelOptions { ReadLanes = lanes }));
        }

        [Test]
        public void Cpu_lists_reach_the_library()
        {
            const string name = "Cpus_allowed_list:\t";
            string granted = File.ReadLines("/proc/self/status").First(l => l.StartsWith(name));
            string first = string.Concat(
                granted.Substring(name.Length).TakeWhile(c => c >= '0' && c <= '9'));
            using (WasteModel model = WasteModel.Open(
                       Places.Mini, new ModelOptions { CpuList = first }))
            using (ChatSession chat = model.CreateChat())
            {
                Assert.That(model.Info.Threads, Is.EqualTo(1));
                Assert.That(chat.Ask(Question).Text, Is.EqualTo(Rome));
            }
            WasteModel.Open(Places.Mini, new ModelOptions { CpuList = "" }).Dispose();
            foreach (string list in new[] { "x", first + ",", "8191", first + "\0" })
                Refused(() => WasteModel.Open(Places.Mini, new ModelOptions { CpuList = list }));
        }

        [Test]
        public void Answer_carries_tokens_logprobs_usage_and_timings()
        {
            using (WasteModel model = WasteModel.Open(Places.Mini))
            using (ChatSession chat = model.CreateChat())
            {
                var options = new GenerationOptions { LogProbs = true };
                PieceStream stream = chat.Stream(Question, options);
                Assert.Throws<InvalidOperationException>(() => stream.GetStats());
                Assert.That(() => stream.Completion, Throws.InvalidOperationException);
                List<Piece> pieces = stream.ToList();
                Completion answer = stream.Completion;
                Assert.That(answer.Text, Is.EqualTo(Rome));
                Assert.That(answer.ToString(), Is.EqualTo(string.Concat(pieces)));
                Assert.That(answer.Tool, Is.Empty);
                Assert.That(answer.LogProbs.Count, Is.EqualTo(answer.Tokens.Count));
                Assert.That(answer.LogProbs.All(value => value <= 0 && value > -5), Is.True);
                Assert.That(answer.Usage.GeneratedTokens, Is.EqualTo(answer.Tokens.Count));
                Assert.That(answer.Usage.PromptTokens, Is.GreaterThan(5));
                Assert.That(answer.Timings.Prefill, Is.GreaterThan(TimeSpan.Zero));
                Assert.That(answer.Timings.Decode, Is.GreaterThan(TimeSpan.Zero));
                Assert.That(pieces[0].TokenId, Is.EqualTo(answer.Tokens[0]));
                Assert.That(pieces[0].LogProb, Is.EqualTo(answer.LogProbs[0]).Within(1e-9));
                Assert.That(pieces[1].FirstIndex, Is.EqualTo(1));
                Assert.That(pieces.Select(piece => piece.Position).ToList(), Is.Ordered);
                Assert.That(stream.GetStats().GeneratedTokens, Is.EqualTo(answer.Tokens.Count));
                Assert.Throws<InvalidOperationException>(() => stream.GetEnumerator());
                Assert.That(chat.Ask(Question).LogProbs, Is.Null);
            }
        }

        [Test]
        public void Messages_of_every_role_and_a_null_prompt()
        {
            using (WasteModel model = WasteModel.Open(Places.Mini))
            using (ChatSession chat = model.CreateChat(new SessionOptions { System = "Be terse." }))
            {
                chat.AddMessage(Role.User, "What is the capital of Japan?");
                chat.AddMessage(Role.Assistant, "The capital of Japan is Tokyo.");
                chat.AddMessage(Role.User, Question);
                Assert.That(chat.Ask(null).Text, Is.EqualTo(Rome));
                var options = new GenerationOptions { MaxTokens = 3 };
                string begin = chat.Ask(Question, options).Text;
                Assert.That(begin + chat.Ask(null).Text, Is.EqualTo(Rome), "goes on");
            }
        }

        [Test]
        public void Options_are_copied_when_the_answer_is_asked_for()
        {
            using (WasteModel model = WasteModel.Open(Places.Mini))
            using (ChatSession chat = model.CreateChat())
            {
                var options = new GenerationOptions();
                PieceStream stream = chat.Stream(Question, options);
                options.MaxTokens = 1;
                options.Stop.Add("capital");
                Assert.That(Reading.All(stream), Is.EqualTo(Rome));
            }
        }

        [Test]
        public void Bad_options_are_argument_errors_and_leave_the_session_free()
        {
            using (var scripted = new Scripted("{\"answers\": [[\"fine\"]]}"))
            {
                foreach (GenerationOptions bad in new[]
                {
                    new GenerationOptions { Temperature = -1 },
                    new GenerationOptions { MaxTokens = -1 },
                    new GenerationOptions { Stop = { "" } },
                    new GenerationOptions { StopTokens = { -1 } },
                    new GenerationOptions { LogitBias = { { 1 << 30, 1.0 } } },
                })
                    Assert.That(
                        Assert.Throws<WasteException>(() => scripted.Chat.Ask("x", bad)).Status,
                        Is.EqualTo(WasteStatus.Argument));
                Assert.That(scripted.Chat.Ask("x").Text, Is.EqualTo("fine"));
                Assert.Throws<ArgumentNullException>(
                    () => scripted.Chat.AddMessage(Role.User, null));
                Assert.Throws<ArgumentNullException>(() => WasteModel.Open(null));
                Assert.Throws<ArgumentException>(() => scripted.Model.CreateSession(
                    new SessionOptions { System = "x" }));
            }
        }

        [Test]
        public void Errors_of_every_kind_have_their_status_and_message()
        {
            foreach (string name in new[]
            {
                "IO", "FORMAT", "CORRUPT", "UNSUPPORTED", "NO_MEMORY", "VERSION", "INTERNAL",
            })
                using (var scripted = new Scripted(
                           "{\"answers\": [[\"be\", {\"error\": \"" + name +
                           "\", \"message\": \"bank 3: 🐝\", \"times\": 1}, \"fore\"]]}"))
                {
                    PieceStream stream = scripted.Chat.Stream("x");
                    var error = Assert.Throws<WasteException>(() =>
                    {
                        try
                        {
                            Reading.All(stream);
                        }
                        catch (ModelFormatException known)
                        {
                            throw new WasteException(known.Status, known.Message);
                        }
                    });
                    Assert.That(error.Status.ToString(),
                                Is.EqualTo(name.Replace("_", "")).IgnoreCase);
                    Assert.That(error.Message, Is.StringContaining("bank 3: 🐝"));
                    Assert.That(stream.Completion.Text, Is.EqualTo("be"));
                }
        }

        [Test]
        public void Raw_session_evaluates_and_gives_logits()
        {
            using (WasteModel model = WasteModel.Open(Places.Mini))
            using (Session raw = model.CreateSession(new SessionOptions { ContextTokens = 64 }))
            {
                int[] tokens = model.Tokenizer.Encode("The capital of Italy is");
                Assert.Throws<InvalidOperationException>(() => raw.GetLogits());
                raw.Eval(tokens, 2);
                int vocabulary = model.Info.VocabSize;
                float[] two = raw.GetLogits();
                Assert.That(two.Length, Is.EqualTo(2 * vocabulary));
                Assert.That(raw.LogitRows, Is.EqualTo(2));
                Assert.That(raw.GetTokens(), Is.EqualTo(tokens));
                raw.Rewind(tokens.Length - 1);
                Limits.Done(raw.EvalAsync(new[] { tokens.Last() }));
                float[] last = raw.GetLogits();
                Assert.That(last, Is.EqualTo(two.Skip(vocabulary)).Within(1e-3));
                int best = Array.IndexOf(last, last.Max());
                Completion next = raw.Ask("", new GenerationOptions { MaxTokens = 1 });
                Assert.That(next.Tokens.Single(), Is.EqualTo(best), "greedy");
                raw.Eval(new[] { 1 }, 0);
                Assert.Throws<InvalidOperationException>(() => raw.GetLogits());
                Assert.That(() => raw.Eval(new int[64]), Throws.TypeOf<ContextFullException>());
                Assert.That(() => raw.Eval(new[] { -1 }), Throws.TypeOf<WasteException>());
                raw.Reset();
                Assert.That(raw.Position, Is.EqualTo(0));
            }
        }

        [Test]
        public void Fork_rewind_and_reset()
        {
            using (WasteModel model = WasteModel.Open(Places.Mini))
            using (ChatSession chat = model.CreateChat())
            {
                chat.Ask(Question);
                long afterFirst = chat.Position;
                using (ChatSession fork = chat.Fork())
                {
                    string japan = fork.Ask("What is the capital of Japan?").Text;
                    Assert.That(japan, Is.EqualTo("The capital of Japan is Tokyo."));
                    Assert.That(chat.Position, Is.EqualTo(afterFirst));
                    fork.Rewind(afterFirst);
                    Assert.That(fork.GetTokens(), Is.EqualTo(chat.GetTokens()));
                    Assert.That(fork.Ask("What is the capital of Japan?").Text, Is.EqualTo(japan));
                }
                Assert.That(() => chat.Rewind(100000), Throws.TypeOf<WasteException>());
                chat.Reset();
                Assert.That(chat.GetTokens(), Is.Empty);
            }
        }

        [Test]
        public void Stats_of_model_session_and_answer()
        {
            using (WasteModel model = WasteModel.Open(Places.Mini))
            using (ChatSession chat = model.CreateChat(new SessionOptions { ContextTokens = 256 }))
            {
                Completion answer = chat.Ask(Question);
                WasteStats ofAnswer = answer.Stats, ofChat = chat.GetStats();
                Assert.That(ofAnswer.FinishReason, Is.EqualTo(FinishReason.Stop));
                Assert.That(ofChat.Position, Is.EqualTo(chat.Position));
                Assert.That(ofChat.ContextTokens, Is.EqualTo(256));
                Assert.That(ofChat.MemoryBytes, Is.GreaterThan(0));
                Assert.That(ofChat.GeneratedTokens, Is.EqualTo(ofAnswer.GeneratedTokens));
                WasteStats ofModel = model.GetStats();
                Assert.That(ofModel.ExpertsHit + ofModel.ExpertsMissed, Is.GreaterThan(0));
                Assert.That(ofModel.MemoryBytes, Is.GreaterThan(ofChat.MemoryBytes));
                Assert.That(ofModel.PeakRssBytes, Is.GreaterThan(1 << 20));
                Assert.That(model.ReadLog(), Is.Not.Null);
            }
        }

        [Test]
        public void Every_use_of_an_expert_is_counted_once()
        {
            foreach (bool noLookahead in new[] { false, true })
            {
                var options = new ModelOptions { ContextTokens = 256, NoLookahead = noLookahead };
                // Then nothing fills the cache.
                options.RamBudget = WasteModel.Plan(Places.Mini, options).FloorBytes;
                using (WasteModel model = WasteModel.Open(Places.Mini, options))
                using (Session raw = model.CreateSession())
                {
                    for (int i = 0; i < 3; ++i)
                        raw.Eval(new[] { 65 });
                    WasteStats stats = model.GetStats();
                    long expertBytes = model.Info.ExpertBytes;
                    long missed = stats.ExpertsMissed;
                    Assert.That(stats.ExpertsHit + missed, Is.EqualTo(3 * 7 * 4), "7 layers");
                    Assert.That(stats.ExpertsForeseen, Is.InRange(0, missed - 1), "not the first");
                    Assert.That(stats.SpeculativeBytes,
                                Is.EqualTo(stats.SpeculativeReads * expertBytes));
                    Assert.That(stats.BytesRead, Is.AtLeast(
                        (missed - stats.ExpertsForeseen) * expertBytes + stats.SpeculativeBytes));
                    Assert.That(stats.ReadStalls > 0 || stats.ReadTime == TimeSpan.Zero, Is.True);
                    Assert.That(stats.ReadStalls, Is.AtMost(missed + stats.SpeculativeReads));
                    if (noLookahead)
                        Assert.That(stats.ExpertsForeseen + stats.SpeculativeReads, Is.EqualTo(0));
                }
            }
        }

        [Test]
        public void Tokenizer_gives_text_and_raw_bytes()
        {
            using (WasteModel model = WasteModel.Open(Places.Mini))
            {
                Tokenizer tokenizer = model.Tokenizer;
                int[] bee = tokenizer.Encode("🐝");
                Assert.That(bee.Length, Is.GreaterThan(1));
                byte[] head = tokenizer.DecodeBytes(bee.Take(1).ToArray());
                Assert.That(head[0], Is.EqualTo(0xf0));
                Assert.That(tokenizer.Decode(bee.Take(1).ToArray()), Is.EqualTo("\ufffd"));
                Assert.That(tokenizer.DecodeBytes(new int[0]), Is.Empty);
                string longText = string.Concat(Enumerable.Repeat("Rome 🐝 ", 500));
                Assert.That(tokenizer.Decode(tokenizer.Encode(longText)), Is.EqualTo(longText));
                Assert.That(() => tokenizer.Decode(new[] { -1 }), Throws.TypeOf<WasteException>());
            }
        }

        [Test]
        public void Verify_and_convert_are_jobs()
        {
            using (WasteJob job = WasteJob.Verify(Places.Mini))
            {
                var seen = new List<double>();
                job.Wait(new Collected(seen));
                Assert.That(job.Progress.IsFinished, Is.True);
                Assert.That(job.Progress.Total, Is.GreaterThan(7000000));
                Assert.That(seen.Last(), Is.EqualTo(1.0));
                Assert.That(job.ReadLog(), Is.Not.Null);
            }
            using (var folder = new TemporaryFolder())
            {
                string damaged = folder.CopyOfMini("damaged.waste");
                string bank = Path.Combine(damaged, "experts-L3.bin");
                byte[] bytes = File.ReadAllBytes(bank);
                bytes[20000] ^= 1;
                File.WriteAllBytes(bank, bytes);
                using (WasteJob job = WasteJob.Verify(damaged))
                    Assert.That(() => Limits.Done(job.WaitAsync()), Throws
                        .TypeOf<ModelFormatException>().And.Property("Status")
                        .EqualTo(WasteStatus.Corrupt));
                string missing = folder.File("missing");
                using (WasteJob job = WasteJob.Convert(missing, folder.File("out.waste"),
                                                       new ConvertOptions { Threads = 1 }))
                    Assert.That(() => job.Wait(), Throws.InstanceOf<WasteException>()
                        .And.Message.StringContaining(missing));
                Assert.That(Directory.Exists(folder.File("out.waste")), Is.False);
            }
        }

        [Test]
        public void Synthesize_writes_a_model_that_answers()
        {
            using (var folder = new TemporaryFolder())
            {
                string target = folder.File("random.waste");
                var options = new SynthesisOptions { Layers = 3, Experts = 8, Seed = 7 };
                using (WasteJob job = WasteJob.Synthesize("mini", target, options))
                {
                    var seen = new List<double>();
                    job.Wait(new Collected(seen));
                    Assert.That(seen.Last(), Is.EqualTo(1.0));
                }
                using (WasteModel model = WasteModel.Open(target))
                {
                    Assert.That(model.Info.LayerCount, Is.EqualTo(3));
                    Assert.That(model.Info.ExpertCount, Is.EqualTo(8));
                    int[] first = FourTokens(model);
                    Assert.That(first.Length, Is.EqualTo(4));
                    Assert.That(FourTokens(model), Is.EqualTo(first));
                }
                Refused(() => WasteJob.Synthesize("maxi", folder.File("other.waste")));
                Refused(() => WasteJob.Synthesize(
                    "mini", folder.File("other.waste"), new SynthesisOptions { Seed = -1 }));
                Refused(() =>
                {
                    using (WasteJob job = WasteJob.Synthesize("mini", target, options))
                        Limits.Done(job.WaitAsync());
                });
                Assert.Throws<ArgumentNullException>(() => WasteJob.Synthesize(null, target));
            }
        }

        [Test]
        public void Cancelled_synthesis_leaves_nothing()
        {
            using (var folder = new TemporaryFolder())
            using (WasteJob job = WasteJob.Synthesize("mini", folder.File("random.waste")))
            {
                job.Cancel();
                Assert.That(() => job.Wait(), Throws.InstanceOf<OperationCanceledException>());
                Assert.That(Directory.GetFileSystemEntries(folder.Path), Is.Empty);
            }
        }

        [Test]
        public void Cancelled_job_throws_operation_cancelled()
        {
            using (WasteJob job = WasteJob.Verify(Places.Mini))
            {
                job.Cancel();
                job.Cancel();
                Assert.That(() => job.Wait(), Throws.InstanceOf<OperationCanceledException>());
            }
        }

        private static int[] FourTokens(WasteModel model)
        {
            using (Session raw = model.CreateSession())
                return raw.Ask("One", new GenerationOptions { MaxTokens = 4 }).Tokens.ToArray();
        }

        private static void Refused(TestDelegate call)
        {
            Assert.That(Assert.Throws<WasteException>(call).Status,
                        Is.EqualTo(WasteStatus.Argument));
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
