# SPDX-License-Identifier: Apache-2.0
"""As much of C++ as the tidy rules need: comments and literals blanked out, and the blocks of a
file with what they are. A heuristic over braces, not a parser; it keeps every line where it was.
"""
import dataclasses
import re

_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\\ ]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|"""
    r"""(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""", re.DOTALL)


def without_comments(text, keep_strings=False):
    """The text with comments, and strings unless they are kept, as blanks of the same lines."""
    def blank(match):
        token = match.group(0)
        if keep_strings and not token.startswith(("//", "/*")):
            return token
        inside = re.sub(r"[^\n]", " ", token)
        return inside if token.startswith(("//", "/*")) else '"' + inside[1:-1] + '"'
    return _TOKEN.sub(blank, text)


def without_preprocessor(code):
    """The code with directives (and the lines they continue on) as blanks."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
                  lambda match: re.sub(r"[^\n]", " ", match.group(0)), code, flags=re.MULTILINE)


@dataclasses.dataclass
class Block:
    kind: str  # "namespace", "type", "function" or "other"
    head: str  # what stands before the brace
    first_line: int
    last_line: int
    depth_kinds: tuple  # kinds of the blocks around it


@dataclasses.dataclass
class Statement:
    text: str
    line: int
    depth_kinds: tuple


def _kind_of(head, around):
    if "function" in around or "other" in around:
        return "other"
    if re.search(r"\bnamespace\b|\bextern\s+\"\s*\"\s*$", head):
        return "namespace"
    if re.search(r"\b(class|struct|union|enum)\b", head) and not re.search(r"\)\s*[\w\s]*$", head):
        return "type"
    return "function" if "(" in head else "other"


def _is_member_initialiser(head):
    """Whether the brace after `head` belongs to `: member_{value}` and not to a body."""
    return re.search(r"\)\s*(?:noexcept\s*)?:(?!:)[^;]*[\w>]\s*$", head, re.DOTALL) is not None


def parse(text):
    """([Block], [Statement]) of a file; statements are what ends in ';'."""
    code = without_preprocessor(without_comments(text))
    blocks, statements, stack = [], [], []
    head, head_line, line, initialiser_depth = "", 1, 1, 0
    for c in code:
        if c == "\n":
            line += 1
        if initialiser_depth > 0:
            initialiser_depth += (c == "{") - (c == "}")
            head += c
            continue
        around = tuple(block.kind for block in stack)
        if c == "{" and _is_member_initialiser(head):
            initialiser_depth = 1
        elif c == "{":
            stack.append(Block(_kind_of(head, around), head.strip(), head_line, 0, around))
            head = ""
        elif c == "}" and stack:
            block = stack.pop()
            block.last_line = line
            blocks.append(block)
            head = ""
        elif c == ";" and head.count("(") == head.count(")"):
            statements.append(Statement(" ".join(head.split()), head_line, around))
            head = ""
        else:
            if not head.strip():
                head, head_line = "", line
            head += c
    return blocks, statements
