"""Pools over windows of one, two and three dimensions."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from ..graph import LARGEST_EXTENT, Dim, Extent, Graph, Operand, known
from ..registry import Node, invalid_if, reads, refuse_if
from .convolution import Window, is_dynamic, unpadded, window_of, with_height, without_height

_MOST_TAPS = 2**12  # elements of a window whose places are wanted


def _pool_window(g: Graph, node: Node) -> Window:
    sizes = g.shape(node.x)[2:]
    refuse_if(
        not 1 <= len(sizes) <= 3,
        f"the pool is over {len(sizes)} dimensions of an input of {g.rank(node.x)}; 1 to 3 are read",
    )
    kernel = node.get("kernel_shape")
    invalid_if(not kernel, "kernel_shape is missing")
    return window_of(g, node, sizes, [int(n) for n in kernel])


def _rounds_up(node: Node) -> bool:
    return bool(node.get("ceil_mode", 0)) and not str(node.get("auto_pad", "")).startswith("SAME")


def _count(size: int, before: int, after: int, reach: int, stride: int, up: bool) -> int:
    """How many windows; one that would start behind the image is none."""
    span = size + before + after - reach
    count = (-(-span // stride) if up else span // stride) + 1
    if up and (count - 1) * stride >= size + before:
        count -= 1
    return count


def _counts(g: Graph, x: Operand, window: Window, up: bool) -> list[int]:
    sizes = g.fixed_shape(x, "an extent of the image")[-window.dims :]
    rows = zip(sizes, window.before, window.after, window.reach, window.strides, strict=True)
    counts = [_count(*row, up) for row in rows]
    invalid_if(
        min(counts) < 1,
        f"the window reaches over {window.reach} elements, more than the padded image of {sizes}",
    )
    return counts


def _check_open(g: Graph, x: Operand, window: Window) -> None:
    """Rounding up, a last window may start behind the image; where that can be, its extent must be known."""
    rows = zip(window.strides, window.after, window.reach, strict=True)
    if any(reach < stride + after for stride, after, reach in rows):
        _counts(g, x, window, True)


def pooled(g: Graph, op: str, x: Operand, window: Window, up: bool) -> Operand:
    x, window = unpadded(g, x, window)
    if window.dims == 1:
        return without_height(g, pooled(g, op, with_height(g, x), window.with_height(), up))
    if window.dims == 3:
        return _over_volumes(g, op, x, window, up)
    options = {
        "window_dimensions": window.kernel,
        "strides": window.strides,
        "dilations": window.dilations,
        "padding": window.padding,
    }
    if up and is_dynamic(g.shape(x)[2:]):
        _check_open(g, x, window)
        options["output_shape_rounding"] = "ceil"
    elif up:
        options |= {"output_shape_rounding": "ceil", "output_sizes": _counts(g, x, window, up)}
    return g.op(op, x, **options)


def _over_volumes(g: Graph, op: str, x: Operand, window: Window, up: bool) -> Operand:
    """First each plane, then over the planes: maxima and means of windows allow that."""
    batch, channels, depth, height, width = g.fixed_shape(x)
    flat = g.reshape(x, [batch, channels * depth, height, width])
    y = pooled(g, op, flat, window.part(slice(1, None)), up)
    size = g.shape(y)[2:]
    y = g.reshape(y, [batch, channels, depth, math.prod(size)])
    over = window.part(slice(0, 1))
    across = Window(
        [*over.kernel, 1], [*over.strides, 1], [*over.dilations, 1], [*over.before, 0], [*over.after, 0]
    )
    y = pooled(g, op, y, across, up)
    return g.reshape(y, [batch, channels, g.shape(y)[2], *size])


@reads("MaxPool")
def max_pool(g: Graph, node: Node) -> list[Operand]:
    window, up = _pool_window(g, node), _rounds_up(node)
    if not node.wants(1):
        return [pooled(g, "max_pool2d", node.x, window, up)]
    return _with_places(g, node, window, up)


def _with_places(g: Graph, node: Node, window: Window, up: bool) -> list[Operand]:
    """Every window's elements side by side: the largest, and where it was in the whole input."""
    x = node.x
    batch, channels, *sizes = g.fixed_shape(x)
    counts = _counts(g, x, window, up)
    taps = math.prod(counts) * math.prod(window.kernel)
    refuse_if(
        taps > LARGEST_EXTENT or math.prod(window.kernel) > _MOST_TAPS,
        f"output 1 is wanted, the places of the maxima: {taps} of windows {window.kernel} would be laid "
        f"out; {LARGEST_EXTENT}, and {_MOST_TAPS} of a window, are the most",
        "Export the model without this output, or with a smaller image",
    )
    places = []
    for i in range(window.dims):
        starts = np.arange(counts[i]) * window.strides[i] - window.before[i]
        places.append(starts[:, None] + np.arange(window.kernel[i]) * window.dilations[i])
    flat = np.zeros([*counts, math.prod(window.kernel)], np.int64)
    inside = np.ones(flat.shape, bool)
    for tap, at in enumerate(itertools.product(*(range(k) for k in window.kernel))):
        axes = [places[i][:, at[i]] for i in range(window.dims)]
        grid = np.meshgrid(*axes, indexing="ij")
        valid = np.all([(p >= 0) & (p < s) for p, s in zip(grid, sizes, strict=True)], axis=0)
        where = np.ravel_multi_index([np.clip(p, 0, s - 1) for p, s in zip(grid, sizes, strict=True)], sizes)
        flat[..., tap], inside[..., tap] = where, valid
    total = math.prod(counts)
    flat, inside = flat.reshape(total, -1), inside.reshape(total, -1)
    taken = g.op("gather", g.reshape(x, [batch, channels, math.prod(sizes)]), known(flat, "i64"), axis=2)
    least = -math.inf if x.is_float else np.iinfo({"i8": np.int8, "u8": np.uint8}.get(x.dtype, np.int32)).min
    taken = g.op("where", known(inside, "bool"), taken, known(least, x.dtype))
    largest = g.op("reduce_max", taken, axes=[3])
    tap = g.op("arg_max", taken, axis=3, keep_dimensions=True, output_data_type="dtype:i64")
    grid = g.expand(known(_stored(flat, sizes, node), "i64"), [batch, channels, *flat.shape])
    place = g.reshape(g.op("gather_elements", grid, tap, axis=3), [batch, channels, total])
    planes = g.numbered(batch * channels).reshape(batch, channels, 1) * math.prod(sizes)
    place = g.op("add", place, known(planes, "i64"))
    shape = [batch, channels, *counts]
    return [g.reshape(largest, shape), g.reshape(place, shape)]


