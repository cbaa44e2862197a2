# SPDX-License-Identifier: Apache-2.0
"""The rules of docs/style.md that a program can check, each a function from (path, text) to a list
of problems. ALL_RULES are those; the tests run them over the tree and over snippets that break
them.
"""
import ast
import re

import cpp_source

MAX_COLUMNS = 100
MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 70
HEADER_LINES = range(3, 17)  # of the comment below the SPDX line, the blank one between counted
SPDX = "SPDX-License-Identifier: Apache-2.0"

# Files that a rule does not hold for, each with the reason.
GENERATED = re.compile(r"_tables\.(h|cc)$")  # data that a script wrote
LONG_HEADER_COMMENT = {"capi/include/waste/waste.h"}  # the rules of the whole ABI stand there
MAY_ABORT = {"core/base/check.cc"}  # WASTE_CHECK of a debug build
# libFuzzer calls its entry point by a C name; a test of the header calls functions written in C.
C_LINKAGE = ("capi/", "tests/fuzz/", "tests/capi/")

# Written in halves, so that this file passes its own rule.
LEFT_OVER = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}*/-])/(?:" +
                          "|".join(["ho" + "me", "wo" + "rk", "ro" + "ot", "tm" + "p"]) + r")/")
FORBIDDEN_IN_CORE = re.compile(
    r"\b(?:(?:std::)?(?:printf|fprintf|puts|fputs|putchar|perror|getenv|setenv|exit|_exit|"
    r"quick_exit|abort|terminate|signal|sigaction|setlocale)\s*\(|std::(?:cout|cerr|clog)\b|"
    r"(?:stdout|stderr)\b)")
MUTABLE_STATIC = re.compile(
    r"^\s+(?:static|thread_local)\s+(?!const\b|constexpr\b|constinit const\b|inline\b)"
    r"[\w:<>,&* ]+\s\w+\s*(?:=|\{|;)")
MUTABLE_GLOBAL = re.compile(r"[\w:]+(?:\s*<.*>)?[\s&*]+\w+(?:\[[^]]*\])*\s*(?:=.*)?$")
NO_VARIABLE = re.compile(
    r"(?:const|constexpr|using|typedef|class|struct|enum|union|friend|template|extern|"
    r"static_assert|namespace|return|public|private)\b")

# What core/os/system.cc asks a processor for before kernels of a set run on it.
AVX2 = {"avx2", "fma", "f16c"}
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
AVX512_VBMI = AVX512 | {"avx512vbmi", "avx512vnni"}
ISA_FILES = (("_avx512vbmi.cc", AVX512_VBMI), ("_avx512.cc", AVX512), ("_avx2.cc", AVX2))


def is_cpp(path):
    return path.endswith((".h", ".cc", ".c"))


def has_own_header(path, paths):
    return re.sub(r"\.cc$", ".h", path) in paths


def spdx_line(path, text):
    lines = text.split("\n")
    at = 1 if lines[0].startswith(("#!", "// swift-tools-version")) else 0
    if at < len(lines) and SPDX in lines[at]:
        return []
    return [f"{path}:{at + 1}: no SPDX line"]


def comment_below_spdx(path, text):
    """The lines of the first comment below the SPDX line, without blank ones at its end."""
    lines = text.split("\n")
    start = next((i for i, line in enumerate(lines[:2]) if SPDX in line), None)
    if start is None:
        return []
    if path.endswith(".py"):
        quoted = re.match(r'\s*"""(.*?)"""', "\n".join(lines[start + 1:]), re.DOTALL)
        return quoted.group(1).strip().split("\n") if quoted else []
    comment = []
    for line in lines[start + 1:]:
        if not line.strip().startswith(("//", "#", "*", "/*")) or line.startswith(("#if", "#inc")):
            break
        comment.append(line.strip().strip("/*#").strip())
    while comment and not comment[-1]:
        comment.pop()
    return comment


def header_comment(path, text):
    """Headers say in 3 to 15 lines what they are; nothing says more. Others say it in one or more,
    but for a .cc beside its header, and tests, whose names and cases say it."""
    if path in LONG_HEADER_COMMENT or path.endswith("__init__.py"):
        return []
    count = len(comment_below_spdx(path, text))
    if count > HEADER_LINES[-1]:
        return [f"{path}: a header comment of {count} lines, at most {HEADER_LINES[-1]}"]
    if path.endswith(".h") and count < HEADER_LINES[0]:
        return [f"{path}: a header comment of {count} lines, at least {HEADER_LINES[0]}"]
    if path.endswith((".py", ".sh")) and count == 0:
        return [f"{path}: no comment that says what it is"]
    return []


