# SPDX-License-Identifier: Apache-2.0
"""What the program says to a command line: help, version, and what is wrong with it."""
import unittest

import program
from program import run

# (arguments, what the message names)
WRONG = [
    ((), "command"),
    (("sing",), "sing"),
    (("run",), "MODEL"),
    (("run", "m"), "PROMPT"),
    (("run", "m", "hello", "--no-such-option"), "--no-such-option"),
    (("run", "m", "hello", "--budget", "lots"), "lots"),
    (("run", "m", "hello", "--budget", "-4G"), "-4G"),
    (("run", "m", "hello", "--budget", "0"), "--budget"),
    (("run", "m", "hello", "--budget", "nan"), "nan"),
    (("run", "m", "hello", "--budget", "99999999999999G"), "99999999999999G"),
    (("run", "m", "hello", "--budget", "4GG"), "4GG"),
    (("run", "m", "hello", "--budget"), "--budget"),
    (("run", "m", "hello", "--threads", "0"), "--threads"),
    (("run", "m", "hello", "--threads", "two"), "two"),
    (("run", "m", "hello", "--context", "0"), "--context"),
    (("run", "m", "hello", "--context", "99999999999999999999"), "--context"),
    (("run", "m", "hello", "--io", "fast"), "--io"),
    (("run", "m", "hello", "--isa", "sse"), "--isa"),
    (("run", "m", "hello", "--temperature", "-1"), "--temperature"),
    (("run", "m", "hello", "--temperature", "nan"), "--temperature"),
    (("run", "m", "hello", "--temperature", "inf"), "--temperature"),
    (("run", "m", "hello", "--top-p", "0"), "--top-p"),
    (("run", "m", "hello", "--top-p", "1.5"), "--top-p"),
    (("run", "m", "hello", "--min-p", "2"), "--min-p"),
    (("run", "m", "hello", "--top-k", "-1"), "--top-k"),
    (("run", "m", "hello", "--max-tokens", "0"), "--max-tokens"),
    (("run", "m", "hello", "--seed", "1.5"), "--seed"),
    (("run", "m", "hello", "--raw", "--system", "x"), "--raw"),
    (("convert", "a"), "OUT"),
    (("convert", "a", "b", "--stages", "5"), "--stages"),
    (("convert", "a", "b", "--trunk-bits", "5"), "--trunk-bits"),
    (("convert", "a", "b", "--quantise-from", "0"), "--quantise-from"),
    (("synth", "mini"), "OUT"),
    (("synth", "mini", "b", "--layers", "0"), "--layers"),
    (("eval", "m"), "--text"),
    (("eval", "m", "--top", "3"), "prompt"),
    (("eval", "m", "hello", "--text", "f"), "--text"),
    (("detokenize", "m", "1", "two"), "two"),
    (("bench", "m", "--svg", ""), "--svg"),
    (("bench", "m", "--repeats", "0"), "--repeats"),
]


class Usage(program.ProgramTest):
    def test_a_wrong_command_line_is_exit_code_2_and_names_what_is_wrong(self):
        for arguments, named in WRONG:
            with self.subTest(arguments=arguments):
                result = run(*arguments)
                self.assertEqual(result.returncode, program.USAGE, result.stderr)
                self.assertEqual(result.stdout, b"")
                self.assertIn(named, result.stderr.decode())

    def test_with_json_the_error_is_an_object_on_stdout(self):
        for arguments, named in WRONG:
            with self.subTest(arguments=arguments):
                self.assert_error(run(*arguments, "--json"), "USAGE", program.USAGE)

    def test_every_command_explains_itself(self):
        for command in program.COMMANDS:
            with self.subTest(command=command):
                result = run(command, "--help")
                self.assert_ok(result)
                self.assertIn(b"--json", result.stdout)
                self.assertEqual(result.stderr, b"")
                self.assertIn(f"  waste {command}".encode(), result.stdout)  # an example
                self.assertIn(b"JSON:", result.stdout)

    def test_the_program_lists_its_commands(self):
        result = run("--help")
        self.assert_ok(result)
        for command in program.COMMANDS:
            self.assertIn(command.encode(), result.stdout)

    def test_the_version_is_told(self):
        version = self.json_of("version")
        self.assertEqual(set(version), {"version", "abi", "isas"})
        line = f"waste {version['version']} (ABI {version['abi']})\n"
        self.assertEqual(run("--version").stdout.decode(), line)
        self.assertEqual(run("version").stdout.decode(),
                         f"{line}instruction sets: {', '.join(version['isas'])}\n")


if __name__ == "__main__":
    unittest.main()
