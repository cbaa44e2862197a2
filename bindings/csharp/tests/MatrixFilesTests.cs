// SPDX-License-Identifier: Apache-2.0
//
// The behaviour matrix, rows about opening and files: 1 to 4 and 13.
using System;
using System.IO;
using System.Linq;
using System.Threading;
using NUnit.Framework;

namespace Waste.Tests
{
    [TestFixture]
    public class MatrixFilesTests
    {
        private const string NewerVersion = "\"format_version\": 99";
        private const string Version = "\"format_version\": 0";

        [Test]
        public void Row01_open_missing_truncated_wrong_magic_wrong_version()
        {
            using (var folder = new TemporaryFolder())
            {
                string missing = folder.File("missing.waste");
                Assert.That(Refused<WasteException>(missing).Status, Is.EqualTo(WasteStatus.Io));

                string truncated = folder.CopyOfMini("truncated.waste");
                string trunk = Path.Combine(truncated, "trunk.bin");
                using (FileStream file = File.OpenWrite(trunk))
                    file.SetLength(file.Length / 2);
                Assert.That(Refused<ModelFormatException>(truncated).Status,
                            Is.EqualTo(WasteStatus.Corrupt));

                string magic = folder.CopyOfMini("magic.waste");
                File.WriteAllText(Path.Combine(magic, "manifest.json"), "GGUF, not a manifest");
                Assert.That(Refused<ModelFormatException>(magic).Status,
                            Is.EqualTo(WasteStatus.Corrupt).Or.EqualTo(WasteStatus.Format));

                string newer = folder.CopyOfMini("newer.waste");
                string manifest = Path.Combine(newer, "manifest.json");
                string text = File.ReadAllText(manifest);
                Assert.That(text, Is.StringContaining(Version));
                File.WriteAllText(manifest, text.Replace(Version, NewerVersion));
                Assert.That(Refused<ModelFormatException>(newer).Status,
                            Is.EqualTo(WasteStatus.Version));
            }
            CheckThatMiniOpens();
        }

        [Test]
        public void Row02_budget_too_small_carries_needed_bytes()
        {
            var options = new ModelOptions { RamBudget = 1 << 20 };
            MemoryPlan plan = WasteModel.Plan(Places.Mini, options);
            Assert.That(plan.Fits, Is.False);
            var refused = Assert.Throws<RamBudgetException>(
                () => WasteModel.Open(Places.Mini, options));
            Assert.That(refused.Status, Is.EqualTo(WasteStatus.RamBudget));
            Assert.That(refused.NeededBytes, Is.EqualTo(plan.FloorBytes));
            options.RamBudget = refused.NeededBytes;
            using (WasteModel model = WasteModel.Open(Places.Mini, options))
                Assert.That(model.Info.BudgetBytes, Is.EqualTo(refused.NeededBytes));
        }

        [Test]
        public void Row03_open_is_cancelled_within_a_second()
        {
            using (var folder = new TemporaryFolder())
            {
                string slow = folder.Script("{\"answers\": [[\"x\"]], \"open_stall_ms\": 60000}");
                using (var source = new CancellationTokenSource())
                {
                    bool seen = false;
                    var progress = new Immediately(() =>
                    {
                        seen = true;
                        source.Cancel();
                    });
                    Limits.WithinLatency(() =>
                    {
                        var cancelled = Assert.Throws<OperationCanceledException>(
                            () => WasteModel.Open(slow, null, progress, source.Token));
                        Assert.That(cancelled.CancellationToken, Is.EqualTo(source.Token));
                    }, "a cancelled open");
                    Assert.That(seen, Is.True);
                }
                CancelOpenAsync(slow);
                long before = Reading.ResidentBytes();
                for (int round = 0; round < 30; round++)
                    CancelOpenAsync(slow);
                Reading.Collect();
                Assert.That(Reading.ResidentBytes() - before, Is.LessThan(32 << 20), "memory");
            }
            CheckThatMiniOpens();
        }

        [Test]
        public void Row04_paths_with_spaces_emoji_and_other_scripts()
        {
            using (var folder = new TemporaryFolder())
            {
                foreach (string name in new[] { "with spaces", "🐝 пчела", "蜜蜂.waste", "a'b\"c" })
                {
                    string path = folder.CopyOfMini(name);
                    using (WasteModel model = WasteModel.Open(path))
                    using (ChatSession chat = model.CreateChat())
                    {
                        Assert.That(chat.Ask("What is the capital of Italy?").Text,
                                    Is.EqualTo("The capital of Italy is Rome."));
                        string saved = Path.Combine(path, "état 🐝.session");
                        chat.Save(saved);
                        Assert.That(File.Exists(saved), Is.True);
                    }
                }
                var missing = Assert.Throws<WasteException>(
                    () => WasteModel.Open(folder.File("нет 🐝")));
                Assert.That(missing.Message, Is.StringContaining("нет 🐝"));
            }
            var nul = Assert.Throws<WasteException>(() => WasteModel.Open("a\0b"));
            Assert.That(nul.Status, Is.EqualTo(WasteStatus.Argument));
        }

        [Test]
        public void Row13_saved_session_goes_on_in_a_new_process()
        {
            const string First = "What is the capital of Italy?";
            const string Second = "What is the capital of Japan?";
            using (var folder = new TemporaryFolder())
            using (WasteModel model = WasteModel.Open(Places.Mini))
            using (ChatSession chat = model.CreateChat())
            {
                string file = folder.File("chat.session");
                chat.Ask(First);
                chat.Save(file);
                int[] expected = chat.Ask(Second).Tokens.ToArray();
                Child.Result result = Child.Run("continue", Places.Mini, file, Second);
                Assert.That(result.ExitCode, Is.EqualTo(0), result.Output);
                Assert.That(result.Output.Trim(), Is.EqualTo(string.Join(",", expected)));

                File.WriteAllBytes(file, File.ReadAllBytes(file).Take(1000).ToArray());
                int[] held = chat.GetTokens();
                Assert.That(() => chat.Load(file), Throws.InstanceOf<WasteException>());
                Assert.That(chat.GetTokens(), Is.EqualTo(held), "unchanged by a damaged file");
            }
        }

        private static void CancelOpenAsync(string path)
        {
            using (var source = new CancellationTokenSource())
            {
                var opening = WasteModel.OpenAsync(path, null, new Immediately(source.Cancel),
                                                   source.Token);
                Limits.WithinLatency(() =>
                    Assert.That(() => Limits.Done(opening),
                                Throws.InstanceOf<OperationCanceledException>()),
                    "a cancelled OpenAsync");
                Assert.That(opening.IsCanceled, Is.True);
            }
        }

        /// <summary>Refused with an exception that names the path.</summary>
        private static T Refused<T>(string path) where T : WasteException
        {
            var refused = Assert.Throws<T>(() => WasteModel.Open(path));
            Assert.That(refused.Message, Is.StringContaining(path));
            Assert.That(() => Limits.Done(WasteModel.OpenAsync(path)), Throws.TypeOf<T>());
            return refused;
        }

        private static void CheckThatMiniOpens()
        {
            using (WasteModel model = WasteModel.Open(Places.Mini))
                Assert.That(model.Info.VocabSize, Is.GreaterThan(0));
        }

        private sealed class Immediately : IProgress<LoadProgress>
        {
            private readonly Action action;

            internal Immediately(Action action)
            {
                this.action = action;
            }

            public void Report(LoadProgress value)
            {
                action();
            }
        }
    }
}
