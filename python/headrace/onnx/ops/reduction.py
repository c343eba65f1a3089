"""Reductions over axes, and softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Graph, Operand, product
from ..registry import OPERATORS, Node, axes_of, invalid_if, reads, refuse_if

REDUCTIONS = {
    "ReduceL1": "reduce_l1",
    "ReduceL2": "reduce_l2",
    "ReduceLogSum": "reduce_log_sum",
    "ReduceLogSumExp": "reduce_log_sum_exp",
    "ReduceMax": "reduce_max",
    "ReduceMean": "reduce_mean",
    "ReduceMin": "reduce_min",
    "ReduceProd": "reduce_product",
    "ReduceSum": "reduce_sum",
    "ReduceSumSquare": "reduce_sum_square",
}
_OF_FLOATS = {"reduce_l2", "reduce_log_sum", "reduce_log_sum_exp", "reduce_mean"}


def _reduce(op: str) -> Any:
    def reduce(g: Graph, node: Node) -> Operand:
        """The axes are an attribute in older operator sets and an input in newer ones."""
        x, axes = node.x, node.list_at("axes", 1, "the axes")
        rank, keep = g.rank(x), bool(node.get("keepdims", 1))
        if not axes:
            if node.get("noop_with_empty_axes", 0):
                return _of_single_elements(g, op, x)
            axes = list(range(rank))
        axes = sorted(set(axes_of(axes, rank)))
        if not axes:
            return _of_single_elements(g, op, x)
        through = "f64" if op in _OF_FLOATS and not x.is_float else x.dtype
        y = g.op(op, g.cast(x, through), axes=axes, keep_dimensions=keep)
        return g.cast(y, x.dtype)

    return reduce


def _of_single_elements(g: Graph, op: str, x: Operand) -> Operand:
    if op in ("reduce_l1", "reduce_l2"):
        return g.op("abs", x)
    if op == "reduce_sum_square":
        return g.op("mul", x, x)
    return g.op("log" if op == "reduce_log_sum" else "identity", x)


for _name, _op in REDUCTIONS.items():
    OPERATORS["", _name] = _reduce(_op)


@reads("ArgMax", "ArgMin")
def arg_reduce(g: Graph, node: Node) -> Operand:
    """The first of equal elements, or the last one."""
    x, op = node.x, "arg_max" if node.op == "ArgMax" else "arg_min"
    axis = g.axis(x, node.get("axis", 0))
    options = {"keep_dimensions": bool(node.get("keepdims", 1)), "output_data_type": "dtype:i64"}
    if not node.get("select_last_index", 0):
        return g.op(op, x, axis=axis, **options)
    y = g.op(op, g.op("reverse", x, axes=[axis]), axis=axis, **options)
    last = g.at_run_time(g.shape(x)[axis] - 1, "i64")
    return g.op("sub", last, y)


def _as_matrix(g: Graph, node: Node, function: Any) -> Operand:
    """Before operator set 13 the axes from `axis` on are one."""
    x = node.x
    sizes = g.shape(x)
    if node.opset >= 13:
        return function(x, g.axis(x, node.get("axis", -1)))
    axis = node.get("axis", 1)
    axis = axis + len(sizes) if axis < 0 else axis
    invalid_if(
        not 0 <= axis <= len(sizes), f"axis {node.get('axis', 1)} is outside the dimensions of {sizes}"
    )
    if axis == len(sizes) - 1:
        return function(x, axis)
    flat = g.reshape(x, [product(sizes[:axis]), product(sizes[axis:])])
    return g.reshape(function(flat, 1), sizes)


@reads("Softmax")
def softmax(g: Graph, node: Node) -> Operand:
    return _as_matrix(g, node, lambda x, axis: g.op("softmax", x, axis=axis))


@reads("LogSoftmax")
def log_softmax(g: Graph, node: Node) -> Operand:
    def function(x: Operand, axis: int) -> Operand:
        return g.op("sub", x, g.op("reduce_log_sum_exp", x, axes=[axis], keep_dimensions=True))

    return _as_matrix(g, node, function)


@reads("Hardmax")
def hardmax(g: Graph, node: Node) -> Operand:
    """1 at the first of the largest elements, else 0."""

    def function(x: Operand, axis: int) -> Operand:
        sizes = g.shape(x)
        largest = g.op("arg_max", x, axis=axis, keep_dimensions=True, output_data_type="dtype:i64")
        places = g.reshape(g.positions(sizes[axis]), [sizes[axis], *[1] * (len(sizes) - 1 - axis)])
        return g.cast(g.op("equal", places, largest), x.dtype)

    return _as_matrix(g, node, function)


@reads("CumSum")
def cumulative_sum(g: Graph, node: Node) -> Operand:
    axis = g.axis(node.x, int(node.number(1, "the axis")))
    options = {"exclusive": bool(node.get("exclusive", 0)), "reversed": bool(node.get("reverse", 0))}
    return g.op("cumulative_sum", node.x, axis=axis, **options)


@reads("CumProd")
def cumulative_product(g: Graph, node: Node) -> Operand:
    """In as many steps as the extent has bits: each multiplies by what lies twice as far before."""
    x = node.x
    axis = g.axis(x, int(node.number(1, "the axis")))
    extent = g.fixed(g.shape(x)[axis], "the extent along which to multiply")
    backwards = bool(node.get("reverse", 0))
    if backwards:
        x = g.op("reverse", x, axes=[axis])
    distance = 1
    if node.get("exclusive", 0):
        x = _moved(g, x, axis, extent, 1)
    while distance < extent:
        x = g.op("mul", x, _moved(g, x, axis, extent, distance))
        distance *= 2
    return g.op("reverse", x, axes=[axis]) if backwards else x


def _moved(g: Graph, x: Operand, axis: int, extent: int, distance: int) -> Operand:
    """Every element so much further on, with ones before."""
    begin = [0] * g.rank(x)
    begin[axis] = min(distance, extent)
    kept = g.cut(x, axis, 0, extent - begin[axis]) if begin[axis] < extent else None
    if kept is None:
        return g.filled(np.array(1), x.dtype, g.shape(x))
    return g.op(
        "pad", kept, beginning_padding=begin, ending_padding=[0] * g.rank(x), mode="constant", value=1
    )


@reads("Det")
def determinant(g: Graph, node: Node) -> Operand:
    """By Laplace's formula, of matrices up to 3 x 3."""
    x = node.x
    invalid_if(g.rank(x) < 2, f"the input has {g.rank(x)} dimensions; 2 are the least")
    *batch, rows, columns = g.shape(x)
    refuse_if(
        rows != columns or rows not in (1, 2, 3),
        f"the input is of matrices of {rows} x {columns}; square ones up to 3 x 3 are read",
    )

    def at(i: int, j: int) -> Operand:
        return g.reshape(g.cut(g.cut(x, len(batch), i, 1), len(batch) + 1, j, 1), batch)

    def minor(i: int, j: int, k: int, m: int) -> Operand:
        return g.op("sub", g.op("mul", at(i, k), at(j, m)), g.op("mul", at(i, m), at(j, k)))

    if rows == 1:
        return g.op("identity", at(0, 0))
    if rows == 2:
        return minor(0, 1, 0, 1)
    parts = [g.op("mul", at(0, k), minor(1, 2, *[m for m in range(3) if m != k])) for k in range(3)]
    return g.op("add", g.op("sub", parts[0], parts[1]), parts[2])


def is_zero(x: Operand | None) -> bool:
    """Absent, or known to be nothing but zeros."""
    return x is None or (x.array is not None and not np.any(x.array))
