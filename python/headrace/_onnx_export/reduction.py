"""Reductions over axes, positions of extrema, and running sums."""

from __future__ import annotations

import numpy as np
from onnx import helper

from .elementwise import is_float
from .registry import REAL, WRAPPING, Node, lowers
from .writer import ONNX_TYPES, Writer

# ONNX Runtime reduces integers through double, which is exact for few: ours go through int64.
_EXACT = REAL | {dtype: "int64" for dtype in ("int8", "uint8", "int32", "uint32", "uint64")}


def _axes(n: Node) -> list[int]:
    rank = len(n.shape)
    axes = n.attributes.get("axes")
    return list(range(rank)) if axes is None else sorted(axis % rank for axis in axes)


def _reduce(w: Writer, n: Node, onnx_op: str) -> str:
    axes, keep = _axes(n), int(n.attributes["keep_dimensions"])
    if axes:
        return w.node(onnx_op, [n.x, w.ints(axes)], keepdims=keep)
    # Every element by itself: over an added dimension of 1.
    x = w.unsqueeze(n.x, [len(n.shape)])
    return w.node(onnx_op, [x, w.ints([len(n.shape)])], keepdims=0)


for _op, _onnx_op in {
    "reduce_l2": "ReduceL2",
    "reduce_log_sum": "ReduceLogSum",
    "reduce_log_sum_exp": "ReduceLogSumExp",
    "reduce_mean": "ReduceMean",
}.items():

    @lowers(_op, through=REAL)
    def reduce_real(w: Writer, n: Node, onnx_op: str = _onnx_op) -> str:
        return _reduce(w, n, onnx_op)


@lowers("reduce_sum", through=_EXACT)
def reduce_sum(w: Writer, n: Node) -> str:
    return _reduce(w, n, "ReduceSum") if is_float(n.dtype) else _integer_sum(w, n, n.x)


@lowers("reduce_l1", through=_EXACT)
def reduce_l1(w: Writer, n: Node) -> str:
    if is_float(n.dtype):
        return _reduce(w, n, "ReduceL1")
    is_unsigned = n.out_dtypes[0].startswith("u")
    return _integer_sum(w, n, n.x if is_unsigned else w.node("Abs", [n.x]))


@lowers("reduce_sum_square", through=_EXACT)
def reduce_sum_square(w: Writer, n: Node) -> str:
    if is_float(n.dtype):
        return _reduce(w, n, "ReduceSumSquare")
    return _integer_sum(w, n, w.node("Mul", [n.x, n.x]))


def _integer_sum(w: Writer, n: Node, x: str) -> str:
    """Products with vectors of ones, which wrap as sums of integers do."""
    axes, rank = _axes(n), len(n.shape)
    for axis in reversed(axes):
        x = w.transpose(x, [*(i for i in range(rank) if i != axis), axis])
        rank -= 1
        ones = w.node("Expand", [w.constant(1, "int64"), w.extent(n.shape[axis])])
        x = w.node("MatMul", [x, ones])
    return _with_dimensions(w, n, x, axes)


def _with_dimensions(w: Writer, n: Node, x: str, axes: list[int]) -> str:
    """Puts reduced dimensions back if they are to be kept."""
    if not axes:
        return w.node("Identity", [x])
    return w.unsqueeze(x, axes) if n.attributes["keep_dimensions"] else x


@lowers("reduce_product", through=_EXACT)
def reduce_product(w: Writer, n: Node) -> str:
    return _reduce(w, n, "ReduceProd") if is_float(n.dtype) else _fold(w, n, "Mul", 1)


@lowers("reduce_max", through=REAL | {"uint32": "float64"})
def reduce_max(w: Writer, n: Node) -> str:
    """ONNX Runtime's ReduceMax and ReduceMin compare the low halves of 64-bit integers only."""
    is_wide = n.dtype in ("int64", "uint64")
    return _fold(w, n, "Max", int(np.iinfo(n.dtype).min)) if is_wide else _reduce(w, n, "ReduceMax")


@lowers("reduce_min", through=REAL | {"uint32": "float64"})
def reduce_min(w: Writer, n: Node) -> str:
    is_wide = n.dtype in ("int64", "uint64")
    return _fold(w, n, "Min", int(np.iinfo(n.dtype).max)) if is_wide else _reduce(w, n, "ReduceMin")


def _fold(w: Writer, n: Node, onnx_op: str, start: int) -> str:
    """One axis after the other by a Scan: result = op(result, slice)."""
    axes, x, shape = _axes(n), n.x, list(n.shape)
    for axis in reversed(axes):
        del shape[axis]
        body = Writer(w)
        before, item = body.name(f"{w.scope}/before"), body.name(f"{w.scope}/item")
        after = body.node(onnx_op, [before, item])
        element = ONNX_TYPES[n.dtype]
        graph = helper.make_graph(
            body.nodes,
            body.name("fold"),
            [helper.make_tensor_value_info(name, element, None) for name in (before, item)],
            [helper.make_tensor_value_info(after, element, None)],
        )
        initial = w.node("Expand", [w.constant(start, n.dtype), w.extents(shape)])
        x = w.node("Scan", [initial, x], body=graph, num_scan_inputs=1, scan_input_axes=[axis])
    return _with_dimensions(w, n, x, axes)


@lowers("arg_max", through=REAL | {"uint32": "int64"})
def arg_max(w: Writer, n: Node) -> str:
    return _arg(w, n, "ArgMax")


@lowers("arg_min", through=REAL | {"uint32": "int64"})
def arg_min(w: Writer, n: Node) -> str:
    return _arg(w, n, "ArgMin")


def _arg(w: Writer, n: Node, onnx_op: str) -> str:
    x = n.x
    if n.dtype == "uint64":  # keeps its order as int64 with the top bit flipped, and that is a wrapping sum
        x = w.node("Add", [w.cast(x, "int64"), w.constant(-(2**63), "int64")])
    y = w.node(onnx_op, [x], axis=n.axis(), keepdims=int(n.attributes["keep_dimensions"]))
    target = n.out_dtypes[0]
    return y if target == "int64" else w.cast(y, target)


@lowers("cumulative_sum", through=WRAPPING)
def cumulative_sum(w: Writer, n: Node) -> str:
    return w.node(
        "CumSum",
        [n.x, w.constant(n.axis(), "int64")],
        exclusive=int(n.attributes["exclusive"]),
        reverse=int(n.attributes["reversed"]),
    )
