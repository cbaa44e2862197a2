// SPDX-License-Identifier: Apache-2.0
//
// What the tests share: where things are, scripted models, temporary folders, waiting with a limit.
// test.sh sets the environment that is read here.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Threading;
using System.Threading.Tasks;
using NUnit.Framework;

namespace Waste.Tests
{
    /// <summary>Paths of this checkout and of this run.</summary>
    internal static class Places
    {
        internal static readonly string Root = Variable("WASTE_ROOT");
        internal static readonly string NativeFolder = Variable("WASTE_NATIVE");
        internal static readonly string Mode = Variable("WASTE_MODE");
        internal static readonly string Mini = Path.Combine(Root, "examples/mini/mini.waste");
        internal static readonly string Binding = Path.Combine(Root, "bindings/csharp");
        internal static readonly string Conformance = Path.Combine(Root, "bindings/conformance");

        internal static string Script(string name)
        {
            return "test:" + Path.Combine(Conformance, "scripts", name + ".json");
        }

        internal static string Variable(string name)
        {
            return Environment.GetEnvironmentVariable(name) ??
                throw new InvalidOperationException(name + " is not set: run test.sh");
        }
    }

    /// <summary>A folder that is gone at the end of the test.</summary>
    internal sealed class TemporaryFolder : IDisposable
    {
        internal readonly string Path =
            System.IO.Path.Combine(System.IO.Path.GetTempPath(), "waste-cs-" + Guid.NewGuid());

        internal TemporaryFolder()
        {
            Directory.CreateDirectory(Path);
        }

        public void Dispose()
        {
            Directory.Delete(Path, true);
        }

        internal string File(string name)
        {
            return System.IO.Path.Combine(Path, name);
        }

        /// <summary>Writes a script and returns the path that opens it.</summary>
        internal string Script(string json)
        {
            string file = File(Guid.NewGuid() + ".json");
            System.IO.File.WriteAllText(file, json);
            return "test:" + file;
        }

        internal string CopyOfMini(string name)
        {
            string target = File(name);
            Directory.CreateDirectory(target);
            foreach (string file in Directory.GetFiles(Places.Mini))
                System.IO.File.Copy(file,
                                    System.IO.Path.Combine(target,
                                                           System.IO.Path.GetFileName(file)));
            return target;
        }
    }

    /// <summary>A model and a chat over a script, closed together.</summary>
    internal sealed class Scripted : IDisposable
    {
        private readonly TemporaryFolder folder = new TemporaryFolder();
        internal readonly WasteModel Model;
        internal readonly ChatSession Chat;

        internal const string Endless = "{\"answers\": [[{\"repeat\": \"ha\"}]]}";

        internal Scripted(string json)
        {
            Model = WasteModel.Open(folder.Script(json));
            Chat = Model.CreateChat();
        }

        public void Dispose()
        {
            Model.Dispose();
            folder.Dispose();
        }
    }

    internal static class Limits
    {
        internal static readonly TimeSpan Latency = TimeSpan.FromSeconds(1);
        private static readonly TimeSpan Patience = TimeSpan.FromSeconds(30);

        internal static T Result<T>(Task<T> task)
        {
            Done(task);
            return task.Result;
        }

        /// <summary>Waits for a task and throws what it failed with.</summary>
        internal static void Done(Task task)
        {
            if (!((IAsyncResult)task).AsyncWaitHandle.WaitOne(Patience))
                Assert.Fail("a task did not end within " + Patience);
            task.GetAwaiter().GetResult();
        }

        internal static void Join(Thread thread)
        {
            if (!thread.Join(Patience))
                Assert.Fail("a thread did not end within " + Patience);
        }

        /// <summary>Waits until something holds that another thread brings about.</summary>
        internal static void Until(Func<bool> holds, string what)
        {
            Stopwatch since = Stopwatch.StartNew();
            while (!holds())
            {
                if (since.Elapsed > Patience)
                    Assert.Fail("not within " + Patience + ": " + what);
                Thread.Sleep(1);
            }
        }

        internal static void WithinLatency(Action action, string what)
        {
            Stopwatch since = Stopwatch.StartNew();
            action();
            Assert.That(since.Elapsed, Is.LessThan(Latency), what);
        }

        /// <summary>Runs it on a thread of its own; what it throws is thrown by Join.</summary>
        internal static Task OnThread(Action action)
        {
            var done = new TaskCompletionSource<bool>();
            var thread = new Thread(() =>
            {
                try
                {
                    action();
                    done.SetResult(true);
                }
                catch (Exception failed)
                {
                    done.SetException(failed);
                }
            }) { IsBackground = true };
            thread.Start();
            return done.Task;
        }
    }

    internal static class Reading
    {
        /// <summary>Reads a stream to its end and returns its text; pieces go to a hook.</summary>
        internal static string All(PieceStream stream, Action<int> afterPiece = null)
        {
            string text = "";
            int count = 0;
            foreach (Piece piece in stream)
            {
                text += piece.Text;
                afterPiece?.Invoke(++count);
            }
            return text;
        }

        internal static async Task<string> AllAsync(AsyncPieceStream stream,
                                                    Action<int> afterPiece = null)
        {
            string text = "";
            int count = 0;
            IAsyncEnumerator<Piece> pieces = stream.GetAsyncEnumerator();
            try
            {
                while (await pieces.MoveNextAsync().ConfigureAwait(false))
                {
                    text += pieces.Current.Text;
                    afterPiece?.Invoke(++count);
                }
            }
            finally
            {
                await pieces.DisposeAsync().ConfigureAwait(false);
            }
            return text;
        }

        /// <summary>Resident memory of this process in bytes.</summary>
        internal static long ResidentBytes()
        {
            foreach (string line in File.ReadAllLines("/proc/self/status"))
                if (line.StartsWith("VmRSS:", StringComparison.Ordinal))
                    return 1024 * long.Parse(line.Substring(6).Replace("kB", "").Trim());
            throw new InvalidOperationException("no VmRSS");
        }

        internal static void Collect()
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
            GC.Collect();
        }
    }
}
