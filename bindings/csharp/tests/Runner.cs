// SPDX-License-Identifier: Apache-2.0
//
// Runs the NUnit tests of an assembly where NUnit's own runner does not run (.NET Core) and writes
// a JUnit file. Knows what these tests use: TestFixture, Test, TestCaseSource with names, Category,
// and Assert.Ignore.
//
//   Runner.dll TESTS.dll OUT.xml [-include NAME | -exclude NAME[,NAME]]   (categories)
using System;
using System.Collections;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Security;
using System.Text;
using NUnit.Framework;

namespace Waste.Tests
{
    internal static class Runner
    {
        private static readonly StringBuilder Report = new StringBuilder();
        private static int count;
        private static int failedCount;

        private static int Main(string[] arguments)
        {
            Assembly assembly = Assembly.LoadFrom(Path.GetFullPath(arguments[0]));
            Report.Append("<testsuite name=\"bindings\">\n");
            string[] names = arguments.Length > 3 ? arguments[3].Split(',') : new string[0];
            bool including = arguments.Length > 2 && arguments[2] == "-include";
            foreach (Type type in assembly.GetTypes().OrderBy(type => type.Name))
                if (Has<TestFixtureAttribute>(type))
                    RunFixture(type, method => including == names.Any(
                        name => HasCategory(type, name) || HasCategory(method, name)));
            File.WriteAllText(arguments[1], Report.Append("</testsuite>\n").ToString());
            Console.WriteLine(count + " tests, " + failedCount + " failed");
            return failedCount == 0 && count > 0 ? 0 : 1;
        }

        private static void RunFixture(Type type, Func<MethodInfo, bool> isWanted)
        {
            object fixture = Activator.CreateInstance(type);
            foreach (MethodInfo method in type.GetMethods().Where(isWanted))
            {
                if (Has<TestAttribute>(method))
                    RunTest(type, method.Name, () => method.Invoke(fixture, null));
                var source = method.GetCustomAttributes(typeof(TestCaseSourceAttribute), false)
                    .Cast<TestCaseSourceAttribute>().FirstOrDefault();
                if (source == null)
                    continue;
                var cases = (IEnumerable)type.GetMethod(source.SourceName).Invoke(null, null);
                foreach (TestCaseData data in cases)
                    RunTest(type, data.TestName, () => method.Invoke(fixture, data.Arguments));
            }
        }

        private static void RunTest(Type type, string name, Action test)
        {
            count++;
            Console.WriteLine(type.Name + "." + name);
            Stopwatch since = Stopwatch.StartNew();
            string detail = "";
            try
            {
                test();
            }
            catch (TargetInvocationException failed)
            {
                detail = Detail(failed.InnerException);
            }
            Report.AppendFormat(CultureInfo.InvariantCulture,
                                "<testcase classname=\"{0}\" name=\"{1}\" time=\"{2:F3}\">{3}" +
                                "</testcase>\n", type.Name, Escaped(name),
                                since.Elapsed.TotalSeconds, detail);
        }

        private static string Detail(Exception failure)
        {
            if (failure is IgnoreException)
                return "<skipped>" + Escaped(failure.Message) + "</skipped>";
            if (failure is SuccessException)
                return "";
            failedCount++;
            Console.WriteLine("FAILED: " + failure);
            return "<failure>" + Escaped(failure.ToString()) + "</failure>";
        }

        private static string Escaped(string text)
        {
            return SecurityElement.Escape(new string(text.Where(
                letter => letter >= ' ' || letter == '\n').ToArray()));
        }

        private static bool Has<T>(MemberInfo member)
        {
            return member.GetCustomAttributes(typeof(T), false).Length > 0;
        }

        private static bool HasCategory(MemberInfo member, string name)
        {
            return member.GetCustomAttributes(typeof(CategoryAttribute), false)
                .Cast<CategoryAttribute>().Any(category => category.Name == name);
        }
    }
}
