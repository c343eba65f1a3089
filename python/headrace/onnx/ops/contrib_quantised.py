"""Operators of ONNX Runtime on whole numbers that stand for real ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..graph import Graph, Operand, known
from ..registry import MICROSOFT, OPERATORS, Node, invalid_if, reads, refuse_if
from .indexing import as_indices, checked
from .linear_algebra import product_of
from .pooling import means_with_margin
from .quantization import (
    are_known,
    dequantised,
    dynamic_quantize_linear,
    qlinear_conv,
    quantised,
    whole_product,
)


def _real(g: Graph, node: Node, first: int) -> Operand:
    """Of an operand, its scale and its zero point, which lie behind one another."""
    x, scale, zero = node.operand(first), node.operand(first + 1), node.optional(first + 2)
    return dequantised(g, node, x, scale, zero, 0)


def _whole(g: Graph, node: Node, y: Operand, first: int, dtype: str) -> Operand:
    """By the scale and zero point of the result."""
    zero = node.optional(first + 1) or known(0, dtype)
    return quantised(g, node, y, g.reshape(node.operand(first), []), g.reshape(zero, []), 0)


def _plain(node: Node, x: Operand, op: str, **attributes: Any) -> Node:
    """ONNX's own operator of one real operand."""
    return replace(node, domain="", op=op, opset=21, inputs=[x], outputs=["y"], attributes=attributes)


def channels_first(g: Graph, x: Operand) -> Operand:
    rank = g.rank(x)
    return g.transpose(x, [0, rank - 1, *range(1, rank - 1)])


def channels_last(g: Graph, x: Operand) -> Operand:
    return g.transpose(x, [0, *range(2, g.rank(x)), 1])


def _in_channels_first(g: Graph, node: Node, x: Operand, compute: Any) -> Operand:
    if not node.get("channels_last", 0):
        return compute(x)
    return channels_last(g, compute(channels_first(g, x)))


# --- by real numbers --------------------------------------------------------------------------------------


@reads("QLinearSigmoid", "QLinearLeakyRelu", domain=MICROSOFT)
def qlinear_unary(g: Graph, node: Node) -> Operand:
    op = node.op.removeprefix("QLinear")
    attributes = {"alpha": node.get("alpha", 0.01)} if op == "LeakyRelu" else {}
    y = OPERATORS["", op](g, _plain(node, _real(g, node, 0), op, **attributes))
    return _whole(g, node, y, 3, node.x.dtype)


@reads("QLinearSoftmax", domain=MICROSOFT)
def qlinear_softmax(g: Graph, node: Node) -> Operand:
    opset = int(node.get("opset", 13))
    inner = _plain(node, _real(g, node, 0), "Softmax", axis=node.get("axis", -1))
    y = OPERATORS["", "Softmax"](g, replace(inner, opset=opset))
    return _whole(g, node, y, 3, node.x.dtype)


