#!/usr/bin/env python3
"""Writes what C++ programs see of WebNN's operators from the table of the WebNN door: `make docs`.

include/headrace/webnn_options.h has a struct of options for each operator and the enumerations in them,
include/headrace/webnn_operators.inc the methods of MLGraphBuilder. Both are tracked;
tests/tools/test_webnn_header.py compares them with what is written here.
"""

import re
import textwrap
from pathlib import Path

from node_tables import ENUMS, camel_case, kind_of, options_name

ROOT = Path(__file__).resolve().parent.parent
NOTICE = "// Written by tools/webnn_header.py from the table of the WebNN door (make docs)."
WIDTH = 110
# What tensors and contexts have, and what the C++ API has as values of other types.
ENUMS_LEFT_OUT = ("MLOperandDataType", "MLPowerPreference")
TYPES = {
    "boolean": "bool",
    "dimensions": "std::vector<MLDimension>",
    "index": "std::int64_t",
    "indices": "std::vector<std::int64_t>",
    "long": "std::int64_t",
    "number": "MLNumber",
    "real": "double",
    "reals": "std::vector<double>",
    "splits": "std::vector<std::int64_t>",
    "unsignedLong": "std::int64_t",
    "unsignedLongs": "std::vector<std::int64_t>",
    "MLOperandDataType": "DType",
}
# Dictionaries of the IDL that several operators have; the others have one of their own name.
DICTIONARIES = {
    "MLArgMinMaxOptions": ("argMax", "argMin"),
    "MLGatherOptions": ("gather", "gatherElements"),
    "MLPool2dOptions": ("averagePool2d", "l2Pool2d", "maxPool2d"),
    "MLReduceOptions": (
        "reduceL1",
        "reduceL2",
        "reduceLogSum",
        "reduceLogSumExp",
        "reduceMax",
        "reduceMean",
        "reduceMin",
        "reduceProduct",
        "reduceSum",
        "reduceSumSquare",
    ),
    "MLScatterOptions": ("scatterElements",),
}
DICTIONARY_OF = {op: name for name, ops in DICTIONARIES.items() for op in ops}
# Their methods take the optional operands together.
WRITTEN_BY_HAND = ("gru", "gruCell", "lstm", "lstmCell")

OPTIONS_HEAD = f"""{NOTICE}
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "headrace/graph_writer.h"

/// The options of WebNN's operators as structs: a misspelled option does not compile. Each turns into what
/// the methods of MLGraphBuilder take; a member without a value is left to the specification's default.
/// Options that are operands are parameters of the methods.
namespace headrace::webnn {{

using MLNumber = std::variant<std::int64_t, double>;
"""
OPTIONS_TAIL = """
}  // namespace headrace::webnn
"""
ADDING = """
namespace adding {

inline void add_number(Options& options, const char* name, const std::optional<MLNumber>& number) {
    if (number) std::visit([&](auto value) { options.emplace_back(name, value); }, *number);
}
template <class T>
void add_value(Options& options, const char* name, const std::optional<T>& value) {
    if (value) options.emplace_back(name, *value);
}
template <class Enum>
void add_name(Options& options, const char* name, const std::optional<Enum>& value) {
    if (value) options.emplace_back(name, std::string(name_of(*value)));
}
/// "sigmoid,tanh", as the ops have several.
template <class Enum>
void add_names(Options& options, const char* name, const std::optional<std::vector<Enum>>& values) {
    if (!values) return;
    std::string names;
    for (const Enum value : *values) names.append(names.empty() ? "" : ",").append(name_of(value));
    options.emplace_back(name, names);
}

}  // namespace adding
"""


