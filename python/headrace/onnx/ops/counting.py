"""Operators whose results are as large as their inputs' elements say."""

from __future__ import annotations

from ..graph import Graph, Operand, known
from ..numbers import extents_of
from ..registry import Node, invalid_if, reads


@reads("NonZero")
def non_zero(g: Graph, node: Node) -> Operand:
    """The places of elements that are not 0, a row for each dimension. The same ones are counted once."""
    x = node.x if g.rank(node.x) else g.reshape(node.x, [1])
    mask = g.value(x)
    if mask not in g.places:
        g.places[mask] = g.op("non_zero", x, counts=[g.counted()])
    return g.places[mask]


@reads("NonMaxSuppression")
def non_max_suppression(g: Graph, node: Node) -> Operand:
    """Rows of batch, class and box: the best boxes that overlap no better one too much."""
    boxes, scores = (g.cast(node.operand(i), "f32") for i in (0, 1))
    invalid_if(
        [g.rank(boxes), g.rank(scores)] != [3, 3],
        f"boxes and scores have {g.rank(boxes)} and {g.rank(scores)} dimensions, not 3",
    )
    most = node.optional(2) or known(0, "i64")
    options = {"centered": bool(node.get("center_point_box", 0))}
    if most.array is not None and most.array.dtype != object:
        options["room"] = max(int(most.array.reshape(-1)[0]), 0)
    overlap, least = node.optional(3) or known(0, "f32"), node.optional(4)
    rows, number = g.ops(
        "non_max_suppression", [boxes, scores, g.cast(most, "i64"), overlap, least], **options
    )
    return g.cut(rows, 0, 0, extents_of(g, number)[0])
