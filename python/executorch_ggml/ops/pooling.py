"""Pools over windows of one, two and three dimensions."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from headrace._core import Extent

from ..translate import LOWERINGS, Dim, Translator, Unsupported, Value, arguments, extent, merged
from .convolution import spread


@dataclass
class _Axis:
    """The windows along one axis of an image."""

    size: Any  # of the image
    window: int = 1
    stride: int = 1
    padding: int = 0  # on both sides
    dilation: int = 1
    outputs: Dim | None = None  # where it is not what rounding down gives

    def places(self) -> list[list[int]]:
        """The image's positions in each window."""
        starts = [i * self.stride - self.padding for i in range(self.outputs)]
        _known(self.size)
        windows = [range(s, s + self.window * self.dilation, self.dilation) for s in starts]
        return [[p for p in window if 0 <= p < self.size] for window in windows]


def _tensor_of(node: torch.fx.Node) -> torch.Tensor:
    val = node.meta["val"]
    return val[0] if isinstance(val, (tuple, list)) else val


def _axes(t: Translator, node: torch.fx.Node, dims: int) -> list[_Axis]:
    a = arguments(node)
    window = spread(a["kernel_size"], dims)
    stride = spread(a["stride"], dims) if a["stride"] else window
    padding, dilation = spread(a["padding"], dims), spread(a.get("dilation", 1), dims)
    sizes = t.shape(t.value(node.args[0]))[-dims:]
    axes = [_Axis(*row) for row in zip(sizes, window, stride, padding, dilation, strict=True)]
    if a["ceil_mode"]:  # PyTorch's own rule says whether a window that sticks out is kept
        for axis, outputs in zip(axes, _tensor_of(node).shape[-dims:], strict=True):
            axis.outputs = extent(outputs)
    return axes


def _known(extent: Any) -> int:
    if not isinstance(extent, int):
        raise Unsupported("windows over an unknown extent")
    return extent


def _pool_2d(t: Translator, op: str, x: Value, rows: _Axis, columns: _Axis) -> Value:
    options: dict[str, Any] = {}
    if op == "max_pool2d":
        options["dilations"] = [rows.dilation, columns.dilation]
    if rows.outputs is not None:
        options["output_sizes"] = [rows.outputs, columns.outputs]
    return t.op(
        op,
        x,
        window_dimensions=[rows.window, columns.window],
        strides=[rows.stride, columns.stride],
        padding=[rows.padding, rows.padding, columns.padding, columns.padding],
        **options,
    )


def _pool(t: Translator, op: str, x: Value, axes: list[_Axis]) -> Value:
    """Over the last axes. Windows are boxes: of three axes the first is pooled alone."""
    dims = len(axes)
    leading = t.shape(x)[:-dims]
    batch, channels = (leading[0], merged(leading[1:])) if len(leading) > 1 else (1, merged(leading))
    if dims == 3:
        depth, plane = axes[0], merged([axes[1].size, axes[2].size])
        across = _Axis(plane, outputs=None if depth.outputs is None else plane)
        flat = t.reshape(x, [batch, channels, depth.size, plane])
        x = _pool_2d(t, op, flat, depth, across)
        depth_out = t.shape(x)[2]
        x = t.reshape(x, [batch, merged([channels, depth_out]), axes[1].size, axes[2].size])
        y = _pool_2d(t, op, x, axes[1], axes[2])
        return t.reshape(y, [*leading, depth_out, *t.shape(y)[2:]])
    if dims == 1:
        axes = [_Axis(1, outputs=None if axes[0].outputs is None else 1), *axes]
    image = t.reshape(x, [batch, channels, *(axis.size for axis in axes)])
    y = _pool_2d(t, op, image, *axes)
    return t.reshape(y, [*leading, *t.shape(y)[-dims:]])


# --- maxima -------------------------------------------------------------------------------------------


def _wants_positions(node: torch.fx.Node) -> bool:
    return any(user.args[1] == 1 for user in node.users)


def _maxima(t: Translator, x: Value, windows: list[list[list[int]]], sizes: list[int]) -> list[Value]:
    """The largest element of each window and its place in the image; windows by their places on each axis."""
    strides = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    table = []
    for window in itertools.product(*windows):
        offsets = [[p * stride for p in places] for places, stride in zip(window, strides, strict=True)]
        table.append([sum(place) for place in itertools.product(*offsets)])
    longest = max(len(row) for row in table)
    places = torch.tensor(
        [row + row[:1] * (longest - len(row)) for row in table]
    )  # repeating changes nothing
    leading = t.shape(x)[: -len(sizes)]
    flat = t.reshape(x, [*leading, math.prod(sizes)])
    taken = t.op("gather", flat, t.constant(places), axis=len(leading))
    last = len(leading) + 1
    largest = t.op("reduce_max", taken, axes=[last])
    which = t.op("arg_max", taken, axis=last, output_data_type="dtype:i64")
    rows = t.constant(torch.arange(len(table)) * longest)
    positions = t.op("gather", t.constant(places.reshape(-1)), t.op("add", which, rows), axis=0)
    shape = [*leading, *(len(axis) for axis in windows)]
    return [t.reshape(largest, shape), t.reshape(positions, shape)]


def _max_pool(dims: int) -> Any:
    def lower(t: Translator, node: torch.fx.Node) -> Value:
        return _pool(t, "max_pool2d", t.value(node.args[0]), _axes(t, node, dims))

    return lower


