# SPDX-License-Identifier: Apache-2.0
"""The files of the repository that the tidy rules look at: what git tracks, and what it would
track. A copy without git is walked instead, without its build folder.
"""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPP_SUFFIXES = (".h", ".cc", ".c")
SOURCE_SUFFIXES = CPP_SUFFIXES + (".py", ".sh", ".i", ".java", ".cs", ".go", ".swift", ".kt")

# What bindings/swig/generate.sh writes: SWIG's wrappers, and copies of the public header.
WRITTEN_BY_SWIG = re.compile(
    r"bindings/(java/src/generated/.*|csharp/src/Waste/Native/.*|\w+/native/waste_wrap\.c|"
    r"go/internal/cwaste/(cwaste\.go|cwaste_wrap\.c|waste\.h)|"
    r"swift/Sources/(Waste/Generated/.*|CWaste/waste\.h))$")


def listing():
    """What git lists, or None without git or in a copy that it does not know."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        result = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    except FileNotFoundError:
        return None
    return result.stdout if result.returncode == 0 else None


def files():
    """Paths relative to the root, as text, sorted."""
    listed = listing()
    if listed is not None:
        names = [name.decode() for name in listed.split(b"\0") if name]
    else:
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
        names = [name for name in names
                 if not name.startswith(("build/", ".git/")) and "__pycache__" not in name]
    return sorted(name for name in set(names) if (ROOT / name).is_file())


def sources(suffixes=SOURCE_SUFFIXES):
    """[(path, text)] of the source files, without those that SWIG wrote."""
    return [(name, (ROOT / name).read_text(encoding="utf-8"))
            for name in files()
            if name.endswith(suffixes) and not WRITTEN_BY_SWIG.match(name)]
