"""Whole numbers that stand for real ones, and products of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..graph import Dim, Extent, Graph, Operand, known
from ..registry import MICROSOFT, Node, invalid_if, reads, refuse_if
from ..source import dtype_named
from ..stored import CARRIERS, RANGES, SMALL_FLOATS, as_type, narrowed
from .convolution import convolution
from .linear_algebra import product_of
from .reduction import is_zero

EXACT = 256  # terms: so many products of bytes add up exactly in single precision


def _along(g: Graph, node: Node, x: Operand, v: Operand, axis: int) -> Operand:
    """A scale or zero point so that it broadcasts: per tensor, per axis, or in blocks along the axis."""
    rank = g.rank(x)
    if g.rank(v) == 0 or g.has_shape(v, [1]):
        return g.reshape(v, [])
    block = int(node.get("block_size", 0))
    if block and g.rank(v) == rank:
        return _even_blocks(g, x, v, axis, block)
    if g.rank(v) == rank > 1:
        return v
    return g.reshape(v, [*g.shape(v), *[1] * (rank - 1 - axis)])


def _even_blocks(g: Graph, x: Operand, v: Operand, axis: int, block: int) -> Operand:
    """The catalog's blocks have one size: where the last one is smaller, each element gets its own number."""
    extent, count = g.shape(x)[axis], g.shape(v)[axis]
    if isinstance(extent, Extent) or isinstance(count, Extent) or extent == count * block:
        return v
    refuse_if(count != -(-extent // block), f"{count} blocks of {block} for an extent of {extent}")
    return g.op("gather", v, known(np.arange(extent) // block, "i64"), axis=axis)


def _each(g: Graph, node: Node, x: Operand, v: Operand, axis: int) -> Operand:
    """As _along, and a number for each element where they come in blocks: for ops that know no blocks."""
    v = _along(g, node, x, v, axis)
    block = int(node.get("block_size", 0))
    if not block or g.rank(v) != g.rank(x) or g.rank(x) == 0 or g.has_shape(v, g.shape(x)):
        return v
    extent = g.fixed(g.shape(x)[axis], "the extent that is divided into blocks")
    return g.op("gather", v, known(g.numbered(extent) // block, "i64"), axis=axis)


def _quantised_by_parts(
    g: Graph, node: Node, x: Operand, scale: Operand, zero: Operand | None, axis: int, dtype: str
) -> Operand:
    """To a type that the catalog's op does not know."""
    y = g.op("div", g.cast(x, "f32"), g.cast(_each(g, node, x, scale, axis), "f32"))
    if dtype in SMALL_FLOATS:
        if not is_zero(zero):
            y = g.op("add", y, g.cast(_each(g, node, x, zero, axis), "f32"))
        return narrowed(g, y, dtype, bool(node.get("saturate", 1)))
    y = g.op("round_even", y)
    if not is_zero(zero):
        y = g.op("add", y, g.cast(_each(g, node, x, zero, axis), "f32"))
    low, high = RANGES[dtype]
    y = g.op("max", g.op("min", y, known(high, "f32")), known(low, "f32"))
    return as_type(g, g.cast(y, CARRIERS[dtype]), dtype)


def quantised(g: Graph, node: Node, x: Operand, scale: Operand, zero: Operand | None, axis: int) -> Operand:
    dtype = "u8" if zero is None else zero.dtype
    if zero is None and node.get("output_dtype", 0):
        dtype = dtype_named(node.get("output_dtype"), "output_dtype")
    if dtype in CARRIERS:
        return _quantised_by_parts(g, node, x, scale, zero, axis, dtype)
    scale = _along(g, node, x, g.cast(scale, x.dtype), axis)
    zero = g.filled(0, dtype, g.shape(scale)) if zero is None else _along(g, node, x, zero, axis)
    return g.op("quantize_linear", x, scale, zero)


@reads("QuantizeLinear")
def quantize_linear(g: Graph, node: Node) -> Operand:
    x = node.x
    axis = g.axis(x, node.get("axis", 1)) if g.rank(x) > 1 else 0
    values = x if x.is_float else g.cast(x, "f32")
    return quantised(g, node, values, node.operand(1), node.optional(2), axis)


def dequantised(g: Graph, node: Node, x: Operand, scale: Operand, zero: Operand | None, axis: int) -> Operand:
    if x.dtype in CARRIERS or scale.dtype in CARRIERS:
        y = g.cast(x, "f32")
        if not is_zero(zero):
            y = g.op("sub", y, g.cast(_each(g, node, x, zero, axis), "f32"))
        wide = "f32" if scale.dtype in CARRIERS else scale.dtype
        return g.cast(g.op("mul", y, g.cast(_each(g, node, x, scale, axis), "f32")), wide)
    scale = _along(g, node, x, scale, axis)
    return g.op("dequantize_linear", x, scale, None if zero is None else _along(g, node, x, zero, axis))


@reads("DequantizeLinear")
def dequantize_linear(g: Graph, node: Node) -> Operand:
    x = node.x
    axis = g.axis(x, node.get("axis", 1)) if g.rank(x) > 1 else 0
    y = dequantised(g, node, x, node.operand(1), node.optional(2), axis)
    wanted = node.get("output_dtype", 0)
    return g.cast(y, dtype_named(wanted, "output_dtype")) if wanted else y


@reads("DynamicQuantizeLinear")
def dynamic_quantize_linear(g: Graph, node: Node) -> list[Operand]:
    """uint8 with the scale and zero point by the input's own range, which is widened to hold 0.

    Of nothing but zeros, the scale is 1.
    """
    x = node.x
    axes = list(range(g.rank(x)))
    high = g.op("max", g.op("reduce_max", x, axes=axes), known(0, "f32"))
    low = g.op("min", g.op("reduce_min", x, axes=axes), known(0, "f32"))
    scale = g.op("div", g.op("sub", high, low), known(255, "f32"))
    scale = g.op("where", g.op("equal", scale, known(0, "f32")), known(1, "f32"), scale)
    zero = g.op("clamp", g.op("div", g.op("neg", low), scale), min_value=0, max_value=255)
    zero = g.cast(g.op("round_even", zero), "u8")
    return [g.op("quantize_linear", x, scale, zero), scale, zero]


# --- products ---------------------------------------------------------------------------------------------


def _shifted(g: Graph, x: Operand, zero: Operand | None, is_column: bool) -> Operand:
    """Less its zero point, in single precision. A row of zero points belongs to the first operand's rows."""
    x = g.cast(x, "f32")
    if zero is None or (zero.array is not None and not np.any(zero.array)):
        return x
    zero = g.cast(zero, "f32")
    if g.has_shape(zero, [1]):
        zero = g.reshape(zero, [])
    if g.rank(zero) == 1 and is_column:
        zero = g.reshape(zero, [*g.shape(zero), 1])
    return g.op("sub", x, zero)


def whole_product(
    g: Graph, a: Operand, b: Operand, a_zero: Operand | None, b_zero: Operand | None
) -> Operand:
    """int32, exact: the inner dimension in parts that single precision holds."""
    a, b = _shifted(g, a, a_zero, True), _shifted(g, b, b_zero, False)
    inner: Dim = g.shape(a)[-1]
    if isinstance(inner, Extent):
        return g.cast(product_of(g, g.cast(a, "f64"), g.cast(b, "f64")), "i32")
    size = inner
    total: Operand | None = None
    for start in range(0, size, EXACT):
        count = min(EXACT, size - start)
        left = g.cut(a, g.rank(a) - 1, start, count)
        right = g.cut(b, max(g.rank(b) - 2, 0), start, count)
        part = g.cast(product_of(g, left, right), "i32")
        total = part if total is None else g.op("add", total, part)
    invalid_if(total is None, "the extent that is summed over is 0")
    return total


@reads("MatMulInteger")
def matmul_integer(g: Graph, node: Node) -> Operand:
    return whole_product(g, node.x, node.operand(1), node.optional(2), node.optional(3))


def are_known(node: Node, inputs: list[int]) -> bool:
    """Such operators are read as operators on real numbers, which passes compute in whole ones."""
    given = [node.optional(i) for i in inputs]
    return all(x is None or (x.array is not None and x.dtype not in CARRIERS) for x in given)


@reads("QLinearMatMul")
def qlinear_matmul(g: Graph, node: Node) -> Operand:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (node.operand(i) for i in range(8))
    is_one = all(g.rank(x) == 0 or g.has_shape(x, [1]) for x in (a_scale, y_scale))
    if are_known(node, list(range(1, 8))) and g.rank(b) == 2 and is_one:
        a, b = dequantised(g, node, a, a_scale, a_zero, 0), dequantised(g, node, b, b_scale, b_zero, 1)
        return quantised(g, node, product_of(g, a, b), y_scale, y_zero, 0)
    total = whole_product(g, a, b, a_zero, b_zero)
    a_scale = g.reshape(a_scale, []) if g.has_shape(a_scale, [1]) else a_scale
    if g.rank(a_scale) == 1:
        a_scale = g.reshape(a_scale, [*g.shape(a_scale), 1])
    return _requantised(g, node, total, g.op("mul", a_scale, b_scale), y_scale, y_zero)


def _requantised(
    g: Graph, node: Node, total: Operand, scale: Operand, y_scale: Operand, y_zero: Operand
) -> Operand:
    """round(total * scale / y_scale) + y_zero, in the zero point's type"""
    scale = g.cast(scale, "f32")
    factor = g.op("div", scale, g.cast(y_scale, "f32"))
    values = g.op("mul", g.cast(total, "f32"), factor)
    return quantised(g, node, values, known(1.0, "f32"), y_zero, 0)


def whole_convolution(
    g: Graph, node: Node, x: Operand, w: Operand, x_zero: Operand | None, w_zero: Operand | None
) -> Operand:
    """int32, exact: the channels in parts that single precision holds."""
    x, w = _shifted(g, x, x_zero, False), _cleared_filter(g, w, w_zero)
    _, inner, *kernel = g.fixed_shape(w)
    taps = math.prod(kernel)
    invalid_if(taps < 1, f"the filter's extents are {kernel}; each must be at least 1")
    each, groups = max(EXACT // taps, 1), int(node.get("group", 1))
    refuse_if(
        taps > EXACT,
        f"the filter has {kernel} = {taps} elements for each channel; {EXACT} at most add up exactly",
    )
    if inner <= each:
        return g.cast(convolution(g, node, x, w, None), "i32")
    n, _, *sizes = g.shape(x)
    split = g.reshape(x, [n, groups, inner, *sizes])
    total: Operand | None = None
    for start in range(0, inner, each):
        count = min(each, inner - start)
        image = g.reshape(g.cut(split, 2, start, count), [n, groups * count, *sizes])
        part = g.cast(convolution(g, node, image, g.cut(w, 1, start, count), None), "i32")
        total = part if total is None else g.op("add", total, part)
    return total


def _cleared_filter(g: Graph, w: Operand, zero: Operand | None) -> Operand:
    if zero is not None and g.rank(zero) == 1 and not g.has_shape(zero, [1]):
        zero = g.reshape(zero, [*g.shape(zero), *[1] * (g.rank(w) - 1)])
    return _shifted(g, w, zero, False)


@reads("ConvInteger")
def conv_integer(g: Graph, node: Node) -> Operand:
    return whole_convolution(g, node, node.x, node.operand(1), node.optional(2), node.optional(3))


@reads("QLinearConv")
def qlinear_conv(g: Graph, node: Node) -> Operand:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (node.operand(i) for i in range(8))
    bias = node.optional(8)
    if g.rank(x) == 4 and are_known(node, list(range(1, 9))):
        image, filters = (
            dequantised(g, node, x, x_scale, x_zero, 1),
            dequantised(g, node, w, w_scale, w_zero, 0),
        )
        if bias is not None:
            unit = known(np.multiply(x_scale.array.reshape(()), w_scale.array, dtype=np.float32), "f32")
            bias = dequantised(g, node, bias, unit, None, 0)
        return quantised(g, node, convolution(g, node, image, filters, bias), y_scale, y_zero, 1)
    total = whole_convolution(g, node, x, w, x_zero, w_zero)
    column = [1] * (g.rank(x) - 2)
    if bias is not None:
        total = g.op("add", total, g.reshape(bias, [*g.shape(bias), *column]))
    if g.rank(w_scale) == 1 and not g.has_shape(w_scale, [1]):
        w_scale = g.reshape(w_scale, [*g.shape(w_scale), *column])
    else:
        w_scale = g.reshape(w_scale, [])
    return _requantised(g, node, total, g.op("mul", g.reshape(x_scale, []), w_scale), y_scale, y_zero)


@reads("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def qlinear_binary(g: Graph, node: Node) -> Operand:
    """By ratios of the scales, as ONNX Runtime has it: so halves are halves, and rounded alike."""
    a, b, dtype = node.operand(0), node.operand(3), node.x.dtype
    a_scale, b_scale, y_scale = (g.reshape(node.operand(i), []) for i in (1, 4, 6))
    zeros = [node.optional(i) or known(0, dtype) for i in (2, 5, 7)]
    if node.op == "QLinearAdd" and are_known(node, [1, 2, 4, 5, 6, 7]) and g.has_shape(b, g.shape(a)):
        left, right = (
            dequantised(g, node, a, a_scale, zeros[0], 0),
            dequantised(g, node, b, b_scale, zeros[1], 0),
        )
        return quantised(g, node, g.op("add", left, right), y_scale, zeros[2], 0)
    a_zero, b_zero, y_zero = (g.reshape(g.cast(zero, "f32"), []) for zero in zeros)
    if node.op == "QLinearAdd":
        a_ratio, b_ratio = (g.op("div", scale, y_scale) for scale in (a_scale, b_scale))
        shift = g.op("add", g.op("mul", a_ratio, a_zero), g.op("mul", b_ratio, b_zero))
        part = g.op("add", g.op("dequantize_linear", b, b_ratio), g.op("sub", y_zero, shift))
        y = g.op("add", g.op("dequantize_linear", a, a_ratio), part)
    else:
        ratio = g.op("div", g.op("mul", a_scale, b_scale), y_scale)
        parts = [
            dequantised(g, node, x, known(1, "f32"), zero, 0) for x, zero in ((a, zeros[0]), (b, zeros[1]))
        ]
        y = g.op("add", g.op("mul", g.op("mul", *parts), ratio), y_zero)
    return quantised(g, node, y, known(1, "f32"), known(0, dtype), 0)


@reads("QuantizeLinear", "DequantizeLinear", domain=MICROSOFT)
def contrib_linear(g: Graph, node: Node) -> Operand:
    function = quantize_linear if node.op == "QuantizeLinear" else dequantize_linear
    return function(g, replace(node, domain="", opset=21))
