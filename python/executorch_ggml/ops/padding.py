"""Margins, and windows of an image as columns."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch

from ..translate import LOWERINGS, Dim, Translator, Unsupported, Value, arguments, is_same, lowers
from .movement import cut, is_negative


def _pad(t: Translator, node: torch.fx.Node, mode: str, **options: Any) -> Value:
    x, amounts = t.value(node.args[0]), [t.extent(n) for n in node.args[1]]
    rank = t.rank(x)
    begin: list[Dim] = [0] * rank
    end: list[Dim] = [0] * rank
    for i in range(len(amounts) // 2):  # from the last dimension on
        begin[-1 - i], end[-1 - i] = amounts[2 * i], amounts[2 * i + 1]
    for axis in range(rank):  # a margin of less than nothing takes elements away
        if is_negative(begin[axis]) or is_negative(end[axis]):
            size = t.shape(x)[axis]
            first, last = (-n if is_negative(n) else 0 for n in (begin[axis], end[axis]))
            x = cut(t, x, axis, first, size - first - last)
            begin[axis], end[axis] = (0 if is_negative(n) else n for n in (begin[axis], end[axis]))
    if is_same([*begin, *end], [0] * (2 * rank)):
        return x
    return t.op("pad", x, beginning_padding=begin, ending_padding=end, mode=mode, **options)


@lowers("aten.constant_pad_nd.default")
def pad(t: Translator, node: torch.fx.Node) -> Value:
    return _pad(t, node, "constant", value=t.number(arguments(node)["value"]))


for _dims in (1, 2, 3):
    LOWERINGS[f"aten.reflection_pad{_dims}d.default"] = lambda t, node: _pad(t, node, "reflection")
    LOWERINGS[f"aten.replication_pad{_dims}d.default"] = lambda t, node: _pad(t, node, "edge")


def _window_places(a: dict[str, Any], size: list[int]) -> torch.Tensor:
    """For [kh kw, windows]: the flat place in the image with its padding."""
    kernel, dilation, padding, stride = (a[k] for k in ("kernel_size", "dilation", "padding", "stride"))
    whole = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    counts = [
        (n - d * (k - 1) - 1) // s + 1 for n, k, d, s in zip(whole, kernel, dilation, stride, strict=True)
    ]
    rows = []
    for inner in itertools.product(*(range(k) for k in kernel)):
        y, x = (
            torch.arange(n) * s + i * d for n, s, i, d in zip(counts, stride, inner, dilation, strict=True)
        )
        rows.append((y[:, None] * whole[1] + x[None, :]).reshape(-1))
    return torch.stack(rows)


def _image(t: Translator, x: Value, rank: int) -> tuple[Value, list[int]]:
    """With a batch, and its shape; ATen also takes images without one."""
    shape = t.shape(x)
    if not all(isinstance(extent, int) for extent in shape):
        raise Unsupported("windows of unknown extents")
    shape = shape if len(shape) == rank else [1, *shape]
    return t.reshape(x, shape), shape


@lowers("aten.im2col.default")
def im2col(t: Translator, node: torch.fx.Node) -> Value:
    """[n, c, h, w] as [n, c kh kw, windows]"""
    a = arguments(node)
    x, (batch, channels, *size) = _image(t, t.value(node.args[0]), 4)
    top, left = a["padding"]
    if top or left:
        x = t.op("pad", x, beginning_padding=[0, 0, top, left], ending_padding=[0, 0, top, left], value=0)
    places = _window_places(a, size)
    flat = t.reshape(x, [batch, channels, math.prod(t.shape(x)[2:])])
    y = t.op("gather", flat, t.constant(places), axis=2)
    return t.reshape(y, list(node.meta["val"].shape))


@lowers("aten.col2im.default")
def col2im(t: Translator, node: torch.fx.Node) -> Value:
    """[n, c kh kw, windows] summed up where windows overlap."""
    a = arguments(node)
    x, (batch, rows, windows) = _image(t, t.value(node.args[0]), 3)
    size, padding = list(a["output_size"]), list(a["padding"])
    places = _window_places(a, size).reshape(-1)
    channels = rows * windows // places.numel()
    whole = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    lines = batch * channels
    zeros = t.op("expand", t.scalar(0, t.dtype(x)), new_shape=[lines, math.prod(whole)])
    indices = t.op("expand", t.constant(places.reshape(1, -1)), new_shape=[lines, places.numel()])
    updates = t.reshape(x, [lines, places.numel()])
    y = t.op("scatter_reduce", zeros, indices, updates, axis=1, reduction="sum")
    y = t.reshape(y, [batch, channels, *whole])
    starts = [0, 0, *padding]
    y = t.op("slice", y, starts=starts, sizes=[batch, channels, *size])
    return t.reshape(y, list(node.meta["val"].shape))
