"""Quantised models of torchao and pt2e: whole numbers, each block of them with a scale and a zero point.

A product whose constant matrix is dequantised reads ggml's blocks where those are exact: the pass
fold_dequantize_into_matmul decides it when the program is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ..translate import Translator, Unsupported, Value, arguments, dtype_name, extent, is_same, lowers

WHOLE_DTYPES = ("i4", "u4", "i8", "u8", "i16", "i32")


@dataclass
class Blocks:
    """A tensor with every dimension that holds several blocks split in two: [blocks, extent of one]."""

    split: list[Any]
    scales: list[Any]  # the shape in which scales broadcast to it
    blocks: list[Any]  # the number of blocks along each dimension of the tensor
    axes: list[int]  # of the split tensor, those within a block


def blocks_of(t: Translator, x: Value, sizes: Any) -> Blocks:
    """From a block's extents, which may be those of dynamic dimensions."""
    found = Blocks([], [], [], [])
    for dim, size in zip(t.shape(x), sizes, strict=True):
        size = extent(size.meta["val"] if isinstance(size, torch.fx.Node) else size)
        count = 1 if is_same([size], [dim]) else dim if is_same([size], [1]) else None
        if count is None:
            if not isinstance(dim, int) or not isinstance(size, int) or dim % size:
                raise Unsupported(f"blocks of {size} along the extent {dim}")
            found.split.append(dim // size)
            found.scales.append(dim // size)
        if not is_same([size], [1]):
            found.axes.append(len(found.split))
        found.split.append(size if count is None else dim)
        found.scales.append(1 if count is None else count)
        found.blocks.append(dim // size if count is None else count)
    return found


def whole_range(dtype: torch.dtype, low: Any, high: Any) -> tuple[int, int]:
    info = torch.iinfo(dtype)
    return int(info.min if low is None else low), int(info.max if high is None else high)


def dequantize(t: Translator, x: Value, scale: Value, zero_point: Value | None, shape: list[Any]) -> Value:
    """(x - zero_point) · scale, as f32; `shape` of scale and zero point says how many blocks there are."""
    if t.dtype(x) not in WHOLE_DTYPES:
        raise Unsupported(f"dequantising {t.dtype(x)}")
    scale = t.reshape(t.cast(scale, "f32"), shape)
    if zero_point is None:
        return t.op("dequantize_linear", x, scale)
    if t.dtype(zero_point) in ("f32", "f16", "bf16", "f64"):
        raise Unsupported("a zero point that is no whole number")
    zero_point = t.reshape(t.cast(zero_point, t.dtype(x)), shape)
    return t.op("dequantize_linear", x, scale, zero_point)


def quantize(
    t: Translator, x: Value, inverse: Value, zero_point: Value, limits: tuple[int, int], dtype: str
) -> Value:
    """clamp(round(x · inverse) + zero_point), where PyTorch, too, multiplies by the scale's inverse."""
    rounded = t.op("round_even", t.op("mul", t.cast(x, "f32"), inverse))
    shifted = t.op("add", rounded, t.cast(zero_point, "f32"))
    whole = t.op("clamp", shifted, min_value=limits[0], max_value=limits[1])
    return t.cast(whole, dtype)


def inverse_of(t: Translator, scale: Value) -> Value:
    one = t.scalar(1.0, t.dtype(scale))
    return t.cast(t.op("div", one, scale), "f32")


# --- torchao ------------------------------------------------------------------------------------------


@lowers("torchao.dequantize_affine.default")
def dequantize_affine(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    x = t.value(a["input"])
    shape = blocks_of(t, x, a["block_size"]).blocks
    return dequantize(t, x, t.value(a["scale"]), t.optional(a["zero_point"]), shape)


@lowers("torchao.quantize_affine.default")
def quantize_affine(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    x, dtype = t.value(a["input"]), a["output_dtype"]
    blocks = blocks_of(t, x, a["block_size"])
    inverse = inverse_of(t, t.reshape(t.cast(t.value(a["scale"]), "f32"), blocks.scales))
    zero = t.scalar(0, "i8") if a["zero_point"] is None else t.value(a["zero_point"])
    if t.rank(zero):
        zero = t.reshape(zero, blocks.scales)
    limits = whole_range(dtype, a["quant_min"], a["quant_max"])
    whole = quantize(t, t.reshape(x, blocks.split), inverse, zero, limits, dtype_name(dtype))
    return t.reshape(whole, t.shape(x))


def _extremes(t: Translator, x: Value, axes: list[int], keep: bool) -> tuple[Value, Value]:
    """The least and the largest element, or 0 where that lies beyond."""
    zero = t.scalar(0.0, t.dtype(x))
    least = t.op("reduce_min", x, axes=axes, keep_dimensions=keep) if axes else x
    most = t.op("reduce_max", x, axes=axes, keep_dimensions=keep) if axes else x
    return t.op("min", least, zero), t.op("max", most, zero)


def _asymmetric(
    t: Translator, least: Value, most: Value, limits: tuple[int, int], eps: float
) -> tuple[Value, Value]:
    """Scale and zero point, both f32, that map [least, most] to the limits."""
    low, high = limits
    span = t.op("sub", most, least)
    scale = t.op("max", t.op("div", span, t.scalar(float(high - low), "f32")), t.scalar(eps, "f32"))
    steps = t.op("round_even", t.op("div", least, scale))
    zero = t.op("sub", t.scalar(float(low), "f32"), steps)
    return scale, t.op("clamp", zero, min_value=low, max_value=high)


@lowers("torchao.choose_qparams_affine.default")
def choose_qparams_affine(t: Translator, node: torch.fx.Node) -> list[Value]:
    a = arguments(node)
    x = t.value(a["input"])
    if t.dtype(x) != "f32":
        raise Unsupported(f"choosing scales of {t.dtype(x)}")
    blocks = blocks_of(t, x, a["block_size"])
    limits = low, high = whole_range(a["target_dtype"], a["quant_min"], a["quant_max"])
    eps = torch.finfo(torch.float32).smallest_normal if a["eps"] is None else float(a["eps"])
    least, most = _extremes(t, t.reshape(x, blocks.split), blocks.axes, keep=bool(a["keepdim"]))
    if a["mapping_type"] == "ASYMMETRIC":
        scale, zero = _asymmetric(t, least, most, limits, eps)
    else:
        if a["mapping_type"] == "SYMMETRIC":
            largest = t.op("max", t.op("neg", least), most)
            scale = t.op("div", largest, t.scalar((high - low) / 2, "f32"))
        else:  # without clipping: the side that needs the larger scale decides
            below = t.op("div", least, t.scalar(float(low), "f32"))
            scale = t.op("max", below, t.op("div", most, t.scalar(float(high), "f32")))
        scale = t.op("max", scale, t.scalar(eps, "f32"))
        middle = t.scalar(float(int((high + low + 1) / 2)), "f32")
        zero = t.op("expand", middle, new_shape=t.shape(scale))
    return _as_results(t, node, scale, zero)


def _as_results(t: Translator, node: torch.fx.Node, scale: Value, zero: Value) -> list[Value]:
    vals = node.meta["val"]
    results = [t.cast(value, dtype_name(val.dtype)) for value, val in zip((scale, zero), vals, strict=True)]
    return [t.reshape(r, [extent(d) for d in val.shape]) for r, val in zip(results, vals, strict=True)]


# --- pt2e ---------------------------------------------------------------------------------------------


def _tensor_parameters(t: Translator, a: dict[str, Any]) -> tuple[Value, Value]:
    """Scale (f64) and zero point (i64) without dimensions, given as numbers or as tensors of one element."""
    scale, zero = a["scale"], a["zero_point"]
    if not isinstance(scale, torch.fx.Node):
        return t.scalar(float(scale), "f64"), t.scalar(int(zero), "i64")
    return t.reshape(t.cast(t.value(scale), "f64"), []), t.reshape(t.value(zero), [])


@lowers(
    "quantized_decomposed.quantize_per_tensor.default",
    "quantized_decomposed.quantize_per_tensor.tensor",
)
def quantize_per_tensor(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    scale, zero = _tensor_parameters(t, a)
    limits = whole_range(a["dtype"], a["quant_min"], a["quant_max"])
    return quantize(t, t.value(a["input"]), inverse_of(t, scale), zero, limits, dtype_name(a["dtype"]))


@lowers(
    "quantized_decomposed.dequantize_per_tensor.default",
    "quantized_decomposed.dequantize_per_tensor.tensor",
)
def dequantize_per_tensor(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    return dequantize(t, t.value(a["input"]), *_tensor_parameters(t, a), [])


def _channel_shape(t: Translator, x: Value, axis: int) -> list[Any]:
    axis = t.axis(x, axis)
    return [dim if i == axis else 1 for i, dim in enumerate(t.shape(x))]


@lowers("quantized_decomposed.quantize_per_channel.default")
def quantize_per_channel(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    x = t.value(a["input"])
    shape = _channel_shape(t, x, a["axis"])
    inverse = inverse_of(t, t.reshape(t.cast(t.value(a["scales"]), "f32"), shape))
    zero = t.reshape(t.value(a["zero_points"]), shape)
    limits = whole_range(a["dtype"], a["quant_min"], a["quant_max"])
    return quantize(t, x, inverse, zero, limits, dtype_name(a["dtype"]))


@lowers("quantized_decomposed.dequantize_per_channel.default")
def dequantize_per_channel(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    x = t.value(a["input"])
    shape = _channel_shape(t, x, a["axis"])
    return dequantize(t, x, t.value(a["scales"]), t.optional(a["zero_points"]), shape)


@lowers("quantized_decomposed.dequantize_per_channel_group.default")
def dequantize_per_channel_group(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    x = t.value(a["w_int8"] if "w_int8" in a else a["input"])
    rows, columns = t.shape(x)
    shape = [rows, columns // min(a["group_size"], columns)]
    return dequantize(t, x, t.value(a["scales"]), t.optional(a["zero_points"]), shape)


@lowers("quantized_decomposed.choose_qparams.tensor")
def choose_qparams(t: Translator, node: torch.fx.Node) -> list[Value]:
    a = arguments(node)
    x = t.cast(t.value(a["input"]), "f32")
    least, most = _extremes(t, x, list(range(t.rank(x))), keep=False)
    limits = whole_range(a["dtype"], a["quant_min"], a["quant_max"])
    return _as_results(t, node, *_asymmetric(t, least, most, limits, float(a["eps"])))