@reads("QLinearAveragePool", "QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_average_pool(g: Graph, node: Node) -> Operand:
    op = node.op.removeprefix("QLinear")
    attributes = {k: v for k, v in node.attributes.items() if k != "channels_last"}
    read = OPERATORS["", op]
    if node.get("ceil_mode", 0) and node.get("count_include_pad", 0):

        def read(g: Graph, made: Node) -> Operand:
            return means_with_margin(g, made, made.x)

    y = _in_channels_first(g, node, _real(g, node, 0), lambda x: read(g, _plain(node, x, op, **attributes)))
    return _whole(g, node, y, 3, node.x.dtype)


@reads("QLinearReduceMean", domain=MICROSOFT)
def qlinear_reduce_mean(g: Graph, node: Node) -> Operand:
    inner = _plain(node, _real(g, node, 0), "ReduceMean", **node.attributes)
    y = OPERATORS["", "ReduceMean"](g, replace(inner, opset=13))
    return _whole(g, node, y, 3, node.x.dtype)


@reads("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(g: Graph, node: Node) -> Operand:
    """Triples of an operand, its scale and its zero point behind those of the result."""
    count = len(node.inputs) - 2
    invalid_if(
        count < 3 or count % 3, f"there are {count} inputs behind the result's two; three for each operand"
    )
    parts = [_real(g, node, i) for i in range(2, len(node.inputs), 3)]
    y = g.concat(parts, g.axis(parts[0], node.get("axis", 0)))
    return _whole(g, node, y, 0, node.operand(2).dtype)


@reads("QLinearWhere", domain=MICROSOFT)
def qlinear_where(g: Graph, node: Node) -> Operand:
    y = g.op("where", node.x, _real(g, node, 1), _real(g, node, 4))
    return _whole(g, node, y, 7, node.operand(1).dtype)


@reads("QLinearConv", domain=MICROSOFT)
def contrib_qlinear_conv(g: Graph, node: Node) -> Operand:
    attributes = {k: v for k, v in node.attributes.items() if k != "channels_last"}
    plain = replace(node, domain="", opset=21, attributes=attributes)

    def compute(x: Operand) -> Operand:
        return qlinear_conv(g, replace(plain, inputs=[x, *node.inputs[1:]]))

    return _in_channels_first(g, node, node.x, compute)


# --- products ---------------------------------------------------------------------------------------------


def _scaled(g: Graph, total: Operand, scales: list[Operand], factor: float = 1.0) -> Operand:
    """The exact sums as real numbers. Scales are of the whole operand, or of the second one's columns."""
    scale = g.cast(scales[0], "f32")
    for other in scales[1:]:
        scale = g.op("mul", scale, g.cast(other, "f32"))
    scale = g.reshape(scale, []) if g.has_shape(scale, [1]) else scale
    return g.op("mul", g.cast(total, "f32"), g.times(scale, factor))


def _real_gemm(g: Graph, node: Node, a: Operand, b: Operand, c: Operand | None) -> Operand:
    transposed = bool(node.get("transB", 0))
    scale, zero = node.operand(4), node.operand(5)
    if c is not None:
        unit = np.multiply(node.operand(1).array.reshape(()), scale.array, dtype=np.float32)
        c = dequantised(g, node, c, known(unit, "f32"), None, 0)
    weights = dequantised(g, node, b, scale, zero, 0 if transposed else 1)
    y = g.op("gemm", _real(g, node, 0), weights, c, b_transpose=transposed)
    return _whole(g, node, y, 7, a.dtype)


@reads("QGemm", domain=MICROSOFT)
def qgemm(g: Graph, node: Node) -> Operand:
    """alpha A B + C, C in whole numbers; real ones without a scale of the result."""
    a, b, c = node.x, node.operand(3), node.optional(6)
    is_plain = not node.get("transA", 0) and node.get("alpha", 1.0) == 1 and node.optional(7) is not None
    if is_plain and are_known(node, list(range(1, 9))) and (c is None or g.rank(c) == 1):
        return _real_gemm(g, node, a, b, c)
    if node.get("transA", 0):
        a = g.transpose(a, [1, 0])
    if node.get("transB", 0):
        b = g.transpose(b, [1, 0])
    total = whole_product(g, a, b, node.optional(2), node.optional(5))
    if c is not None:
        total = g.op("add", total, c)
    scales = [g.reshape(node.operand(1), []), node.operand(4)]
    y = _scaled(g, total, scales, float(node.get("alpha", 1.0)))
    return y if node.optional(7) is None else _whole(g, node, y, 7, a.dtype)


@reads("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(g: Graph, node: Node) -> Operand:
    total = whole_product(g, node.x, node.operand(1), node.optional(4), node.optional(5))
    y = _scaled(g, total, [node.operand(2), node.operand(3)])
    y = y if node.optional(6) is None else g.op("add", y, g.cast(node.operand(6), "f32"))
    return g.cast(y, node.operand(2).dtype)


@reads("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(g: Graph, node: Node) -> Operand:
    """The first operand in uint8 by its own range."""
    a, scale, zero = dynamic_quantize_linear(g, replace(node, domain="", inputs=[node.x]))
    total = whole_product(g, a, node.operand(1), zero, node.optional(3))
    y = _scaled(g, total, [scale, node.operand(2)])
    return y if node.optional(4) is None else g.op("add", y, node.operand(4))


@reads("MatMulInteger16", domain=MICROSOFT)
def matmul_integer_16(g: Graph, node: Node) -> Operand:
    return product_of(g, g.cast(node.x, "i32"), g.cast(node.operand(1), "i32"))


@reads("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantize_lstm(g: Graph, node: Node) -> list[Operand]:
    """With the weights' real numbers; they lie as [directions, inputs, gates hidden]."""
    weights = []
    for i, first in ((1, 8), (2, 10)):
        x, scale, zero = node.operand(i), node.operand(first), node.operand(first + 1)
        ways, _, width = g.shape(x)
        shape = [ways, 1, width if g.rank(scale) == 2 else 1]
        scale, zero = (g.reshape(v, shape) for v in (scale, zero))
        y = g.op("mul", g.op("sub", g.cast(x, "f32"), g.cast(zero, "f32")), scale)
        weights.append(g.transpose(y, [0, 2, 1]))
    inputs = [node.x, *weights, *(node.optional(i) for i in range(3, 8))]
    return OPERATORS["", "LSTM"](g, replace(node, domain="", op="LSTM", opset=14, inputs=inputs))


# --- tables -----------------------------------------------------------------------------------------------


def _nibbles(g: Graph, x: Operand, bits: int) -> Operand:
    """Several numbers of a byte as elements along the last axis, the low ones first."""
    count = 8 // bits
    shape = g.shape(x)
    parts = []
    for i in range(count):
        part = x if i == 0 else g.op("shift_right", x, known(i * bits, "u8"))
        part = part if i == count - 1 else g.op("bitwise_and", part, known(2**bits - 1, "u8"))
        parts.append(g.add_axes(part, 1))
    return g.reshape(g.concat(parts, len(shape)), [*shape[:-1], shape[-1] * count])


@reads("GatherBlockQuantized", domain=MICROSOFT)
def gather_block_quantized(g: Graph, node: Node) -> Operand:
    """Rows of a table whose blocks have scales and zero points; only the rows become real numbers."""
    data, indices, scales, zeros = node.x, as_indices(g, node.operand(1)), node.operand(2), node.optional(3)
    bits, block = int(node.get("bits", 4)), int(node.get("block_size", 128))
    is_packed = data.dtype == "u8" and bits < 8
    refuse_if(
        bits not in (2, 4, 8) or data.dtype not in ("u8", "i4", "u4"),
        f"bits is {bits} and the table is {data.dtype}; whole numbers of 2, 4 and 8 bits are read",
    )
    rank = g.rank(data)
    axis, along = g.axis(data, node.get("gather_axis", 0)), g.axis(data, node.get("quantize_axis", 1))
    invalid_if(axis == along or block < 1, f"gather_axis and quantize_axis are {axis}, block_size is {block}")
    refuse_if(
        is_packed and axis == rank - 1,
        "it takes elements of packed bytes",
        "Use a gather_axis before the last",
    )
    indices = checked(g, node, data, indices, [axis])
    taken = [g.op("gather", x, indices, axis=axis) for x in (data, scales)]
    if along > axis:
        along += g.rank(indices) - 1
    values, scale = _nibbles(g, taken[0], bits) if is_packed else taken[0], taken[1]
    extent = g.fixed(g.shape(values)[along], "the quantised extent")
    blocks = known(np.arange(extent) // block, "i64")
    y = g.cast(values, scale.dtype)
    if zeros is not None:
        zero = g.op("gather", zeros, indices, axis=axis)
        zero = _nibbles(g, zero, bits) if is_packed else zero
        y = g.op("sub", y, g.op("gather", g.cast(zero, scale.dtype), blocks, axis=along))
    elif data.dtype == "u8":
        y = g.plus(y, -float(1 << (bits - 1)))
    return g.op("mul", y, g.op("gather", scale, blocks, axis=along))
