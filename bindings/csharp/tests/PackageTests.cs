// SPDX-License-Identifier: Apache-2.0
//
// What users get: the package, unpacked and used as NuGet would; the example; the code of the
// manual.
using System;
using System.Collections.Generic;
using System.IO;
using System.IO.Compression;
using System.Linq;
using System.Text.RegularExpressions;
using NUnit.Framework;

namespace Waste.Tests
{
    [TestFixture]
    [Category("packages")]
    public class PackageTests
    {
        private const string Program =
            "using System; using System.Threading.Tasks; using Waste;\n" +
            "static class Program {\n" +
            "  static void Main(string[] arguments) { Use(arguments).Wait(); }\n" +
            "  static async Task Use(string[] arguments) {\n" +
            "    using (WasteModel model = await WasteModel.OpenAsync(arguments[0]))\n" +
            "    using (ChatSession chat = model.CreateChat()) {\n" +
            "      foreach (Piece piece in chat.Stream(arguments[1]))\n" +
            "        Console.Write(piece.Text);\n" +
            "      Console.WriteLine();\n" +
            "      Console.WriteLine((await chat.AskAsync(arguments[1])).Text);\n" +
            "    }\n  }\n}\n";
        private const string Question = "What is the capital of Italy?";
        private const string Rome = "The capital of Italy is Rome.\n";

        [Test]
        public void Package_installs_and_runs()
        {
            using (var folder = new TemporaryFolder())
            {
                string[] names = Unpack(folder);
                foreach (string name in new[]
                {
                    "[Content_Types].xml", "_rels/.rels", "Waste.nuspec", "README.md", "LICENSE",
                    "lib/netstandard2.0/Waste.dll", "lib/netstandard2.0/Waste.xml",
                    "runtimes/linux-x64/native/libwaste_csharp.so", "build/Waste.targets",
                    "buildTransitive/Waste.targets",
                })
                    Assert.That(names, Has.Member(name));
                string package = folder.File("package");
                string nuspec = File.ReadAllText(Path.Combine(package, "Waste.nuspec"));
                Assert.That(nuspec, Is.StringContaining("<id>Waste</id>"));
                string app = folder.File("app");
                CopyTree(Path.Combine(package, "runtimes"), Path.Combine(app, "runtimes"));
                File.Copy(Path.Combine(package, "lib/netstandard2.0/Waste.dll"),
                          Path.Combine(app, "Waste.dll"));
                File.WriteAllText(folder.File("program.cs"), Program);
                Compile(app, folder.File("program.cs"));
                Child.Result result = RunApp(app, "", Places.Mini, Question);
                Assert.That(result.ExitCode, Is.EqualTo(0), result.Output);
                Assert.That(result.Output, Is.EqualTo(Rome + Rome));
            }
        }

        [Test]
        public void Example_answers_and_ends_with_its_input()
        {
            using (var folder = new TemporaryFolder())
            {
                string app = BuildExample(folder);
                Child.Result result = RunApp(app, Question + "\n\n" + Question + "\n",
                                             Places.Mini, "Be terse.");
                Assert.That(result.ExitCode, Is.EqualTo(0), result.Output);
                Assert.That(Regex.Matches(result.Output, Rome.Trim()).Count, Is.EqualTo(2),
                            result.Output);
                Assert.That(RunApp(app, "", folder.File("none")).ExitCode, Is.EqualTo(1));
                Assert.That(RunApp(app, "").ExitCode, Is.EqualTo(2));
            }
        }

        [Test]
        public void Example_cancels_its_answer_on_ctrl_c()
        {
            using (var folder = new TemporaryFolder())
            {
                string app = BuildExample(folder);
                Child.Result result = Child.Command(
                    "python3", Environment(),
                    Path.Combine(Places.Binding, "tests/terminal.py"),
                    Places.Variable("WASTE_RUNTIME_PROGRAM"), Path.Combine(app, "program.dll"),
                    folder.Script("{\"answers\": [[\"haha\", {\"stall_ms\": 60000}, \"x\"]]}"));
                Assert.That(result.Output, Is.StringContaining("cancelled twice"));
                Assert.That(result.ExitCode, Is.EqualTo(0), result.Output);
            }
        }

