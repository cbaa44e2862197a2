// SPDX-License-Identifier: Apache-2.0
//
// The behaviour matrix, rows that need a process of their own: 14 to 16, and where the library is
// looked for.
using System.IO;
using System.Text.RegularExpressions;
using NUnit.Framework;

namespace Waste.Tests
{
    [TestFixture]
    [Category("loader")]
    public class MatrixProcessTests
    {
        private const string LibraryFile = "libwaste_csharp.so";
        private const int ExpectedExit = 7;

        [Test]
        public void Row14_exit_during_generate()
        {
            foreach (string how in new[] { "exit", "return" })
            {
                Child.Result result =
                    Child.Run("exit-during-generate", Places.Script("endless"), how);
                Assert.That(result.ExitCode, Is.EqualTo(ExpectedExit), result.Output);
                Assert.That(result.Output, Is.Empty);
            }
        }

        [Test]
        [Category("packages")]
        public void Row15_library_of_another_abi_number()
        {
            using (var folder = new TemporaryFolder())
            {
                string file = BuildWrapper(folder, "waste_abi_version",
                                           "int other(void) { return 99; }\n");
                Child.Result result = Load(folder, file);
                Assert.That(result.ExitCode, Is.EqualTo(ExpectedExit), result.Output);
                Assert.That(result.Output, Is.StringContaining(
                    file + " does not fit this version of Waste.dll: its ABI number is 99, 0 is " +
                    "needed"));
            }
        }

        [Test]
        [Category("packages")]
        public void Row15_library_of_another_header()
        {
            string header = File.ReadAllText(
                Path.Combine(Places.Root, "capi/include/waste/waste.h"));
            int structs = Regex.Matches(header, "uint32_t struct_size;").Count;
            using (var folder = new TemporaryFolder())
            {
                string file = BuildWrapper(
                    folder, "waste_abi_sizes",
                    "#include <stdint.h>\nint64_t other(int32_t *sizes, int64_t count) {\n" +
                    "  for (int64_t i = 0; i < count; i++) sizes[i] = 8;\n  return " + structs +
                    ";\n}\n");
                Child.Result result = Load(folder, file);
                Assert.That(result.ExitCode, Is.EqualTo(ExpectedExit), result.Output);
                Assert.That(result.Output, Is.StringContaining("struct 0 has 8 bytes, 520 are"));
            }
        }

        [Test]
        public void Row16_library_missing_tells_every_path()
        {
            using (var folder = new TemporaryFolder())
            {
                Child.Result result = Load(folder, null);
                Assert.That(result.ExitCode, Is.EqualTo(ExpectedExit), result.Output);
                string app = folder.File("app");
                foreach (string path in new[]
                {
                    Path.Combine(app, LibraryFile),
                    Path.Combine(app, "runtimes/linux-x64/native", LibraryFile),
                    "  " + LibraryFile + ": ",
                })
                    Assert.That(result.Output, Is.StringContaining(path));
                Assert.That(result.Output, Is.StringContaining("WASTE_LIBRARY"));
            }
            using (var folder = new TemporaryFolder())
            {
                string none = folder.File("none.so");
                Child.Result result = Load(folder, none);
                Assert.That(result.ExitCode, Is.EqualTo(ExpectedExit), result.Output);
                Assert.That(result.Output, Is.StringContaining(none + ": no such file"));
                Assert.That(result.Output, Is.StringContaining("tried 1"));
            }
            using (var folder = new TemporaryFolder())
            {
                string broken = folder.File(LibraryFile);
                File.WriteAllText(broken, "no library");
                Child.Result result = Load(folder, broken);
                Assert.That(result.ExitCode, Is.EqualTo(ExpectedExit), result.Output);
                Assert.That(result.Output, Is.StringContaining(broken + ": "));
            }
        }

        [Test]
        public void Library_is_found_in_each_place_and_the_chosen_one_wins()
        {
            string source = Path.Combine(Places.NativeFolder, LibraryFile);
            using (var folder = new TemporaryFolder())
            {
                string app = folder.File("app");
                string packed = Path.Combine(app, "runtimes/linux-x64/native", LibraryFile);
                Directory.CreateDirectory(Path.GetDirectoryName(packed));
                File.Copy(source, packed);
                CheckLoads(folder, null, packed);
                string beside = Path.Combine(app, LibraryFile);
                File.Copy(source, beside);
                CheckLoads(folder, null, beside);
                string chosen = folder.File("libwaste_csharp 🐝.so");
                File.Copy(source, chosen);
                CheckLoads(folder, chosen, chosen);
                CheckLoads(folder, Places.NativeFolder, source);
            }
        }

        private static void CheckLoads(TemporaryFolder folder, string variable, string expected)
        {
            Child.Result result = Load(folder, variable);
            Assert.That(result.ExitCode, Is.EqualTo(0), result.Output);
            Assert.That(result.Output, Is.EqualTo("Hi 🐝!\nloaded " + expected + "\n"));
        }

        /// <summary>Runs the child program from a copy without a library beside it.</summary>
        private static Child.Result Load(TemporaryFolder folder, string variable)
        {
            string app = folder.File("app");
            Directory.CreateDirectory(app);
            foreach (string name in new[]
            {
                "ChildProgram.dll", "ChildProgram.runtimeconfig.json", "Waste.dll",
                "Microsoft.Bcl.AsyncInterfaces.dll", "System.Threading.Tasks.Extensions.dll",
            })
                if (!File.Exists(Path.Combine(app, name)))
                    File.Copy(Path.Combine(System.AppContext.BaseDirectory, name),
                              Path.Combine(app, name));
            var settings = new Child.Settings { { "WASTE_LIBRARY", variable } };
            return Child.RunAssembly(Path.Combine(app, "ChildProgram.dll"), settings, "load",
                                     Places.Script("emoji"));
        }

        /// <summary>The wrapper over libwaste with one function of it replaced by a stub.</summary>
        private static string BuildWrapper(TemporaryFolder folder, string function, string stub)
        {
            string stubFile = folder.File("stub.c");
            string file = folder.File(LibraryFile);
            File.WriteAllText(stubFile, stub);
            Child.Result result = Child.Command(
                "cc", new Child.Settings(), "-shared", "-fPIC", "-fno-strict-aliasing", "-o", file,
                "-D" + function + "=other", "-I" + Path.Combine(Places.Root, "capi/include"),
                Path.Combine(Places.Binding, "native/waste_wrap.c"), stubFile,
                "-L" + Places.NativeFolder, "-lwaste", "-Wl,-rpath," + Places.NativeFolder);
            Assert.That(result.ExitCode, Is.EqualTo(0), result.Output);
            return file;
        }
    }
}