def lines_and_columns(path, text):
    found = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        if len(line) > MAX_COLUMNS and not GENERATED.search(path):
            found.append(f"{where}: {len(line)} columns")
        if "\t" in line and not path.endswith(".go"):  # gofmt's indentation
            found.append(f"{where}: a tab")
        if line != line.rstrip():
            found.append(f"{where}: blanks at the end")
        if LEFT_OVER.search(line):
            found.append(f"{where}: {LEFT_OVER.search(line).group(0)}")
        if MACHINE_PATH.search(line):
            found.append(f"{where}: a path of one machine")
    if len(lines) - 1 > MAX_FILE_LINES and not GENERATED.search(path):
        found.append(f"{path}: {len(lines) - 1} lines, at most {MAX_FILE_LINES}")
    if not text.endswith("\n") or text.endswith("\n\n"):
        found.append(f"{path}: should end with one newline")
    return found


def function_length(path, text):
    return [f"{path}:{first}: {name} has {count} lines, at most {MAX_FUNCTION_LINES}"
            for name, first, count in functions(path, text) if count > MAX_FUNCTION_LINES]


def functions(path, text):
    """[(name, first line, lines)] of a C++ or Python file."""
    if is_cpp(path):
        blocks, _ = cpp_source.parse(text)
        return [(_function_name(block.head), block.first_line,
                 block.last_line - block.first_line + 1)
                for block in blocks if block.kind == "function"]
    if path.endswith(".py"):
        return [(node.name, node.lineno, node.end_lineno - node.lineno + 1)
                for node in ast.walk(ast.parse(text))
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return []


def _function_name(head):
    macro = re.match(r"BOOST_\w+\(\s*(\w+)", head)
    name = macro or re.search(r"([~\w:]+)\s*$", head.split("(")[0])
    return name.group(1) if name else head


def core_calls(path, text):
    """No output, process or signal business in the library."""
    if not path.startswith(("core/", "capi/")) or not is_cpp(path) or path in MAY_ABORT:
        return []
    code = cpp_source.without_comments(text)
    return [f"{path}:{number}: {match.group(0)}) has no place in a library"
            for number, line in enumerate(code.split("\n"), 1)
            for match in FORBIDDEN_IN_CORE.finditer(line)]


def instruction_sets(path, text):
    """Functions of the core are compiled for nothing that CpuHas did not ask for: on a machine that
    hides it, they would end the host."""
    if not path.startswith("core/"):
        return []
    allowed = next((have for end, have in ISA_FILES if path.endswith(end)), AVX512_VBMI)
    found = re.finditer(r'target\("([^"]*)"\)', text)
    return [f"{path}: compiled for {feature}, which CpuHas does not check" for match in found
            for feature in match[1].split(",") if feature not in allowed]


def c_linkage(path, text):
    if not is_cpp(path) or path.startswith(C_LINKAGE):
        return []
    code = cpp_source.without_comments(text, keep_strings=True)
    return [f"{path}:{number}: C linkage outside capi"
            for number, line in enumerate(code.split("\n"), 1)
            if re.search(r'\bextern\s+"C"', line)]


def mutable_globals(path, text):
    """No variable of namespace scope, and no static one of a function, that can change."""
    if not path.startswith(("core/", "capi/")) or not is_cpp(path):
        return []
    code = cpp_source.without_comments(text)
    found = [f"{path}:{number}: a static variable that can change: {line.strip()}"
             for number, line in enumerate(code.split("\n"), 1)
             if MUTABLE_STATIC.search(line)]
    _, statements = cpp_source.parse(text)
    return found + [f"{path}:{statement.line}: a global that can change: {statement.text}"
                    for statement in statements if _is_mutable_global(statement)]


def _is_mutable_global(statement):
    if any(kind != "namespace" for kind in statement.depth_kinds):
        return False
    declaration = re.sub(r"^(?:(?:static|inline|thread_local|constinit|alignas\([^)]*\))\s+)+", "",
                         statement.text)
    return (NO_VARIABLE.match(declaration) is None and
            MUTABLE_GLOBAL.match(declaration) is not None)


def own_header_first(path, text, paths):
    """A .cc includes its own header first, which shows that the header stands alone."""
    if not path.endswith(".cc") or not path.startswith("core/") or not has_own_header(path, paths):
        return []
    first = re.search(r'^#include\s*[<"]([^>"]+)', text, re.MULTILINE)
    own = re.sub(r"^core/(.*)\.cc$", r"\1.h", path)
    return [] if first and first.group(1) == own else [f"{path}: should include {own} first"]


def header_guard(path, text):
    if not path.endswith(".h") or path in LONG_HEADER_COMMENT:
        return []
    guard = "WASTE_" + re.sub(r"[^A-Z0-9]", "_", path.upper()) + "_"
    return [] if f"#ifndef {guard}\n#define {guard}\n" in text else [f"{path}: no guard {guard}"]


def test_names(path, text):
    """Boost cases and suites are words that say behaviour: snake_case."""
    if not is_cpp(path):
        return []
    return [f"{path}: the test name {name} is not snake_case"
            for name in re.findall(r"BOOST_(?:AUTO|DATA|FIXTURE)_TEST_\w+\(\s*(\w+)", text)
            if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", name)]


ALL_RULES = (spdx_line, header_comment, lines_and_columns, function_length, core_calls, c_linkage,
             instruction_sets, mutable_globals, header_guard, test_names)