def _stored(flat: np.ndarray, sizes: list[int], node: Node) -> np.ndarray:
    if not node.get("storage_order", 0):
        return flat
    return np.ravel_multi_index(np.unravel_index(flat, sizes), sizes, order="F")


def _with_margin(g: Graph, x: Operand, window: Window) -> tuple[Operand, Window]:
    """The image with its padding as zeros that count."""
    begin, end = [0, 0, *window.before], [0, 0, *window.after]
    x = g.op("pad", x, beginning_padding=begin, ending_padding=end, mode="constant", value=0)
    return x, replace(window, before=[0] * window.dims, after=[0] * window.dims)


@reads("AveragePool")
def average_pool(g: Graph, node: Node) -> Operand:
    return _averages(g, node, node.x)


def _averages(g: Graph, node: Node, x: Operand) -> Operand:
    window, up = _pool_window(g, node), _rounds_up(node)
    if not node.get("count_include_pad", 0) or not any(window.before + window.after):
        return pooled(g, "average_pool2d", x, window, up)
    if not up or is_dynamic(g.shape(x)[2:]):
        if up:
            _check_open(g, x, window)
        x, window = _with_margin(g, x, window)
        return pooled(g, "average_pool2d", x, window, up)
    counts = _counts(g, x, window, up)  # before the margin hides which windows start behind the image
    padded, inner = _with_margin(g, x, window)
    y = pooled(g, "average_pool2d", padded, inner, up)
    for i, count in enumerate(counts):
        y = g.cut(y, 2 + i, 0, count)
    return y


def _power(node: Node) -> int:
    p = node.get("p", 2)
    invalid_if(p < 1, f"p is {p}; at least 1")
    return p


@reads("LpPool")
def lp_pool(g: Graph, node: Node) -> Operand:
    """The p-th root of the sum of |x|^p in each window."""
    p, window, up = _power(node), _pool_window(g, node), _rounds_up(node)
    if p == 2 and window.dims != 3:
        return pooled(g, "l2_pool2d", node.x, window, up)
    x = g.op("abs", node.x)
    powers = x if p == 1 else g.op("pow", x, known(p, x.dtype))
    total = _sums(g, powers, window, up)
    return total if p == 1 else g.op("pow", total, known(1 / p, x.dtype))


def means_with_margin(g: Graph, node: Node, x: Operand) -> Operand:
    """All of a window counts, also what lies outside the padded image."""
    window, up = _pool_window(g, replace(node, inputs=[x])), _rounds_up(node)
    return g.times(_sums(g, x, window, up), 1 / math.prod(window.kernel))


def _sums(g: Graph, x: Operand, window: Window, up: bool) -> Operand:
    """Means of windows that are all whole, times their size."""
    counts = _counts(g, x, window, up)
    sizes = g.fixed_shape(x)[2:]
    after = [
        max((n - 1) * s + r - size - b, 0)
        for n, s, r, size, b in zip(counts, window.strides, window.reach, sizes, window.before, strict=True)
    ]
    x, whole = _with_margin(g, x, replace(window, after=after))
    return g.times(pooled(g, "average_pool2d", x, whole, False), math.prod(window.kernel))


def _spatial_axes(g: Graph, x: Operand) -> list[int]:
    invalid_if(g.rank(x) < 3, f"the input has {g.rank(x)} dimensions; 3 are the least")
    return list(range(2, g.rank(x)))


@reads("GlobalAveragePool", "GlobalMaxPool")
def global_pool(g: Graph, node: Node) -> Operand:
    x, mean = node.x, node.op == "GlobalAveragePool"
    axes = _spatial_axes(g, x)
    sizes: list[Dim] = g.shape(x)[2:]
    if len(axes) == 2 and not any(isinstance(d, Extent) for d in sizes):
        return g.op("average_pool2d" if mean else "max_pool2d", x)
    return g.op("reduce_mean" if mean else "reduce_max", x, axes=axes, keep_dimensions=True)


@reads("GlobalLpPool")
def global_lp_pool(g: Graph, node: Node) -> Operand:
    x, p = node.x, _power(node)
    options = {"axes": _spatial_axes(g, x), "keep_dimensions": True}
    if p in (1, 2):
        return g.op(f"reduce_l{p}", x, **options)
    total = g.op("reduce_sum", g.op("pow", g.op("abs", x), known(p, x.dtype)), **options)
    return g.op("pow", total, known(1 / p, x.dtype))
