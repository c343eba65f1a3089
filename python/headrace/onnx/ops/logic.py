"""Comparisons, truth values and choices."""

from __future__ import annotations

import math
from typing import Any

from ..graph import Graph, Operand, known
from ..registry import OPERATORS, Node, invalid_if, reads

COMPARISONS = {
    "Equal": "equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_or_equal",
    "Less": "lesser",
    "LessOrEqual": "lesser_or_equal",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_xor",
}


def _compare(op: str) -> Any:
    return lambda g, node: g.op(op, node.x, node.operand(1))


for _name, _op in COMPARISONS.items():
    OPERATORS["", _name] = _compare(_op)


@reads("Not")
def negation(g: Graph, node: Node) -> Operand:
    return g.op("logical_not", node.x)


@reads("IsNaN")
def is_nan(g: Graph, node: Node) -> Operand:
    return g.op("is_nan", node.x)


@reads("IsInf")
def is_infinite(g: Graph, node: Node) -> Operand:
    above, below = node.get("detect_positive", 1), node.get("detect_negative", 1)
    if above and below:
        return g.op("is_infinite", node.x)
    limit = math.inf if above else -math.inf
    found = g.op("equal", node.x, known(limit, node.x.dtype))
    return found if above or below else g.op("logical_and", found, known(False, "bool"))


@reads("Where")
def where(g: Graph, node: Node) -> Operand:
    invalid_if(node.x.dtype != "bool", f"the condition (input 0) is {node.x.dtype}, not bool")
    return g.op("where", node.x, node.operand(1), node.operand(2))
