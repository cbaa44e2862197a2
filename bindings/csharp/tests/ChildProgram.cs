// SPDX-License-Identifier: Apache-2.0
//
// What tests need a process of its own for. Exit codes are what the tests look at.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Threading;

namespace Waste.Tests
{
    internal static class ChildProgram
    {
        private const int ExitCode = 7;

        private static int Main(string[] arguments)
        {
            // What is printed is compared, in whatever locale the tests run.
            Console.OutputEncoding = new UTF8Encoding(false);
            switch (arguments[0])
            {
                case "continue":
                    return Continue(arguments[1], arguments[2], arguments[3]);
                case "exit-during-generate":
                    return ExitDuringGenerate(arguments[1], arguments[2]);
                case "load":
                    return Load(arguments[1]);
                default:
                    return 2;
            }
        }

        /// <summary>Prints the tokens of an answer on a session that another process saved.
        /// </summary>
        private static int Continue(string path, string file, string prompt)
        {
            using (WasteModel model = WasteModel.Open(path))
            using (ChatSession chat = model.CreateChat())
            {
                chat.Load(file);
                Console.WriteLine(string.Join(",", chat.Ask(prompt).Tokens));
            }
            return 0;
        }

        /// <summary>Leaves while a thread is inside the library, with nothing closed.</summary>
        private static int ExitDuringGenerate(string path, string how)
        {
            WasteModel model = WasteModel.Open(path);
            ChatSession chat = model.CreateChat();
            var begun = new ManualResetEvent(false);
            var reader = new Thread(() =>
            {
                foreach (Piece piece in chat.Stream("x"))
                    begun.Set();
            }) { IsBackground = true };
            reader.Start();
            IAsyncEnumerator<Piece> pieces =
                model.CreateChat().StreamAsync("y").GetAsyncEnumerator();
            pieces.MoveNextAsync().AsTask().Wait();
            begun.WaitOne();
            if (how == "exit")
                Environment.Exit(ExitCode);
            return ExitCode;
        }

        /// <summary>Tries every way to the library; prints what it is told, and which file it is.
        /// </summary>
        private static int Load(string path)
        {
            try
            {
                WasteModel.Plan(path);
                using (WasteModel model = WasteModel.Open(path))
                    Console.WriteLine(model.CreateChat().Ask("x").Text);
            }
            catch (WasteNativeLoadException missing)
            {
                Console.WriteLine(missing.Message);
                Console.WriteLine("tried " + missing.TriedPaths.Count);
                return ThrowsAgain(path) ? ExitCode : 1;
            }
            foreach (string line in System.IO.File.ReadAllLines("/proc/self/maps")
                         .Where(line => line.Contains("waste_csharp"))
                         .Select(line => line.Substring(line.IndexOf('/'))).Distinct())
                Console.WriteLine("loaded " + line);
            return 0;
        }

        /// <summary>Each factory tells it, and none as a TypeInitializationException.</summary>
        private static bool ThrowsAgain(string path)
        {
            var factories = new Action[]
            {
                () => WasteModel.Open(path),
                () => WasteModel.OpenAsync(path).GetAwaiter().GetResult(),
                () => WasteModel.Plan(path), () => WasteJob.Verify(path),
                () => WasteJob.Convert(path, path), () => WasteModel.LibraryVersion.ToString(),
            };
            return factories.All(factory =>
            {
                try
                {
                    factory();
                    return false;
                }
                catch (WasteNativeLoadException)
                {
                    return true;
                }
            });
        }
    }
}
