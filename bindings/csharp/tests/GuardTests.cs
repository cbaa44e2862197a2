// SPDX-License-Identifier: Apache-2.0
//
// What must stay true of the sources: no callback from native code, every function of the ABI used,
// enumerations equal to the header, one assembly for every runtime, a project file that packs it.
// Run on Mono only: nothing here depends on the runtime, and reading XML on .NET Core 3.1 needs an
// OpenSSL that current systems have not.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Text.RegularExpressions;
using System.Xml.Linq;
using NUnit.Framework;

namespace Waste.Tests
{
    [TestFixture]
    [Category("sources")]
    public class GuardTests
    {
        private static readonly string Sources = Path.Combine(Places.Binding, "src/Waste");

        [Test]
        public void No_native_code_calls_back()
        {
            string[] files = Directory.GetFiles(Sources, "*.cs", SearchOption.AllDirectories);
            Assert.That(files.Length, Is.GreaterThan(20));
            foreach (string file in files)
            {
                string text = File.ReadAllText(file);
                foreach (string callback in new[]
                {
                    @"\bdelegate\b", "UnmanagedFunctionPointer", "MonoPInvokeCallback",
                    "GetFunctionPointerForDelegate", "UnmanagedCallersOnly",
                })
                    Assert.That(Regex.IsMatch(text, callback), Is.False, file + ": " + callback);
            }
        }

        [Test]
        public void Every_function_of_the_abi_is_used()
        {
            string used = string.Concat(
                Directory.GetFiles(Sources, "*.cs").Select(File.ReadAllText));
            string[] functions = File.ReadAllLines(Path.Combine(Places.Root, "capi/exports.txt"))
                .Where(line => line.StartsWith("waste_", StringComparison.Ordinal)).ToArray();
            Assert.That(functions.Length, Is.GreaterThan(30));
            foreach (string function in functions)
            {
                if (function.EndsWith("_init", StringComparison.Ordinal) ||
                    function == "waste_free" || function == "waste_open")
                    continue; // Made by the wrapper; waste_free_address; waste_open_job.
                Assert.That(used, Is.StringContaining("WasteNative." + function + "("));
            }
        }

        [Test]
        public void Enumerations_equal_the_header()
        {
            string header =
                File.ReadAllText(Path.Combine(Places.Root, "capi/include/waste/waste.h"));
            var prefixes = new Dictionary<string, Type>
            {
                { "WASTE_ERR_", typeof(WasteStatus) }, { "WASTE_ROLE_", typeof(Role) },
                { "WASTE_CHANNEL_", typeof(Channel) }, { "WASTE_FINISH_", typeof(FinishReason) },
                { "WASTE_IO_", typeof(IoMode) }, { "WASTE_ISA_", typeof(InstructionSet) },
                { "WASTE_ARITHMETIC_", typeof(ArithmeticMode) },
            };
            int count = 0;
            foreach (Match define in
                     Regex.Matches(header, @"#define (WASTE_[A-Z]+_)(\w+) \(?(-?\d+)"))
            {
                if (!prefixes.TryGetValue(define.Groups[1].Value, out Type type))
                    continue;
                object value = Enum.Parse(type, define.Groups[2].Value.Replace("_", ""), true);
                Assert.That((int)value, Is.EqualTo(int.Parse(define.Groups[3].Value)));
                count++;
            }
            Assert.That(count, Is.EqualTo(
                prefixes.Values.Sum(type => Enum.GetNames(type).Length) - 1), "all but Ok");
        }

        [Test]
        public void Assembly_is_netstandard_2_0()
        {
            string[] references = typeof(WasteModel).Assembly.GetReferencedAssemblies()
                .Select(name => name.Name + " " + name.Version)
                .OrderBy(name => name, StringComparer.Ordinal).ToArray();
            Assert.That(references, Is.EqualTo(new[]
            {
                "Microsoft.Bcl.AsyncInterfaces 8.0.0.0",
                "System.Threading.Tasks.Extensions 4.2.0.1", "netstandard 2.0.0.0",
            }));
            foreach (Type type in typeof(WasteModel).Assembly.GetExportedTypes())
                Assert.That(type.Namespace, Is.EqualTo("Waste"), "nothing of SWIG is public");
        }

        [Test]
        public void Project_file_builds_and_packs_what_it_says()
        {
            XElement project = XDocument.Parse(
                File.ReadAllText(Path.Combine(Sources, "Waste.csproj"))).Root;
            Assert.That((string)project.Attribute("Sdk"), Is.EqualTo("Microsoft.NET.Sdk"));
            var wanted = new Dictionary<string, string>
            {
                { "TargetFrameworks", "netstandard2.0;net8.0" }, { "PackageId", "Waste" },
                { "IsAotCompatible", "true" }, { "TreatWarningsAsErrors", "true" },
                { "GenerateDocumentationFile", "true" },
                { "PackageLicenseExpression", "Apache-2.0" },
                { "PackageReadmeFile", "README.md" },
            };
            foreach (KeyValuePair<string, string> property in wanted)
                Assert.That(project.Descendants(property.Key).Select(element => element.Value),
                            Is.EqualTo(new[] { property.Value }), property.Key);
            string[] packed = project.Descendants("None")
                .Select(item => (string)item.Attribute("PackagePath")).ToArray();
            Assert.That(packed, Has.Member("runtimes/"));
            Assert.That(packed, Has.Member("buildTransitive/Waste.targets"));
            Assert.That(project.Descendants("PackageReference").Select(
                            reference => (string)reference.Attribute("Include")),
                        Has.Member("Microsoft.Bcl.AsyncInterfaces"));
            XElement targets = XDocument.Parse(
                File.ReadAllText(Path.Combine(Sources, "Waste.targets"))).Root;
            Assert.That(targets.Name.LocalName, Is.EqualTo("Project"));
            Assert.That(targets.ToString(), Is.StringContaining("CopyToOutputDirectory"));
        }

        [Test]
        public void Documentation_covers_every_public_member()
        {
            string library = typeof(WasteModel).Assembly.Location;
            XDocument documentation = XDocument.Parse(File.ReadAllText(
                Path.Combine(Places.Variable("WASTE_BUILD"), "lib/Waste.xml")));
            var documented = new HashSet<string>(documentation.Descendants("member").Select(
                member => Regex.Replace((string)member.Attribute("name"), @"\(.*|#.*", "")));
            foreach (Type type in Assembly.LoadFrom(library).GetExportedTypes())
            {
                string name = type.FullName.Replace('+', '.');
                Assert.That(documented, Has.Member("T:" + name));
                foreach (PropertyInfo property in type.GetProperties(
                             BindingFlags.Public | BindingFlags.Instance | BindingFlags.Static |
                             BindingFlags.DeclaredOnly))
                    Assert.That(documented, Has.Member("P:" + name + "." + property.Name));
                foreach (MethodInfo method in type.GetMethods(
                             BindingFlags.Public | BindingFlags.Instance | BindingFlags.Static |
                             BindingFlags.DeclaredOnly))
                    if (!method.IsSpecialName)
                        Assert.That(documented, Has.Member("M:" + name + "." + method.Name));
            }
        }
    }
}
