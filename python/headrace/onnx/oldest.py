"""Nodes of operator sets 1 to 6 as operator set 7 has them, which every function of this package knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto

from .graph import Graph, known
from .registry import Node, Refused, invalid_if

FIRST = 7  # the set in which shapes broadcast as NumPy's
_ALIGNED = {"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less", "PRelu"}
_ELEMENT_TYPES = set(TensorProto.DataType.keys())
_RENAMED = {"paddings": "pads"}
_DROPPED = ("consumed_inputs", "broadcast", "is_test")


def modernised(g: Graph, node: Node) -> Node:
    """The same computation in the oldest set that is read directly; a newer node as it is."""
    if node.opset >= FIRST or node.domain:
        return node
    attributes = {_RENAMED.get(k, k): v for k, v in node.attributes.items() if k not in _DROPPED}
    made = replace(node, opset=FIRST, attributes=attributes)
    if node.op in _ALIGNED:
        return _aligned(g, node, made)
    change = _CHANGES.get(node.op)
    return made if change is None else change(g, node, made)


def _aligned(g: Graph, node: Node, made: Node) -> Node:
    """Where the second operand broadcasts, its axes are those from `axis` on, or else the last ones."""
    a, b = node.x, node.operand(1)
    made.attributes.pop("axis", None)
    rank, own = g.rank(a), g.rank(b)
    if node.op == "PRelu":
        axis = 1 if own == 1 and g.shape(b) != [1] and rank > 1 else rank - own
    elif not node.get("broadcast", 0):
        return made
    else:
        axis = int(node.get("axis", rank - own))
    axis += rank if axis < 0 else 0
    invalid_if(
        not 0 <= axis <= rank - own, f"axis is {node.get('axis')} for operands of {rank} and {own} dimensions"
    )
    made.inputs = [a, g.add_axes(b, rank - own - axis)]
    return made


def _with_input(made: Node, name: str, default: Any = None) -> Node:
    """An attribute that became the second input."""
    value = made.attributes.pop(name, default)
    if value is not None and len(made.inputs) < 2:
        made.inputs = [*made.inputs, known(np.array(value, np.int64), "i64")]
    return made


def _cast(g: Graph, node: Node, made: Node) -> Node:
    to = node.get("to")
    if isinstance(to, str):
        if to.upper() not in _ELEMENT_TYPES:
            raise Refused(f"the target type is '{to}', which ONNX does not name")
        made.attributes["to"] = TensorProto.DataType.Value(to.upper())
    return made


def _concat(g: Graph, node: Node, made: Node) -> Node:
    made.attributes.setdefault("axis", 1 if node.opset < 4 else 0)
    return made


def _tile(g: Graph, node: Node, made: Node) -> Node:
    """Set 1 repeats along one axis."""
    if node.opset >= 6:
        return made
    counts = np.ones(g.rank(node.x), np.int64)
    counts[g.axis(node.x, int(node.number(2, "the axis")))] = int(node.number(1, "the number of tiles"))
    made.inputs = [node.x, known(counts, "i64")]
    return made


def _upsample(g: Graph, node: Node, made: Node) -> Node:
    scales = [made.attributes.pop(name, None) for name in ("height_scale", "width_scale")]
    if None not in scales:
        made.attributes["scales"] = [1.0, 1.0, *scales]
    if made.get("mode") == "bilinear":
        made.attributes["mode"] = "linear"
    return made


def _selu(g: Graph, node: Node, made: Node) -> Node:
    if node.opset < 6:
        made.attributes = {"alpha": 1.6732, "gamma": 1.0507} | made.attributes
    return made


def _whole_power(g: Graph, node: Node, made: Node) -> Node:
    p = made.get("p", 2)
    made.attributes["p"] = int(p) if float(p).is_integer() else p
    return made


_CHANGES: dict[str, Callable[[Graph, Node, Node], Node]] = {
    "Cast": _cast,
    "Concat": _concat,
    "GlobalLpPool": _whole_power,
    "LpPool": _whole_power,
    "Reshape": lambda g, node, made: _with_input(made, "shape"),
    "Selu": _selu,
    "Tile": _tile,
    "Upsample": _upsample,
}