def _max_pool_with_indices(dims: int) -> Any:
    def lower(t: Translator, node: torch.fx.Node) -> list[Value | None]:
        x, axes = t.value(node.args[0]), _axes(t, node, dims)
        if not _wants_positions(node):
            return [_pool(t, "max_pool2d", x, axes), None]
        outputs = [_known(n) for n in _tensor_of(node).shape[-dims:]]
        axes = [replace(axis, outputs=n) for axis, n in zip(axes, outputs, strict=True)]
        return _maxima(t, x, [axis.places() for axis in axes], [_known(axis.size) for axis in axes])

    return lower


def _adaptive_windows(size: int, outputs: int) -> list[list[int]]:
    return [list(range(i * size // outputs, -(-(i + 1) * size // outputs))) for i in range(outputs)]


def _adaptive_sizes(t: Translator, node: torch.fx.Node, dims: int) -> tuple[list[Dim], list[int]]:
    sizes, outputs = t.shape(t.value(node.args[0]))[-dims:], _tensor_of(node).shape[-dims:]
    return sizes, [_known(n) for n in outputs]


def _even(sizes: list[Dim], outputs: list[int]) -> list[_Axis] | None:
    """The axes of windows that are all equal."""
    if any(isinstance(size, Extent) for size in sizes):
        return None
    if any(out == 0 or size % out for size, out in zip(sizes, outputs, strict=True)):
        return None
    return [_Axis(size, size // out, size // out) for size, out in zip(sizes, outputs, strict=True)]


def _adaptive_max(dims: int) -> Any:
    def lower(t: Translator, node: torch.fx.Node) -> list[Value | None]:
        x, (sizes, outputs) = t.value(node.args[0]), _adaptive_sizes(t, node, dims)
        even = _even(sizes, outputs)
        if even and not _wants_positions(node):
            return [_pool(t, "max_pool2d", x, even), None]
        windows = [_adaptive_windows(_known(size), n) for size, n in zip(sizes, outputs, strict=True)]
        return _maxima(t, x, windows, sizes)

    return lower


# --- means --------------------------------------------------------------------------------------------


def _with_margin(t: Translator, x: Value, axes: list[_Axis], ends: list[int]) -> tuple[Value, list[_Axis]]:
    """The image with its padding as zeros that count."""
    unpadded = [0] * (t.rank(x) - len(axes))
    starts = [axis.padding for axis in axes]
    x = t.op("pad", x, beginning_padding=[*unpadded, *starts], ending_padding=[*unpadded, *ends], value=0)
    sizes = t.shape(x)[-len(axes) :]
    return x, [replace(axis, size=size, padding=0) for axis, size in zip(axes, sizes, strict=True)]


def _average_pool(dims: int) -> Any:
    def lower(t: Translator, node: torch.fx.Node) -> Value:
        x, axes, a = t.value(node.args[0]), _axes(t, node, dims), arguments(node)
        divisor = a.get("divisor_override")
        if divisor is not None:  # every window must be whole
            outputs = [_known(n) for n in _tensor_of(node).shape[-dims:]]
            reach = [(n - 1) * axis.stride + axis.window for n, axis in zip(outputs, axes, strict=True)]
            ends = [max(r - _known(axis.size) - axis.padding, 0) for r, axis in zip(reach, axes, strict=True)]
            x, axes = _with_margin(t, x, axes, ends)
        elif a["count_include_pad"] and any(axis.padding for axis in axes):
            x, axes = _with_margin(t, x, axes, [axis.padding for axis in axes])
        y = _pool(t, "average_pool2d", x, axes)
        if divisor is None:
            return y
        factor = math.prod(axis.window for axis in axes) / t.number(divisor)
        return t.op("mul", y, t.scalar(factor, t.dtype(y)))

    return lower


def _averaged(t: Translator, x: Value, axis: int, windows: list[list[int]], size: int) -> Value:
    """The mean of each window along an axis, as a product with a matrix."""
    weights = torch.zeros(size, len(windows))
    for i, window in enumerate(windows):
        weights[window, i] = 1 / len(window)
    swapped = list(range(t.rank(x)))
    swapped[axis], swapped[-1] = swapped[-1], swapped[axis]
    y = t.op("matmul", t.transpose(x, swapped), t.cast(t.constant(weights), t.dtype(x)))
    return t.transpose(y, swapped)


def _adaptive_average(dims: int) -> Any:
    def lower(t: Translator, node: torch.fx.Node) -> Value:
        x, (sizes, outputs) = t.value(node.args[0]), _adaptive_sizes(t, node, dims)
        if even := _even(sizes, outputs):
            return _pool(t, "average_pool2d", x, even)
        for i, (size, out) in enumerate(zip(sizes, outputs, strict=True)):
            axis = t.rank(x) - dims + i
            if out == 1:  # of whatever extent
                x = t.op("reduce_mean", x, axes=[axis], keep_dimensions=True)
            elif _known(size) != out:
                x = _averaged(t, x, axis, _adaptive_windows(size, out), size)
        return x

    return lower


for _dims in (1, 2, 3):
    LOWERINGS[f"aten.max_pool{_dims}d.default"] = _max_pool(_dims)
    LOWERINGS[f"aten.max_pool{_dims}d_with_indices.default"] = _max_pool_with_indices(_dims)
    LOWERINGS[f"aten.adaptive_max_pool{_dims}d.default"] = _adaptive_max(_dims)
    LOWERINGS[f"aten.avg_pool{_dims}d.default"] = _average_pool(_dims)
    LOWERINGS[f"aten.adaptive_avg_pool{_dims}d.default"] = _adaptive_average(_dims)
    if _dims > 1:
        LOWERINGS[f"aten._adaptive_avg_pool{_dims}d.default"] = _adaptive_average(_dims)
