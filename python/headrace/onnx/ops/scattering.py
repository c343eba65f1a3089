"""Writing at indices."""

from __future__ import annotations

from ..graph import Graph, Operand, known, product
from ..registry import Node, invalid_if, reads
from .indexing import as_indices, checked, checked_tuples, row_major

_COMBINE = {"add": "sum", "mul": "product", "max": "max", "min": "min"}


@reads("ScatterElements", "Scatter")
def scatter_elements(g: Graph, node: Node) -> Operand:
    x, indices, updates = node.x, as_indices(g, node.operand(1)), node.operand(2)
    axis, reduction = g.axis(x, node.get("axis", 0)), node.get("reduction", "none")
    indices = checked(g, node, x, indices, [axis])
    if reduction == "none":
        return g.op("scatter_elements", x, indices, updates, axis=axis)
    invalid_if(
        reduction not in _COMBINE, f"reduction is '{reduction}'; none, {', '.join(_COMBINE)} are ONNX's"
    )
    return g.op("scatter_reduce", x, indices, updates, axis=axis, reduction=_COMBINE[reduction])


@reads("ScatterND")
def scatter_nd(g: Graph, node: Node) -> Operand:
    x, indices, updates = node.x, as_indices(g, node.operand(1)), node.operand(2)
    indices = checked_tuples(g, node, x, indices)
    reduction = node.get("reduction", "none")
    if reduction == "none":
        return g.op("scatter_nd", x, indices, updates)
    invalid_if(
        reduction not in _COMBINE, f"reduction is '{reduction}'; none, {', '.join(_COMBINE)} are ONNX's"
    )
    return _combined(g, x, g.cast(indices, "i64"), updates, _COMBINE[reduction])


def _combined(g: Graph, x: Operand, indices: Operand, updates: Operand, reduction: str) -> Operand:
    """All indexed dimensions as one, so that an index is one number, and each slice a row."""
    shape, own = g.shape(x), g.shape(indices)
    depth = g.fixed(own[-1], "how many dimensions the indices are of")
    row, count = product(shape[depth:]), product(own[:-1])
    sizes = known(shape[:depth], "i64")
    negative = g.op("lesser", indices, known(0, "i64"))
    indices = g.op("where", negative, g.op("add", indices, sizes), indices)
    steps = known(row_major(shape[:depth]), "i64")
    place = g.op("reduce_sum", g.op("mul", indices, steps), axes=[len(own) - 1])
    rows = g.expand(g.reshape(place, [count, 1]), [count, row])
    flat, updates = g.reshape(x, [product(shape[:depth]), row]), g.reshape(updates, [count, row])
    return g.reshape(g.op("scatter_reduce", flat, rows, updates, axis=0, reduction=reduction), shape)