def wrapped(text, indent):
    """Broken behind commas, so that names of types stay whole."""
    words = re.sub(r"(?<!,) ", "\0", text)
    lines = textwrap.wrap(words, WIDTH - indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(" " * (indent if i == 0 else indent + 4) + line for i, line in enumerate(lines)).replace(
        "\0", " "
    )


def comment(text, indent):
    lines = textwrap.wrap(text, WIDTH - indent - 4)
    return "\n".join(" " * indent + "/// " + line for line in lines)


def enumerator(value):
    return "k" + "".join(part.capitalize() for part in value.split("-"))


def enum_text(name, values):
    members = ", ".join(map(enumerator, values))
    names = ", ".join(f'"{value}"' for value in values)
    return (
        f"\nenum class {name} {{ {members} }};\n"
        f"inline const char* name_of({name} value) {{\n"
        f"    static constexpr const char* kNames[] = {{{names}}};\n"
        "    return kNames[static_cast<int>(value)];\n"
        "}\n"
    )


def type_of(kind):
    if kind.endswith("[]"):
        return f"std::vector<{kind[:-2]}>"
    return TYPES.get(kind, kind)


def adder_of(kind):
    if kind == "MLNumber":
        return "add_number"
    if kind in ENUMS:
        return "add_name"
    return "add_names" if kind.startswith("std::vector<ML") else "add_value"


def parts_of(signature):
    """Its operands, the attributes that it needs, and its options; the latter two with their types."""
    operands, needed, options = [], [], []
    for parameter in signature.parameters:
        name = camel_case(parameter.target)
        if parameter.is_operand:
            operands.append((name, parameter))
        else:
            typed = (name, type_of(kind_of(signature.idl, name, parameter)), parameter)
            (needed if parameter.required else options).append(typed)
    return operands, needed, options


def options_text(name, group):
    """The struct of the operators that share a dictionary, which must be the same for all of them."""
    shared = [[(member, kind, p.target) for member, kind, p in parts_of(s)[2]] for s in group]
    if any(options != shared[0] for options in shared):
        raise ValueError(f"{name}: {', '.join(s.idl for s in group)} have different options")
    ops = ", ".join(signature.idl for signature in group)
    lines = ["", comment(f"Options of MLGraphBuilder's {ops}.", 0), f"struct {name} {{"]
    options = parts_of(group[0])[2]
    for member, kind, parameter in options:
        lines += [comment(parameter.doc, 4)] if parameter.doc else []
        lines.append(f"    std::optional<{kind}> {member} = {{}};")
    lines += ["", "    operator Options() const {", "        Options options;"]
    lines += [
        f'        adding::{adder_of(kind)}(options, "{parameter.target}", {member});'
        for member, kind, parameter in options
    ]
    return "\n".join([*lines, "        return options;", "    }", "};", ""])


def dictionaries(signatures):
    """The operators with options, by the dictionary that these are."""
    groups = {}
    for signature in signatures:
        if parts_of(signature)[2]:
            name = DICTIONARY_OF.get(signature.idl, options_name(signature.idl))
            groups.setdefault(name, []).append(signature)
    return groups


def takes_options(operands, needed, options):
    """A method of one or two operands always does, so that all those look alike."""
    plain = len(operands) <= 2 and not needed and all(parameter.required for _, parameter in operands)
    return bool(options) or plain


def method_text(signature):
    operands, needed, options = parts_of(signature)
    parameters = []
    for name, parameter in operands:
        kind = "const std::vector<MLOperand>&" if parameter.is_list else "const MLOperand&"
        parameters.append(f"{kind} {name}" + ("" if parameter.required else " = {}"))
    parameters += [f"{kind} {name}" for name, kind, _ in needed]
    has_options = takes_options(operands, needed, options)
    if has_options:
        parameters.append(("MLOptions" if needed else "const MLOptions&") + " options = {}")
    parameters.append('const std::string& label = ""')
    result = "std::vector<MLOperand>" if signature.returns_list else "MLOperand"
    lines = [comment(signature.summary, 4)] if signature.summary else []
    lines.append(wrapped(f"{result} {signature.idl}({', '.join(parameters)}) {{", 4))

    def moved(name, kind):
        return f"std::move({name})" if kind.startswith("std::vector") else name

    pairs = [f'"{parameter.target}", {moved(name, kind)}' for name, kind, parameter in needed]
    given = "options" if has_options else "{" + ", ".join(f"{{{pair}}}" for pair in pairs) + "}"
    if has_options:
        lines += [f"        options.emplace_back({pair});" for pair in pairs]
    names = ", ".join(name for name, _ in operands)
    listed = any(parameter.is_list for _, parameter in operands)
    single = "" if signature.returns_list else "[0]"
    if listed:
        call = f'op("{signature.name}", {names}, {given}, label){single}'
    elif signature.returns_list:
        call = f'op("{signature.name}", {{&{names}, 1}}, {given}, label)'
    else:
        call = f'op1("{signature.name}", {{{names}}}, {given}, label)'
    return "\n".join([*lines, wrapped(f"return {call};", 8), "    }", ""])


def files():
    """The text of each file, by its path."""
    from headrace._core import signatures

    enums = [enum_text(name, values) for name, values in ENUMS.items() if name not in ENUMS_LEFT_OUT]
    options = [options_text(name, group) for name, group in dictionaries(signatures()).items()]
    methods = [method_text(s) for s in signatures() if s.idl not in WRITTEN_BY_HAND]
    include = ROOT / "include/headrace"
    return {
        include / "webnn_options.h": "".join([OPTIONS_HEAD, *enums, ADDING, *options, OPTIONS_TAIL]),
        include / "webnn_operators.inc": f"{NOTICE}\n" + "".join(methods),
    }


def main():
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
