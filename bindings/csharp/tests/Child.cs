// SPDX-License-Identifier: Apache-2.0
//
// Starts processes for the tests: the child program (ChildProgram.cs) or any other assembly on the
// runtime under test, and plain commands.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Text;
using NUnit.Framework;

namespace Waste.Tests
{
    internal static class Child
    {
        private const int PatienceMilliseconds = 60000;

        internal sealed class Result
        {
            internal int ExitCode;
            internal string Output;
        }

        /// <summary>Variables of the child; null removes one.</summary>
        internal sealed class Settings : Dictionary<string, string>
        {
            internal string Input = "";
        }

        /// <summary>Runs the child program that lies beside these tests.</summary>
        internal static Result Run(params string[] arguments)
        {
            return RunAssembly(Path.Combine(AppContext.BaseDirectory, "ChildProgram.dll"),
                               new Settings(), arguments);
        }

        /// <summary>Runs an assembly on the runtime under test.</summary>
        internal static Result RunAssembly(string assembly, Settings settings,
                                           params string[] arguments)
        {
            return Command(Places.Variable("WASTE_RUNTIME_PROGRAM"), settings,
                           new[] { assembly }.Concat(arguments).ToArray());
        }

        internal static Result Command(string program, Settings settings,
                                       params string[] arguments)
        {
            var start = new ProcessStartInfo(program, string.Join(" ", arguments.Select(Quoted)))
            {
                UseShellExecute = false,
                RedirectStandardInput = true,
                RedirectStandardOutput = true,
                RedirectStandardError = true,
                StandardOutputEncoding = Encoding.UTF8,
                WorkingDirectory = Path.GetTempPath(),
            };
            foreach (KeyValuePair<string, string> setting in settings)
                if (setting.Value == null)
                    start.EnvironmentVariables.Remove(setting.Key);
                else
                    start.EnvironmentVariables[setting.Key] = setting.Value;
            using (Process process = Process.Start(start))
            {
                var output = new StringBuilder();
                process.OutputDataReceived += (sender, line) => Append(output, line.Data);
                process.ErrorDataReceived += (sender, line) => Append(output, line.Data);
                process.BeginOutputReadLine();
                process.BeginErrorReadLine();
                process.StandardInput.Write(settings.Input);
                process.StandardInput.Close();
                if (!process.WaitForExit(PatienceMilliseconds))
                {
                    process.Kill();
                    Assert.Fail(program + " did not end: " + output);
                }
                process.WaitForExit();
                return new Result { ExitCode = process.ExitCode, Output = output.ToString() };
            }
        }

        private static void Append(StringBuilder output, string line)
        {
            if (line == null)
                return;
            lock (output)
                output.Append(line).Append('\n');
        }

        private static string Quoted(string argument)
        {
            return "\"" + argument.Replace("\\", "\\\\").Replace("\"", "\\\"") + "\"";
        }
    }
}