        [Test]
        public void Manual_holds_code_that_compiles_and_its_first_program_runs()
        {
            string manual = File.ReadAllText(Path.Combine(Places.Root, "docs/csharp.md"));
            List<string> blocks = Regex.Matches(manual, "```csharp\n(.*?)```",
                                                RegexOptions.Singleline)
                .Cast<Match>().Select(match => match.Groups[1].Value).ToList();
            Assert.That(blocks.Count, Is.GreaterThan(3));
            using (var folder = new TemporaryFolder())
            {
                string source = folder.File("manual.cs");
                foreach (string block in blocks.Skip(1))
                {
                    File.WriteAllText(source, Wrapped(block));
                    Compile(folder.File("app"), source);
                }
                File.WriteAllText(source, blocks[0].Replace("\"mini.waste\"",
                                                            "@\"" + Places.Mini + "\""));
                string app = folder.File("app");
                Compile(app, source);
                Install(app);
                Child.Result result = RunApp(app, "");
                Assert.That(result.Output, Is.EqualTo(Rome));
                Assert.That(result.ExitCode, Is.EqualTo(0));
            }
        }

        /// <summary>Statements of the manual, with what they use in scope.</summary>
        private static string Wrapped(string statements)
        {
            return "using System; using System.Collections.Generic; using System.Threading;\n" +
                "using System.Threading.Tasks; using Waste;\n" +
                "static class Program {\n  static void Main() { }\n" +
                "  internal static async Task Use(WasteModel model, ChatSession chat,\n" +
                "                                 CancellationToken token) {\n" +
                "    await Task.Yield();\n" + statements + "\n  }\n}\n";
        }

        private static string BuildExample(TemporaryFolder folder)
        {
            string app = folder.File("app");
            Compile(app, Path.Combine(Places.Root, "examples/csharp-chat/Chat.cs"));
            Install(app);
            return app;
        }

        /// <summary>Puts the library and its native file beside a program.</summary>
        private static void Install(string app)
        {
            File.Copy(typeof(WasteModel).Assembly.Location, Path.Combine(app, "Waste.dll"));
            File.Copy(Path.Combine(Places.NativeFolder, "libwaste_csharp.so"),
                      Path.Combine(app, "libwaste_csharp.so"));
        }

        /// <summary>Compiles program.dll as a user of Mono does, and puts the packages that the
        /// library refers to beside it.</summary>
        private static void Compile(string app, string source)
        {
            Directory.CreateDirectory(app);
            string library = typeof(WasteModel).Assembly.Location;
            var arguments = new List<string>
            {
                "-langversion:7.2", "-warn:4", "-warnaserror", "-r:" + library,
                "-r:/usr/lib/mono/4.5/Facades/netstandard.dll",
                "-out:" + Path.Combine(app, "program.dll"), source,
            };
            foreach (string name in new[]
            {
                "Microsoft.Bcl.AsyncInterfaces.dll", "System.Threading.Tasks.Extensions.dll",
            })
            {
                string file = Path.Combine(Path.GetDirectoryName(library), name);
                arguments.Add("-r:" + file);
                File.Copy(file, Path.Combine(app, name), true);
            }
            Child.Result result = Child.Command("mcs", new Child.Settings(), arguments.ToArray());
            Assert.That(result.ExitCode, Is.EqualTo(0),
                        result.Output + File.ReadAllText(source));
            File.Copy(Path.Combine(AppContext.BaseDirectory, "ChildProgram.runtimeconfig.json"),
                      Path.Combine(app, "program.runtimeconfig.json"), true);
        }

        private static Child.Result RunApp(string app, string input, params string[] arguments)
        {
            Child.Settings settings = Environment();
            settings.Input = input;
            return Child.RunAssembly(Path.Combine(app, "program.dll"), settings, arguments);
        }

        private static Child.Settings Environment()
        {
            return new Child.Settings { { "WASTE_LIBRARY", null } };
        }

        private static string[] Unpack(TemporaryFolder folder)
        {
            Child.Result made = Child.Command(
                "bash", new Child.Settings(), Path.Combine(Places.Binding, "package.sh"),
                Places.NativeFolder, folder.Path);
            Assert.That(made.ExitCode, Is.EqualTo(0), made.Output);
            using (ZipArchive archive = ZipFile.OpenRead(made.Output.Trim()))
            {
                archive.ExtractToDirectory(folder.File("package"));
                return archive.Entries.Select(entry => entry.FullName).ToArray();
            }
        }

        private static void CopyTree(string source, string target)
        {
            Directory.CreateDirectory(target);
            foreach (string file in Directory.GetFiles(source))
                File.Copy(file, Path.Combine(target, Path.GetFileName(file)));
            foreach (string child in Directory.GetDirectories(source))
                CopyTree(child, Path.Combine(target, Path.GetFileName(child)));
        }
    }
}
