"""Convolutions, pools and resampling."""

from __future__ import annotations

from typing import Any

import torch

from ..translate import Translator, Unsupported, Value, lowers


def pair(numbers: Any) -> list[int]:
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    return [int(n) for n in (numbers * 2 if len(numbers) == 1 else numbers)]


def _with_height(t: Translator, x: Value) -> Value:
    """[n, c, w] as [n, c, 1, w]."""
    n, c, w = t.shape(x)
    return t.reshape(x, [n, c, 1, w])


def _convolve(
    t: Translator,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Value:
    is_1d = t.rank(x) == 3
    if t.rank(x) not in (3, 4):
        raise Unsupported(f"convolution of rank {t.rank(x)}")
    if is_1d:
        x, weight = _with_height(t, x), _with_height(t, weight)
        stride, padding, dilation = [1, *stride], [0, *padding], [1, *dilation]
        output_padding = [0, *output_padding]
    (sh, sw), (ph, pw), (dh, dw) = pair(stride), pair(padding), pair(dilation)
    options = {"strides": [sh, sw], "padding": [ph, ph, pw, pw], "dilations": [dh, dw], "groups": groups}
    if transposed:
        y = t.op("conv_transpose2d", x, weight, bias, output_padding=pair(output_padding), **options)
    else:
        y = t.op("conv2d", x, weight, bias, **options)
    if is_1d:
        n, c, _, w = t.shape(y)
        y = t.reshape(y, [n, c, w])
    return y


@lowers("aten.convolution.default")
def convolution(t: Translator, node: torch.fx.Node) -> Value:
    x, weight, bias, stride, padding, dilation, transposed, output_padding, groups = node.args
    return _convolve(
        t,
        t.value(x),
        t.value(weight),
        t.optional(bias),
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
    )


@lowers("aten.conv2d.default", "aten.conv1d.default")
def conv(t: Translator, node: torch.fx.Node) -> Value:
    spatial = 1 if "conv1d" in str(node.target) else 2
    defaults = (None, [1] * spatial, [0] * spatial, [1] * spatial, 1)
    x, weight, bias, stride, padding, dilation, groups = [*node.args, *defaults[len(node.args) - 2 :]]
    many = lambda v: [v] * spatial if isinstance(v, int) else list(v)  # noqa: E731
    return _convolve(
        t,
        t.value(x),
        t.value(weight),
        t.optional(bias),
        many(stride),
        many(padding),
        many(dilation),
        False,
        [0] * spatial,
        groups,
    )


@lowers("aten.max_pool2d.default", "aten.avg_pool2d.default")
def pool(t: Translator, node: torch.fx.Node) -> Value:
    is_max = "max_pool2d" in str(node.target)
    x, window = t.value(node.args[0]), pair(node.args[1])
    stride = pair(node.args[2]) if len(node.args) > 2 and node.args[2] else window
    (ph, pw) = pair(node.args[3]) if len(node.args) > 3 else (0, 0)
    options: dict[str, Any] = {"window_dimensions": window, "strides": stride, "padding": [ph, ph, pw, pw]}
    rest = node.args[4:]
    if is_max:
        options["dilations"] = pair(rest[0]) if rest else [1, 1]
        ceil = rest[1] if len(rest) > 1 else False
    else:
        ceil = rest[0] if rest else False
        counts_padding = rest[1] if len(rest) > 1 else True
        if (ph or pw) and counts_padding:
            raise Unsupported("a mean that counts the padding")
        if len(rest) > 2 and rest[2] is not None:
            raise Unsupported("divisor_override")
    if ceil:
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
    x, _, align_corners, _ = [*node.args, None][:4]
    sizes = list(node.meta["val"].shape[2:])
    if align_corners or not all(isinstance(d, int) for d in sizes):
        raise Unsupported("aligned corners or unknown extents")
    return t.op("resample2d", t.value(x), mode="linear", sizes=sizes, axes=[2, 3])


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
        window = first(node.args[1])
        stride = first(node.args[2]) if len(node.args) > 2 and node.args[2] else window
        if any(node.args[3:5]) and (first(node.args[3]) or node.args[4]):
            raise Unsupported("padding or ceil_mode")
    y = t.op("average_pool2d", _with_height(t, x), window_dimensions=[1, window], strides=[1, stride])
    return t.reshape(y, [n, c, t.shape(y)[-1]])
