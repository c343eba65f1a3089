"""Elements in order."""

from __future__ import annotations

from ..graph import Extent, Graph, Operand
from ..registry import Node, invalid_if, reads


@reads("TopK")
def top_k(g: Graph, node: Node) -> list[Operand]:
    """The k largest or smallest along an axis, in order, and their places; of equal ones the first."""
    x = node.x
    k = int(node.get("k")) if "k" in node.attributes else node.dims(1, "k")[0]
    axis = g.axis(x, node.get("axis", -1))
    extent = g.shape(x)[axis]
    options = {"axis": axis, "descending": bool(node.get("largest", 1))}
    if isinstance(k, Extent):
        return [g.cut(y, axis, 0, k) for y in g.ops("sort", [x], **options)]
    invalid_if(
        isinstance(extent, int) and not 0 <= k <= extent, f"k is {k}; axis {axis} has {extent} elements"
    )
    return g.ops("sort", [x], count=k, **options)
