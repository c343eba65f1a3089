"""Elements in order, and the different ones."""

from __future__ import annotations

from ..graph import Extent, Graph, Operand, product
from ..numbers import dims, extents_of
from ..registry import Node, invalid_if, reads


@reads("TopK")
def top_k(g: Graph, node: Node) -> list[Operand]:
    """The k largest or smallest along an axis, in order, and their places; of equal ones the first."""
    x = node.x
    axis = g.axis(x, node.get("axis", -1))
    order = {"axis": axis, "descending": bool(node.get("largest", 1))}
    k = node.get("k") if "k" in node.attributes else dims(g, node, 1, "k")[0]
    if isinstance(k, Extent):
        return [g.cut(y, axis, 0, k) for y in g.ops("sort", [x], **order)]
    extent = g.shape(x)[axis]
    invalid_if(
        isinstance(extent, int) and not 0 <= k <= extent, f"k is {k}; axis {axis} has {extent} elements"
    )
    return g.ops("sort", [x], count=int(k), **order)


@reads("Unique")
def unique(g: Graph, node: Node) -> list[Operand]:
    """The different elements, or slices along an axis; where each is first, which one each is, how often."""
    x, axis = node.x, node.get("axis")
    if axis is None:
        whole, rows, axis = g.reshape(x, [g.size(x)]), g.reshape(x, [g.size(x)]), 0
    else:
        axis = g.axis(x, axis)
        order = [axis, *(i for i in range(g.rank(x)) if i != axis)]
        sizes = g.shape(x)
        rest = product(d for i, d in enumerate(sizes) if i != axis)
        whole, rows = x, g.reshape(g.transpose(x, order), [sizes[axis], rest])
    first, inverse, counts, number = g.ops("unique", [rows], sorted=bool(node.get("sorted", 1)))
    count = extents_of(g, number)[0]
    first, counts = g.cut(first, 0, 0, count), g.cut(counts, 0, 0, count)
    return [g.op("gather", whole, first, axis=axis), first, inverse, counts]
