"""Operators whose results are as large as their inputs' elements say."""

from __future__ import annotations

from ..graph import Graph, Operand
from ..registry import Node, reads


@reads("NonZero")
def non_zero(g: Graph, node: Node) -> Operand:
    """The places of elements that are not 0, a row for each dimension. The same ones are counted once."""
    x = node.x if g.rank(node.x) else g.reshape(node.x, [1])
    mask = g.value(x)
    if mask not in g.places:
        g.places[mask] = g.op("non_zero", x, counts=[g.counted()])
    return g.places[mask]
