"""Pools over windows of one, two and three dimensions."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from ..graph import LARGEST_EXTENT, Dim, Extent, Graph, Operand, known, product
from ..ratios import divided_up
from ..registry import Node, invalid_if, reads, refuse_if
from .convolution import Window, unpadded, window_of, with_height, without_height

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


def _count(size: Dim, before: int, after: int, reach: int, stride: int, up: bool) -> Dim:
    """How many windows; one that would start behind the image is none."""
    span = size + before + after - reach
    if not up:
        return span // stride + 1
    whole, within = divided_up(span, stride) + 1, divided_up(size + before, stride)
    return whole if reach >= stride + after else Extent.smallest([whole, within])


def _counts(g: Graph, x: Operand, window: Window, up: bool) -> list[Dim]:
    sizes = g.shape(x)[-window.dims :]
    rows = zip(sizes, window.before, window.after, window.reach, window.strides, strict=True)
    counts = [_count(*row, up) for row in rows]
    invalid_if(
        any(isinstance(count, int) and count < 1 for count in counts),
        f"the window reaches over {window.reach} elements, more than the padded image of {sizes}",
    )
    return counts


def pooled(g: Graph, op: str, x: Operand, window: Window, up: bool) -> Operand:
    is_mean = op == "average_pool2d"
    if is_mean and any(isinstance(n, Extent) for n in window.before + window.after):
        ones = g.filled(1, x.dtype, [1, 1, *g.shape(x)[2:]])  # what of a window lies inside
        return g.op("div", *(pooled(g, op, *unpadded(g, v, window), up) for v in (x, ones)))
    x, window = unpadded(g, x, window, _least(x) if op == "max_pool2d" else 0)
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
    if up:
        options |= {"output_shape_rounding": "ceil", "output_sizes": _counts(g, x, window, up)}
    return g.op(op, x, **options)


def _over_volumes(g: Graph, op: str, x: Operand, window: Window, up: bool) -> Operand:
    """First each plane, then over the planes: maxima and means of windows allow that."""
    batch, channels, depth, height, width = g.shape(x)
    flat = g.reshape(x, [batch, channels * depth, height, width])
    y = pooled(g, op, flat, window.part(slice(1, None)), up)
    size = g.shape(y)[2:]
    y = g.reshape(y, [batch, channels, depth, product(size)])
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
    batch, channels, *sizes = g.shape(x)
    if g.is_open(x):
        return _with_open_places(g, node, window, up)
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
    taken = g.op("where", known(inside, "bool"), taken, known(_least(x), x.dtype))
    largest = g.op("reduce_max", taken, axes=[3])
    tap = g.op("arg_max", taken, axis=3, keep_dimensions=True, output_data_type="dtype:i64")
    grid = g.expand(known(_stored(flat, sizes, node), "i64"), [batch, channels, *flat.shape])
    place = g.reshape(g.op("gather_elements", grid, tap, axis=3), [batch, channels, total])
    planes = g.numbered(batch * channels).reshape(batch, channels, 1) * math.prod(sizes)
    place = g.op("add", place, known(planes, "i64"))
    shape = [batch, channels, *counts]
    return [g.reshape(largest, shape), g.reshape(place, shape)]


def _least(x: Operand) -> float:
    return -math.inf if x.is_float else np.iinfo({"i8": np.int8, "u8": np.uint8}.get(x.dtype, np.int32)).min


def _with_open_places(g: Graph, node: Node, window: Window, up: bool) -> list[Operand]:
    """The same of an image whose extents a run knows: an axis after the other, the last one first.

    Of each axis the window's elements lie side by side; where the largest was is its place along that axis,
    and of the axes before it what was chosen there. Ties take the first in the row-major order, as each step
    keeps the order of the axes that are left.
    """
    x = node.x
    batch, channels, *sizes = g.shape(x)
    counts = _counts(g, x, window, up)
    places = g.expand(g.reshape(g.positions(product(sizes)), [1, 1, *sizes]), [batch, channels, *sizes])
    least = known(_least(x), x.dtype)
    for i in reversed(range(window.dims)):
        axis, taps = 2 + i, window.kernel[i]
        starts = g.plus(g.times(g.positions(counts[i]), window.strides[i]), -window.before[i])
        steps = known(np.arange(taps) * window.dilations[i], "i64")
        at = g.op("add", g.reshape(starts, [counts[i], 1]), steps)
        inside = g.op("equal", at, g.within(at, 0, sizes[i] - 1))
        at = g.reshape(g.within(at, 0, sizes[i] - 1), [counts[i] * taps])
        shape = g.shape(x)
        split = [*shape[:axis], counts[i], taps, *shape[axis + 1 :]]
        beside = [counts[i], taps, *[1] * (len(shape) - 1 - axis)]
        taken = g.reshape(g.op("gather", x, at, axis=axis), split)
        taken = g.op("where", g.reshape(inside, beside), taken, least)
        tap = g.op("arg_max", taken, axis=axis + 1, keep_dimensions=True, output_data_type="dtype:i64")
        of_places = g.reshape(g.op("gather", places, at, axis=axis), split)
        whole = [*shape[:axis], counts[i], *shape[axis + 1 :]]
        places = g.reshape(g.op("gather_elements", of_places, tap, axis=axis + 1), whole)
        x = g.op("reduce_max", taken, axes=[axis + 1])
    planes = g.times(
        g.reshape(g.positions(batch * channels), [batch, channels, *[1] * window.dims]), product(sizes)
    )
    return [x, g.op("add", places, planes)]


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
    if not up:
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
    sizes = g.shape(x)[2:]
    after = [
        Extent.largest([(n - 1) * s + r - size - b, 0])
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
    sizes = g.shape(x)[2:]
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
