"""Reductions over axes, and softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import LARGEST_EXTENT, MOST_DIMENSIONS, Dim, Extent, Graph, Operand, product
from ..numbers import Numbers, around, axes_told, is_known, others
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
        x = node.x
        rank, keep = g.rank(x), bool(node.get("keepdims", 1))
        if not is_known(node.optional(1)) and "axes" not in node.attributes:
            return _reduced_as_told(g, op, node, keep)
        axes = node.list_at("axes", 1, "the axes")
        if not axes:
            if node.get("noop_with_empty_axes", 0):
                return _of_single_elements(g, op, x)
            axes = list(range(rank))
        return _over(g, op, x, sorted(axes_of(axes, rank)), keep)

    return reduce


def _reduced_as_told(g: Graph, op: str, node: Node, keep: bool) -> Operand:
    """Over axes that are known only at run time. Every dimension is two, of which one has the extent 1: the
    one that is reduced, or the one that is kept."""
    x, axes = node.x, node.operand(1)
    rank, count = g.rank(x), product(g.shape(axes))
    noop = bool(node.get("noop_with_empty_axes", 0))
    if count == 0:
        return _of_single_elements(g, op, x) if noop else _over(g, op, x, list(range(rank)), keep)
    is_axis = axes_told(g, axes, rank)
    if isinstance(count, Extent) and not noop:
        is_axis = Numbers(g, count).equals(0).either(is_axis)
    sizes = Numbers(g, g.shape(x))
    pairs = g.concat([is_axis.choose(1, sizes).x, is_axis.choose(sizes, 1).x], 0)
    extents = Numbers(g, pairs).extents()
    y = _over_pairs(g, op, x, extents[:rank], extents[rank:])
    if keep:
        return y
    kept = rank - g.fixed(count, "the number of axes")
    if kept == 0:
        return g.reshape(y, [])
    return g.reshape(y, Numbers(g, g.shape(y)).at(others(g, is_axis, rank, kept)).extents())


# What one axis after the other may do; before or after all of them comes another op.
_IN_TURN = {"reduce_log_sum": "reduce_sum", "reduce_sum_square": "reduce_sum"}


def _over_pairs(g: Graph, op: str, x: Operand, kept: list[Dim], reduced: list[Dim]) -> Operand:
    rank = len(kept)
    if 2 * rank <= MOST_DIMENSIONS:
        pairs = [d for pair in zip(kept, reduced, strict=True) for d in pair]
        return _over(g, op, g.reshape(x, pairs), list(range(1, 2 * rank, 2)), False)
    if op == "reduce_sum_square":
        x = g.op("mul", x, x)
    sizes = g.shape(x)
    for axis in range(rank):
        parts = [*sizes[:axis], kept[axis], reduced[axis], *sizes[axis + 1 :]]
        before, after = product(parts[:axis]), product(parts[axis + 2 :])
        x = g.reshape(x, [before, kept[axis], reduced[axis], after])
        x = _over(g, _IN_TURN.get(op, op), x, [2], False)
        sizes[axis] = kept[axis]
    x = g.reshape(x, sizes)
    return g.op("log", x) if op == "reduce_log_sum" else x


def _over(g: Graph, op: str, x: Operand, axes: list[int], keep: bool) -> Operand:
    if not axes:
        return _of_single_elements(g, op, x)
    through = "f64" if op in _OF_FLOATS and not x.is_float else x.dtype
    return g.cast(g.op(op, g.cast(x, through), axes=axes, keep_dimensions=keep), x.dtype)


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
    options = {"exclusive": bool(node.get("exclusive", 0)), "reversed": bool(node.get("reverse", 0))}
    return _along(g, node, lambda x, axis: g.op("cumulative_sum", x, axis=axis, **options))


def _along(g: Graph, node: Node, function: Any) -> Operand:
    """Of a tensor and an axis, which is an input."""
    if is_known(node.operand(1)):
        return function(node.x, g.axis(node.x, int(node.number(1, "the axis"))))
    parts, sizes = around(g, node.x, Numbers(g, node.operand(1)))
    return g.reshape(function(parts, 1), sizes)


@reads("CumProd")
def cumulative_product(g: Graph, node: Node) -> Operand:
    """In as many steps as the extent has bits: each multiplies by what lies twice as far before."""
    backwards, exclusive = bool(node.get("reverse", 0)), bool(node.get("exclusive", 0))
    longest = max((d.most if isinstance(d, Extent) else d for d in g.shape(node.x)), default=1)

    def function(x: Operand, axis: int) -> Operand:
        most = min(g.shape(x)[axis], longest) if isinstance(g.shape(x)[axis], int) else longest
        x = g.op("reverse", x, axes=[axis]) if backwards else x
        x = _moved(g, x, axis, 1) if exclusive else x
        for bit in range(min(most, LARGEST_EXTENT).bit_length() if most > 1 else 0):
            x = g.op("mul", x, _moved(g, x, axis, 2**bit))
        return g.op("reverse", x, axes=[axis]) if backwards else x

    return _along(g, node, function)


def _moved(g: Graph, x: Operand, axis: int, distance: int) -> Operand:
    """Every element so much further on, with ones before."""
    sizes = g.shape(x)
    kept = Extent.largest([0, sizes[axis] - distance])
    ones = [*sizes[:axis], sizes[axis] - kept, *sizes[axis + 1 :]]
    return g.concat([g.filled(np.array(1), x.dtype, ones), g.cut(x, axis, 0, kept)], axis)


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
