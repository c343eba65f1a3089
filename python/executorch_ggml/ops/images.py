"""Convolutions, pools and resampling."""

from __future__ import annotations

from typing import Any

import torch

from ..translate import Translator, Unsupported, Value, arguments, lowers


def _spread(numbers: Any, count: int) -> list[int]:
    """One number stands for every axis."""
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    return [int(n) for n in (numbers * count if len(numbers) == 1 else numbers)]


def pair(numbers: Any) -> list[int]:
    return _spread(numbers, 2)


def _with_height(t: Translator, x: Value) -> Value:
    """[n, c, w] as [n, c, 1, w]."""
    n, c, w = t.shape(x)
    return t.reshape(x, [n, c, 1, w])


def _convolve(t: Translator, a: dict[str, Any]) -> Value:
    x, weight, bias = t.value(a["input"]), t.value(a["weight"]), t.optional(a["bias"])
    rank, is_1d = t.rank(x), t.rank(x) == 3
    if rank not in (3, 4):
        raise Unsupported(f"convolution of rank {rank}")
    names = ("stride", "padding", "dilation", "output_padding")
    per_axis = {name: _spread(a.get(name, 0), rank - 2) for name in names}
    if is_1d:
        x, weight = _with_height(t, x), _with_height(t, weight)
        for name, neutral in zip(names, (1, 0, 1, 0), strict=True):
            per_axis[name] = [neutral, *per_axis[name]]
    ph, pw = per_axis["padding"]
    options = {"strides": per_axis["stride"], "dilations": per_axis["dilation"], "groups": a["groups"]}
    options["padding"] = [ph, ph, pw, pw]
    if a.get("transposed", False):
        y = t.op("conv_transpose2d", x, weight, bias, output_padding=per_axis["output_padding"], **options)
    else:
        y = t.op("conv2d", x, weight, bias, **options)
    if not is_1d:
        return y
    n, c, _, w = t.shape(y)
    return t.reshape(y, [n, c, w])


@lowers("aten.convolution.default")
def convolution(t: Translator, node: torch.fx.Node) -> Value:
    return _convolve(t, arguments(node))


@lowers("aten.conv2d.default", "aten.conv1d.default")
def conv(t: Translator, node: torch.fx.Node) -> Value:
    return _convolve(t, arguments(node))


@lowers("aten.max_pool2d.default", "aten.avg_pool2d.default")
def pool(t: Translator, node: torch.fx.Node) -> Value:
    is_max = "max_pool2d" in str(node.target)
    x, window = t.value(node.args[0]), pair(node.args[1])
    a = arguments(node)
    stride = pair(a["stride"]) if a["stride"] else window
    ph, pw = pair(a["padding"])
    options: dict[str, Any] = {"window_dimensions": window, "strides": stride, "padding": [ph, ph, pw, pw]}
    if is_max:
        options["dilations"] = pair(a["dilation"])
    elif (ph or pw) and a["count_include_pad"]:
        raise Unsupported("a mean that counts the padding")
    elif a["divisor_override"] is not None:
        raise Unsupported("divisor_override")
    if a["ceil_mode"]:
        raise Unsupported("ceil_mode")
    return t.op("max_pool2d" if is_max else "average_pool2d", x, **options)


@lowers("aten.max_pool2d_with_indices.default")
def pool_with_indices(t: Translator, node: torch.fx.Node) -> list[Value | None]:
    return [pool(t, node), None]


@lowers("aten.adaptive_avg_pool2d.default", "aten._adaptive_avg_pool2d.default")
def adaptive_pool(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    if t.rank(x) != 4:
        raise Unsupported("an image without a batch")
    height, width = t.shape(x)[2:]
    out_h, out_w = pair(node.args[1])
    if not (isinstance(height, int) and isinstance(width, int)) or height % out_h or width % out_w:
        raise Unsupported("windows of several sizes")
    window = [height // out_h, width // out_w]
    return t.op("average_pool2d", x, window_dimensions=window, strides=window)


@lowers("aten.upsample_nearest2d.vec")
def upsample_nearest(t: Translator, node: torch.fx.Node) -> Value:
    """Whole factors only: ATen rounds positions down, and the catalog's resampling to the nearest."""
    x = t.value(node.args[0])
    in_h, in_w = t.shape(x)[2:]
    out_h, out_w = node.meta["val"].shape[2:]
    if any(not isinstance(d, int) for d in (in_h, in_w, out_h, out_w)) or out_h % in_h or out_w % in_w:
        raise Unsupported("factors that are not whole")
    return t.op("resample2d", x, mode="nearest-neighbor", sizes=[out_h, out_w], axes=[2, 3])


@lowers("aten.upsample_bilinear2d.vec")
def upsample_bilinear(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    sizes = list(node.meta["val"].shape[2:])
    if a["align_corners"] or not all(isinstance(d, int) for d in sizes):
        raise Unsupported("aligned corners or unknown extents")
    return t.op("resample2d", t.value(a["input"]), mode="linear", sizes=sizes, axes=[2, 3])


@lowers("aten.avg_pool1d.default", "aten.adaptive_avg_pool1d.default")
def pool_1d(t: Translator, node: torch.fx.Node) -> Value:
    x = t.value(node.args[0])
    if t.rank(x) != 3:
        raise Unsupported("a signal without a batch")
    n, c, width = t.shape(x)
    first = lambda v: v if isinstance(v, int) else v[0]  # noqa: E731
    if "adaptive" in str(node.target):
        out = first(node.args[1])
        if not isinstance(width, int) or width % out:
            raise Unsupported("windows of several sizes")
        window = stride = width // out
    else:
        a = arguments(node)
        window = first(a["kernel_size"])
        stride = first(a["stride"]) if a["stride"] else window
        if first(a["padding"]) or a["ceil_mode"]:
            raise Unsupported("padding or ceil_mode")
    y = t.op("average_pool2d", _with_height(t, x), window_dimensions=[1, window], strides=[1, stride])
    return t.reshape(y, [n, c, t.shape(y)[-1]])
