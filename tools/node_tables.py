#!/usr/bin/env python3
"""Writes what the npm package knows of the operators from the table of the WebNN door: `make docs`.

node/lib/webnn/operators.js drives the builder's methods, node/webnn.d.ts has their types. Both are tracked;
tests/tools/test_node_tables.py compares them with what is written here. Only what the door's table does not
know is stated here: names of the IDL's enumerations, and where WebNN allows less than the catalog's ops.
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTICE = "// Written by tools/node_tables.py from the table of the WebNN door (make docs)."

ENUMS = {
    "MLConv2dFilterOperandLayout": ("oihw", "hwio", "ohwi", "ihwo"),
    "MLConvTranspose2dFilterOperandLayout": ("iohw", "hwoi", "ohwi"),
    "MLGruWeightLayout": ("zrn", "rzn"),
    "MLInputOperandLayout": ("nchw", "nhwc"),
    "MLInterpolationMode": ("nearest-neighbor", "linear"),
    "MLLstmWeightLayout": ("iofg", "ifgo"),
    "MLOperandDataType": (
        "float32",
        "float16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "int8",
        "uint8",
        "int4",  # these two, of conformance cases, are ahead of the IDL: two elements a byte
        "uint4",
    ),
    "MLPaddingMode": ("constant", "edge", "reflection"),
    "MLPowerPreference": ("default", "high-performance", "low-power"),
    "MLRecurrentNetworkActivation": ("relu", "sigmoid", "tanh"),
    "MLRecurrentNetworkDirection": ("forward", "backward", "both"),
    "MLRoundingType": ("floor", "ceil"),
}
# The IDL's type of a parameter whose own type does not tell it, by operator and parameter or by parameter.
KINDS = {
    "activations": "MLRecurrentNetworkActivation[]",
    "conv2d.filterLayout": "MLConv2dFilterOperandLayout",
    "convTranspose2d.filterLayout": "MLConvTranspose2dFilterOperandLayout",
    "cumulativeSum.axis": "unsignedLong",
    "direction": "MLRecurrentNetworkDirection",
    "gru.layout": "MLGruWeightLayout",
    "gruCell.layout": "MLGruWeightLayout",
    "inputLayout": "MLInputOperandLayout",
    "layout": "MLInputOperandLayout",
    "newShape": "dimensions",
    "lstm.layout": "MLLstmWeightLayout",
    "lstmCell.layout": "MLLstmWeightLayout",
    "outputShapeRounding": "MLRoundingType",
    "pad.mode": "MLPaddingMode",
    "resample2d.mode": "MLInterpolationMode",
    "split.splits": "splits",
    "tile.repetitions": "unsignedLongs",
    "triangular.diagonal": "long",
}
KIND_OF_TYPE = {
    "bool": "boolean",
    "float": "real",
    "int": "index",
    "int | float": "number",
    "Sequence[float]": "reals",
    "Sequence[int]": "indices",
}
REQUIRED = {"dequantizeLinear.zeroPoint"}
EXTENSIONS = {"hardSwish.alpha", "hardSwish.beta"}  # of the catalog, not of WebNN
RENAMED = {"isInfinite.input": "a", "isNaN.input": "a", "logicalNot.input": "a"}
WITHOUT_BYTES = ("cumulativeSum", "reduceL1", "reduceProduct", "reduceSum", "reduceSumSquare")
TYPES_LEFT_OUT = {f"{op}.input": ("int8", "uint8") for op in WITHOUT_BYTES} | {"resample2d.input": ("int32",)}
RANKS = {
    "argMax.input": (1, None),
    "argMin.input": (1, None),
    "batchNormalization.input": (1, None),
    "batchNormalization.mean": (1, 1),
    "batchNormalization.variance": (1, 1),
    "batchNormalization.scale": (1, 1),
    "batchNormalization.bias": (1, 1),
    "conv2d.bias": (1, 1),
    "convTranspose2d.bias": (1, 1),
    "cumulativeSum.input": (1, None),
    "gatherElements.indices": (1, None),
    "instanceNormalization.scale": (1, 1),
    "instanceNormalization.bias": (1, 1),
    "scatterElements.updates": (1, None),
    "softmax.input": (1, None),
}
# The operand whose data types the results have, where that is not the first; or the types.
RESULT_TYPES = {
    "argMax": ["int32", "int64"],
    "argMin": ["int32", "int64"],
    "cast": list(ENUMS["MLOperandDataType"]),
    "dequantizeLinear": "scale",
    "quantizeLinear": "zeroPoint",
    "where": "trueValue",
}
TRUTHS = [
    "equal",
    "greater",
    "greaterOrEqual",
    "isInfinite",
    "isNaN",
    "lesser",
    "lesserOrEqual",
    "logicalAnd",
    "logicalNot",
    "logicalOr",
    "logicalXor",
    "notEqual",
]
# Results by name with their ranks, where they are not one "output" of the first operand's.
RESULTS = {
    "gru": {"output0": (3, 3), "output1": (4, 4)},
    "lstm": {"output0": (3, 3), "output1": (3, 3), "output2": (4, 4)},
    "lstmCell": {"output0": (2, 2), "output1": (2, 2)},
    "split": {"outputs": None},
}
ANY_RANK = ("argMax", "argMin", "gatherND")


def camel_case(name):
    return re.sub(r"_(\w)", lambda m: m[1].upper(), name)


def by_name(table, op, name, default=None):
    return table.get(f"{op}.{name}", table.get(name, default))


def kind_of(op, name, parameter):
    if parameter.is_operand:
        return "operands" if parameter.is_list else "operand"
    if parameter.is_data_type:
        return "MLOperandDataType"
    return by_name(KINDS, op, name) or KIND_OF_TYPE[parameter.type_text.removesuffix(" | None")]


def operand_limits(op, name, limits):
    types = [t for t in limits["dataTypes"] if t in ENUMS["MLOperandDataType"]]
    left_out = TYPES_LEFT_OUT.get(f"{op}.{name}", ())
    least, most = RANKS.get(f"{op}.{name}", (None, None))
    ranks = limits["rankRange"]
    return {
        "types": [t for t in types if t not in left_out],
        "ranks": [ranks["min"] if least is None else least, ranks["max"] if most is None else most],
    }


def result_limits(op, operands, most):
    first = next(iter(operands.values()))
    source = RESULT_TYPES.get(op)
    types = ["uint8"] if op in TRUTHS else source if isinstance(source, list) else None
    types = types or (operands[source] if source else first)["types"]
    ranks = [0, most] if op in ANY_RANK or op.startswith("reduce") else first["ranks"]
    results = RESULTS.get(op, {"output": None})
    return {name: {"types": types, "ranks": list(own or ranks)} for name, own in results.items()}


def row(signature, limits, most):
    op = signature.idl
    result = {"name": op, "catalog": signature.name, "list": signature.returns_list}
    result |= {"parameters": [], "options": [], "operands": {}}
    for parameter in signature.parameters:
        target = camel_case(parameter.target)
        name = RENAMED.get(f"{op}.{target}", target)
        if f"{op}.{name}" in EXTENSIONS:
            continue
        entry = [name, kind_of(op, name, parameter), parameter.target]
        required = parameter.required or f"{op}.{name}" in REQUIRED
        result["parameters" if required else "options"].append(entry)
        if parameter.is_operand:
            result["operands"][name] = operand_limits(op, name, limits[target])
    result["results"] = result_limits(op, result["operands"], most)
    return result


def rows():
    import webnn
    from headrace._core import signatures

    limits = webnn.ML().create_context(accelerated=False).op_support_limits()
    most = limits["input"]["rankRange"]["max"]
    return [row(signature, limits[signature.idl], most) for signature in signatures()], most


def operators_text(table, most):
    lines = [
        NOTICE,
        f"export const greatestRank = {most};",
        f"export const enums = {json.dumps(ENUMS)};",
        "/** Parameters and options: [name, kind, name in the catalog]; operands in the catalog's order. */",
        "export const operators = [",
        *(f"  {json.dumps(entry)}," for entry in table),
        "];",
    ]
    return "\n".join(lines) + "\n"


TYPESCRIPT = {
    "boolean": "boolean",
    "dimensions": "Iterable<MLDimension>",
    "index": "number",
    "indices": "Iterable<number>",
    "long": "number",
    "number": "MLNumber",
    "operand": "MLOperand",
    "operands": "Iterable<MLOperand>",
    "real": "number",
    "reals": "Iterable<number>",
    "splits": "number | Iterable<number>",
    "unsignedLong": "number",
    "unsignedLongs": "Iterable<number>",
}


def type_of(kind):
    if kind in TYPESCRIPT:
        return TYPESCRIPT[kind]
    return f"Iterable<{kind[:-2]}>" if kind.endswith("[]") else kind


def options_name(op):
    return f"ML{op[0].upper()}{op[1:]}Options"


def operator_types(entry):
    """The dictionary of an operator's options, if it has any, and its method."""
    members = [f"  {name}?: {type_of(kind)};" for name, kind, _ in sorted(entry["options"])]
    name = options_name(entry["name"]) if members else "MLOperatorOptions"
    head = [f"export interface {name} extends MLOperatorOptions {{", *members, "}"] if members else []
    parameters = ", ".join(f"{n}: {type_of(kind)}" for n, kind, _ in entry["parameters"])
    result = "MLOperand[]" if entry["list"] else "MLOperand"
    return head, f"  {entry['name']}({parameters}, options?: {name}): {result};"


def limits_types(entry):
    names = [*entry["operands"], *entry["results"]]
    return f"  {entry['name']}: {{ {' '.join(f'{name}: MLTensorLimits;' for name in names)} }};"


def types_text(table):
    head, methods = zip(*(operator_types(entry) for entry in table), strict=True)
    enums = [f"export type {name} = {' | '.join(map(json.dumps, values))};" for name, values in ENUMS.items()]
    text = (ROOT / "node/types/webnn.d.ts.in").read_text()
    for name, lines in {
        "enums": enums,
        "options": [line for part in head for line in part],
        "limits": [limits_types(entry) for entry in table],
        "operators": methods,
    }.items():
        text = text.replace(f"// @{name}\n", "\n".join(lines) + "\n")
    return f"{NOTICE}\n{text}"


def files():
    """The text of each file, by its path."""
    table, most = rows()
    return {
        ROOT / "node/lib/webnn/operators.js": operators_text(table, most),
        ROOT / "node/webnn.d.ts": types_text(table),
    }


def main():
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
