# SPDX-License-Identifier: Apache-2.0
"""Writes the Swift layer over the C module from what SWIG's parser read.

    swig -xml -o waste.xml waste.i && python3 swiggen.py waste.xml > WasteRaw.swift

SWIG has no Swift backend, so this is one, for the kinds of declaration that the header has: integer
constants, structs of scalars that begin with struct_size, opaque handles, and functions of those.
Anything else stops it with its name. An array and its count become one buffer pointer. The order is
the header's, so the same header gives the same bytes (SWIG's XML itself holds addresses).
"""
import re
import sys
import xml.etree.ElementTree as ElementTree

SCALARS = {"int32_t": "Int32", "int64_t": "Int64", "uint32_t": "UInt32", "double": "Double",
           "waste_status": "waste_status", "void": "Void"}
ELEMENTS = {"char": "CChar", "int32_t": "Int32", "float": "Float", "double": "Double"}
GROUPS = {"ERR": "RawStatus", "ROLE": "RawRole", "CHANNEL": "RawChannel", "FINISH": "RawFinish",
          "IO": "RawIO", "ARITHMETIC": "RawArithmetic", "ISA": "RawISA"}
RESERVED = {"default", "in", "init", "internal", "is", "as"}


class Header:
    """The declarations of the XML, in the header's order."""

    def __init__(self, path):
        self.constants, self.structs, self.handles, self.functions = [], [], [], []
        for node in ElementTree.parse(path).getroot().iter():
            if node.tag == "constant":
                self.constants.append((attributes(node)["name"], attributes(node)["value"]))
            elif node.tag == "class":
                self.structs.append(attributes(node)["name"])
            elif node.tag == "cdecl":
                self.add(attributes(node), node)

    def add(self, own, node):
        if own.get("kind") == "function":
            parameters = [(attributes(p)["name"], attributes(p)["type"])
                          for p in node.iter("parm") if attributes(p)["type"] != "void"]
            self.functions.append((own["name"], own["type"], parameters))
        elif own.get("kind") == "typedef" and own["type"] == f"struct {own['name']}":
            if own["name"] not in self.structs:
                self.handles.append(own["name"])


def attributes(node):
    return {a.get("name"): a.get("value") for a in node.findall("attributelist/attribute")}


def camel(name):
    first, *rest = name.lower().split("_")
    return first + "".join(part.capitalize() for part in rest)


def case_name(name):
    return f"`{name}`" if name in RESERVED else name


def constants(header):
    """One enum for each group of constants, and the ones that stand alone."""
    groups, alone = {group: [] for group in GROUPS}, []
    for name, value in header.constants:
        group, _, rest = name.removeprefix("WASTE_").partition("_")
        number = int(value.strip("()"))
        if name == "WASTE_OK":
            groups["ERR"].append(("ok", number))
        elif group in GROUPS and rest:
            groups[group].append((camel(rest), number))
        elif name.startswith("WASTE_"):
            alone.append((camel(name.removeprefix("WASTE_")), number))
    for group, cases in groups.items():
        yield f"enum {GROUPS[group]}: Int32, Sendable, CaseIterable {{"
        for name, number in cases:
            yield f"  case {case_name(name)} = {number}"
        yield "}"
        yield ""
    yield "enum RawConstant {"
    for name, number in alone:
        yield f"  static let {name}: Int32 = {number}"
    yield "}"


def structs(header):
    yield "/// A struct of the header: its first field is its size, zero elsewhere the default."
    yield "protocol RawStruct {"
    yield "  init()"
    yield "  var struct_size: UInt32 { get set }"
    yield "}"
    yield ""
    yield "extension RawStruct {"
    yield "  static func sized() -> Self {"
    yield "    var made = Self()"
    yield "    made.struct_size = UInt32(MemoryLayout<Self>.size)"
    yield "    return made"
    yield "  }"
    yield "}"
    yield ""
    for name in header.structs:
        yield f"extension {name}: RawStruct {{}}"
    yield ""
    yield "/// What waste_abi_sizes must answer: the sizes that this module was compiled with."
    yield "let rawStructSizes: [Int32] = ["
    for name in header.structs:
        yield f"  Int32(MemoryLayout<{name}>.size),"
    yield "]"


def parameter(header, name, kind):
    """(Swift type, how it is passed on) of one parameter that is no part of a pair."""
    if kind in SCALARS:
        return SCALARS[kind], name
    if kind == "p.void":
        return "UnsafeMutableRawPointer?", name
    pointed = re.fullmatch(r"p\.(p\.)?(q\(const\)\.)?(\w+)", kind)
    if pointed and pointed[3] in header.handles:
        return ("UnsafeMutablePointer<OpaquePointer?>" if pointed[1] else "OpaquePointer?"), name
    if pointed and pointed[3] in header.structs and not pointed[1]:
        mutable = "" if pointed[2] else "Mutable"
        return f"Unsafe{mutable}Pointer<{pointed[3]}>?", name
    sys.exit(f"swiggen: {name} has the type {kind}, which has no form in Swift here")


def pair(first, second):
    """(Swift type, what is passed) of an array and its count, or None if the two are none."""
    name, kind = first
    array = re.fullmatch(r"p\.(q\(const\)\.)?(char|int32_t|float|double)", kind)
    count = second and second[1] == "int64_t" and second[0] in (name + "_size",
                                                                name.removesuffix("s") + "_count",
                                                                name.removesuffix("s") + "_size")
    if not array or not count:
        return None
    element = ELEMENTS[array[2]]
    mutable = "" if array[1] else "Mutable"
    return (f"Unsafe{mutable}BufferPointer<{element}>",
            [f"{name}.baseAddress", f"Int64({name}.count)"])


def function(header, name, result, parameters):
    signature, passed = [], []
    at = 0
    while at < len(parameters):
        first = parameters[at]
        both = pair(first, parameters[at + 1] if at + 1 < len(parameters) else None)
        if both:
            signature.append(f"{first[0]}: {both[0]}")
            passed += both[1]
            at += 2
        else:
            kind, argument = parameter(header, *first)
            signature.append(f"{'_ ' if not signature else ''}{first[0]}: {kind}")
            passed.append(argument)
            at += 1
    arrow = "" if result == "void" else f" -> {SCALARS[result]}"
    yield f"  static func {camel(name.removeprefix('waste_'))}("
    yield ",\n".join(f"    {one}" for one in signature)
    yield f"  ){arrow} {{"
    yield f"    CWaste.{name}({', '.join(passed)})"
    yield "  }"


def functions(header):
    yield "/// The functions of the header, in its order: an array and its count are one buffer."
    yield "enum Raw {"
    for at, (name, result, parameters) in enumerate(header.functions):
        if at:
            yield ""
        if not parameters:
            yield (f"  static func {camel(name.removeprefix('waste_'))}() -> {SCALARS[result]} "
                   f"{{ CWaste.{name}() }}")
            continue
        yield from function(header, name, result, parameters)
    yield "}"


def main(path):
    header = Header(path)
    # RawStruct.sized() is what the _init functions are for C.
    header.functions = [one for one in header.functions if not one[0].endswith("_init")]
    print("// SPDX-License-Identifier: Apache-2.0\n//")
    print("// Written by bindings/swig/generate.sh from waste.i over waste.h (SWIG's parser and")
    print("// swiggen.py). Changes belong there.\n\nimport CWaste\n")
    for part in (constants, structs, functions):
        print("\n".join(part(header)), end="\n\n" if part is not functions else "\n")


if __name__ == "__main__":
    main(sys.argv[1])
