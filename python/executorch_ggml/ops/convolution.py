"""Convolutions of one, two and three dimensions, all on the catalog's two-dimensional ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ..translate import Translator, Unsupported, Value, arguments, lowers
from .movement import cut


def spread(numbers: Any, count: int) -> list[int]:
    """One number stands for every axis."""
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    return [int(n) for n in (numbers * count if len(numbers) == 1 else numbers)]


@dataclass
class Window:
    """How a filter moves, a number for each axis of the image."""

    stride: list[int]
    padding: list[int]  # on both sides
    dilation: list[int]
    output_padding: list[int]
    groups: int
    transposed: bool

    def without_first(self) -> Window:
        lists = (self.stride, self.padding, self.dilation, self.output_padding)
        return Window(*(numbers[1:] for numbers in lists), groups=self.groups, transposed=self.transposed)

    def with_height(self) -> Window:
        lists = zip(
            (1, 0, 1, 0), (self.stride, self.padding, self.dilation, self.output_padding), strict=True
        )
        return Window(
            *([n, *numbers] for n, numbers in lists), groups=self.groups, transposed=self.transposed
        )


def _with_height(t: Translator, x: Value) -> Value:
    """[n, c, w] as [n, c, 1, w]."""
    n, c, w = t.shape(x)
    return t.reshape(x, [n, c, 1, w])


def _convolve_1d(t: Translator, x: Value, weight: Value, bias: Value | None, window: Window) -> Value:
    y = _convolve_2d(t, _with_height(t, x), _with_height(t, weight), bias, window.with_height())
    n, c, _, w = t.shape(y)
    return t.reshape(y, [n, c, w])


def _convolve_2d(t: Translator, x: Value, weight: Value, bias: Value | None, window: Window) -> Value:
    top, left = window.padding
    options: dict[str, Any] = {
        "strides": window.stride,
        "dilations": window.dilation,
        "groups": window.groups,
    }
    options["padding"] = [top, top, left, left]
    if not window.transposed:
        return t.op("conv2d", x, weight, bias, **options)
    return t.op("conv_transpose2d", x, weight, bias, output_padding=window.output_padding, **options)


def _convolve_3d(t: Translator, x: Value, weight: Value, bias: Value | None, window: Window) -> Value:
    """The planes under a filter become channels of one image: [n, c, d, h, w] as [n * d', c * kd, h, w]."""
    batch, channels, _, height, width = t.shape(x)
    outer, inner, depth, *kernel = t.shape(weight)
    stride, dilation = window.stride[0], window.dilation[0]
    if window.transposed:
        # along the depth: a plain convolution of planes set apart by zeros, with the filter's planes reversed
        x, weight = _planes_apart(t, x, depth, window), t.op("reverse", weight, axes=[2])
        stride = 1
    else:
        x = _padded_planes(t, x, window.padding[0], window.padding[0])
    planes = (t.shape(x)[2] - dilation * (depth - 1) - 1) // stride + 1
    taps = []
    for k in range(depth):
        tap = cut(t, x, 2, k * dilation, (planes - 1) * stride + 1, stride)
        taps.append(t.reshape(tap, [batch, channels, 1, planes, height, width]))
    stacked = t.transpose(t.ops("concat", taps, axis=2)[0], [0, 3, 1, 2, 4, 5])
    image = t.reshape(stacked, [batch * planes, channels * depth, height, width])
    if window.transposed:  # [in, out, d, h, w]: the planes belong to the input's channels
        weight = t.reshape(t.transpose(weight, [0, 2, 1, 3, 4]), [outer * depth, inner, *kernel])
    else:
        weight = t.reshape(weight, [outer, inner * depth, *kernel])
    y = _convolve_2d(t, image, weight, bias, window.without_first())
    _, outputs, *size = t.shape(y)
    return t.transpose(t.reshape(y, [batch, planes, outputs, *size]), [0, 2, 1, 3, 4])


def _padded_planes(t: Translator, x: Value, before: int, after: int) -> Value:
    """A margin of zero planes; of less than none, planes are dropped."""
    if before < 0 or after < 0:
        size = t.shape(x)[2] + min(before, 0) + min(after, 0)
        x = cut(t, x, 2, max(-before, 0), size)
    before, after = max(before, 0), max(after, 0)
    if before == after == 0:
        return x
    margins = {"beginning_padding": [0, 0, before, 0, 0], "ending_padding": [0, 0, after, 0, 0]}
    return t.op("pad", x, mode="constant", value=0, **margins)


def _planes_apart(t: Translator, x: Value, depth: int, window: Window) -> Value:
    """What a transposed convolution's filter of `depth` planes moves over with a step of 1."""
    batch, channels, planes, height, width = t.shape(x)
    stride, margin = window.stride[0], window.dilation[0] * (depth - 1) - window.padding[0]
    if stride > 1:
        x = t.reshape(x, [batch, channels, planes, 1, height * width])
        x = t.op("pad", x, beginning_padding=[0] * 5, ending_padding=[0, 0, 0, stride - 1, 0], value=0)
        x = t.reshape(x, [batch, channels, planes * stride, height, width])
    return _padded_planes(t, x, margin, margin + window.output_padding[0] - (stride - 1))


_BY_RANK = {3: _convolve_1d, 4: _convolve_2d, 5: _convolve_3d}


def _convolve(t: Translator, a: dict[str, Any]) -> Value:
    x, weight, bias = t.value(a["input"]), t.value(a["weight"]), t.optional(a["bias"])
    rank = t.rank(weight)
    if rank not in _BY_RANK:
        raise Unsupported(f"convolution of rank {rank}")
    if t.rank(x) == rank - 1:  # an image without a batch
        y = _convolve_batch(t, t.reshape(x, [1, *t.shape(x)]), weight, bias, a)
        return t.reshape(y, t.shape(y)[1:])
    return _convolve_batch(t, x, weight, bias, a)


def _convolve_batch(t: Translator, x: Value, weight: Value, bias: Value | None, a: dict[str, Any]) -> Value:
    rank = t.rank(weight)
    lists = [spread(a.get(name, 0), rank - 2) for name in ("stride", "padding", "dilation", "output_padding")]
    window = Window(*lists, groups=a["groups"], transposed=a.get("transposed", False))
    return _BY_RANK[rank](t, x, weight, bias, window)


@lowers("aten.convolution.default")
@lowers("aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default")
def convolution(t: Translator, node: torch.fx.Node) -> Value:
    return _convolve(t, arguments(node))


@lowers("aten.conv_transpose1d.default", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input")
def transposed_convolution(t: Translator, node: torch.fx.Node) -> Value:
    return _convolve(t, arguments(node) | {"transposed": True})
