# SPDX-License-Identifier: Apache-2.0
"""Which file may include which: core/LAYERS.txt for the modules of core, and here the rest. Only
direct includes are looked at.
"""
import re

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
CAPI_MAY_INCLUDE = {"base", "engine", "convert"}
PUBLIC_HEADER = "waste/waste.h"


def read_layers(text):
    """{module: what it may include} of LAYERS.txt."""
    layers = {}
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line:
            module, _, uses = line.partition(":")
            layers[module] = set(uses.split())
    return layers


def find_cycle(layers):
    """A module that reaches itself through what it may include, or None."""
    def reaches(module, goal, seen):
        for used in (use.split("/")[0] for use in layers.get(module, ())):
            if used == goal or used not in seen and reaches(used, goal, seen | {used}):
                return True
        return False
    return next((module for module in layers if reaches(module, module, {module})), None)


def problems(path, text, layers):
    """What is wrong with the includes of one file: [text]."""
    found = []
    for kind, name in INCLUDE.findall(text):
        if (reason := _refusal(path, kind, name, layers)) is not None:
            found.append(f"{path}: includes {name}, {reason}")
    return found


def _refusal(path, kind, name, layers):
    parts = path.split("/")
    target = name.split("/")[0] if "/" in name else None
    is_core_header = kind == '"' and target in layers
    if parts[0] == "core" and len(parts) > 2:
        return _core_refusal(parts[1], kind, name, target, layers)
    if parts[0] == "capi" and is_core_header and target not in CAPI_MAY_INCLUDE:
        return f"but capi may include {', '.join(sorted(CAPI_MAY_INCLUDE))} only"
    if parts[0] in ("examples", "bindings") and (is_core_header or name.startswith("../")):
        return f"but {parts[0]} see the public header only"
    return None


def _core_refusal(module, kind, name, target, layers):
    if module not in layers:
        return f"but core/LAYERS.txt does not know the module {module}"
    if name == PUBLIC_HEADER or name.startswith("capi/"):
        return "but core knows nothing of capi"
    if kind == "<":
        return None
    if target is None:
        return "which should be written with its module: " + f'"{module}/{name}"'
    if target not in layers and target != module:
        return "which is no module of core/LAYERS.txt"
    if target != module and target not in layers[module] and name not in layers[module]:
        return f"but core/LAYERS.txt does not let {module} include {target}"
    return None
