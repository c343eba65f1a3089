"""Fourier transforms whose lengths, axes or frames are known only at run time, by matrices of waves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..graph import Dim, Extent, Graph, Operand, known, product
from ..numbers import Numbers, around, axes_told, extents_of
from ..registry import Node

Complex = tuple[Operand, Operand | None]  # real and imaginary parts; None: zero


def waves(g: Graph, rows: Dim, columns: Dim, length: Dim, sign: int, dtype: str) -> Complex:
    """e^(sign 2 pi i r c / length) for all rows and columns."""
    turns = Numbers(g, g.positions(rows)).shaped([rows, 1]) * Numbers(g, g.positions(columns))
    angle = g.times(g.cast((turns % length).x, "f64"), sign * 2 * math.pi)
    angle = g.op("div", angle, g.at_run_time(length, "f64"))
    return g.cast(g.op("cos", angle), dtype), g.cast(g.op("sin", angle), dtype)


def transformed(g: Graph, x: Complex, bins: Dim, length: Dim, sign: int) -> Complex:
    """Along the last axis: of a signal that may be shorter than the length, then zeros follow."""
    (re, im), dtype = x, x[0].dtype
    cos, sin = waves(g, g.shape(re)[-1], bins, length, sign, dtype)
    if im is None:
        return g.op("matmul", re, cos), g.op("matmul", re, sin)
    return (
        g.op("sub", g.op("matmul", re, cos), g.op("matmul", im, sin)),
        g.op("add", g.op("matmul", re, sin), g.op("matmul", im, cos)),
    )


def real_signal(g: Graph, x: Complex, length: Dim) -> Operand:
    """Of the first half of a spectrum, whose other half has the conjugates in reverse."""
    (re, im), dtype = x, x[0].dtype
    half = g.shape(re)[-1]
    cos, sin = waves(g, half, length, length, 1, dtype)
    place = Numbers(g, g.positions(half))
    is_single = place.equals(0).either((place * 2).equals(Numbers(g, length)))
    weight = g.cast(is_single.choose(1, 2).x, dtype)
    y = g.op("matmul", g.op("mul", re, weight), cos)
    return y if im is None else g.op("sub", y, g.op("matmul", g.op("mul", im, weight), sin))


def dft_as_told(g: Graph, node: Node, parts: Complex, axis: int | Operand) -> tuple[Complex, bool]:
    """The transform of [..., signal, ...], and whether it is of real numbers."""
    inverse, onesided = bool(node.get("inverse", 0)), bool(node.get("onesided", 0))
    sizes, rank = g.shape(parts[0]), g.rank(parts[0])
    place = Numbers(g, axis if isinstance(axis, Operand) else [axis])
    if isinstance(axis, Operand):
        # Before operator set 20's rules the last dimension counts, which the parts do not have.
        place = (place < 0).choose(place + (rank + 1), place)
    before, extent, after = g.shape(around(g, parts[0], place)[0])
    lines = [
        None if v is None else g.transpose(g.reshape(v, [before, extent, after]), [0, 2, 1]) for v in parts
    ]
    length = _length(g, node, extent, onesided and inverse)
    bins = length // 2 + 1 if onesided and not inverse else length
    taken = length // 2 + 1 if onesided and inverse else length
    kept = Extent.smallest([extent, taken])
    re, im = (None if v is None else g.cut(v, 2, 0, kept) for v in lines)
    if onesided and inverse:
        y: Sequence[Operand] = [real_signal(g, (re, im), length)]
    else:
        y = transformed(g, (re, im), bins, length, 1 if inverse else -1)
    if inverse:
        y = [g.op("div", v, g.at_run_time(length, v.dtype)) for v in y]
    is_axis = axes_told(g, g.reshape(place.x, [1]), rank)
    shape = is_axis.choose(Numbers(g, bins), Numbers(g, sizes)).extents()
    results = [
        g.reshape(g.reshape(g.transpose(v, [0, 2, 1]), [product([before, bins, after])]), shape) for v in y
    ]
    return (results[0], results[1] if len(results) > 1 else None), onesided and inverse


def _length(g: Graph, node: Node, extent: Dim, is_half: bool) -> Dim:
    if node.optional(1) is not None:
        return extents_of(g, g.reshape(node.operand(1), [1]))[0]
    return Extent.largest([1, 2 * (extent - 1)]) if is_half else extent


def stft_as_told(g: Graph, node: Node, parts: Complex, length: Dim, step: Dim) -> Complex:
    """[batch, frames, bins] of [batch, signal]."""
    extent = g.shape(parts[0])[1]
    frames = (extent - length) // step + 1
    begins = (Numbers(g, g.positions(frames)) * Numbers(g, step)).shaped([frames, 1])
    places = begins + Numbers(g, g.positions(length))
    window = node.optional(2)

    def framed(x: Operand | None) -> Operand | None:
        if x is None:
            return None
        y = g.op("gather", x, places.x, axis=1)
        return y if window is None else g.op("mul", y, g.reshape(g.cast(window, x.dtype), [1, 1, length]))

    bins = length // 2 + 1 if node.get("onesided", 1) else length
    re, im = framed(parts[0]), framed(parts[1])
    return transformed(g, (re, im), bins, length, -1)


def mel_as_told(g: Graph, node: Node, dtype: str) -> Operand:
    """[bins of the spectrum, bins of the mel scale]: triangles that overlap."""
    count, length, rate = extents_of(
        g, g.concat([g.reshape(g.cast(node.operand(i), "i64"), [1]) for i in range(3)], 0)
    )
    rows = length // 2 + 1
    low, high = (_mel(g, g.reshape(g.cast(node.operand(i), "f64"), [])) for i in (3, 4))
    step = g.op("div", g.op("sub", high, low), g.at_run_time(count + 2, "f64"))
    edges = g.op("add", g.op("mul", g.cast(g.positions(count + 2), "f64"), step), low)
    hertz = g.times(g.plus(g.op("exp", g.times(edges, math.log(10) / 2595)), -1.0), 700.0)
    scaled = g.op("mul", hertz, g.at_run_time(length + 1, "f64"))
    bins = Numbers(g, g.cast(g.op("floor", g.op("div", scaled, g.at_run_time(rate, "f64"))), "i64"))
    lower, centre, higher = (Numbers(g, g.cut(bins.x, 0, i, count)) for i in range(3))
    row = Numbers(g, g.positions(rows)).shaped([rows, 1])

    def share(part: Numbers, whole: Numbers) -> Operand:
        return g.op("div", g.cast(part.x, "f64"), g.cast(whole.at_least(1).x, "f64"))

    falls = (row >= centre).both(higher > row)
    rises = (row >= lower).both(centre >= row)
    rising = g.op("where", (centre > lower).x, share(row - lower, centre - lower), known(1, "f64"))
    y = g.op(
        "where",
        falls.x,
        share(higher - row, higher - centre),
        g.op("where", rises.x, rising, known(0, "f64")),
    )
    return g.cast(y, dtype)


def _mel(g: Graph, hertz: Operand) -> Operand:
    return g.times(g.op("log", g.plus(g.times(hertz, 1 / 700), 1.0)), 2595 / math.log(10))
