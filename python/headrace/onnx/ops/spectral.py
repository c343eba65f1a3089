"""Discrete Fourier transforms, of whole signals and of windows that move over them."""

from __future__ import annotations

import math

import numpy as np

from ..graph import Dim, Extent, Graph, Operand, known
from ..numbers import dims, is_known
from ..registry import Node, invalid_if, reads, refuse_if
from ..source import dtype_named
from .open_spectral import dft_as_told, mel_as_told, stft_as_told

_DIRECT = 256  # longer transforms are composed of shorter ones where their length divides
_LONGEST = 2**12  # of a transform by one matrix

Complex = tuple[Operand, Operand | None]  # real and imaginary parts; None: zero


def _angles(rows: int, columns: int, length: int, sign: int) -> np.ndarray:
    """e^(sign 2 pi i r c / length) for all rows and columns."""
    return np.exp(sign * 2j * np.pi * (np.outer(np.arange(rows), np.arange(columns)) % length) / length)


def transformed(g: Graph, x: Complex, length: int, sign: int) -> Complex:
    """Along the last axis, whose extent is `length`."""
    factor = next((n for n in range(math.isqrt(length), 1, -1) if length % n == 0), 1)
    if length <= _DIRECT or factor == 1:
        refuse_if(
            length > _LONGEST,
            f"the transform has the length {length}, which does not divide; {_LONGEST} is the longest such",
            "Pad the signal to a power of two",
        )
        return _times_matrix(g, x, _angles(length, length, length, sign))
    return _composed(g, x, factor, length // factor, sign)


def _times_matrix(g: Graph, x: Complex, matrix: np.ndarray) -> Complex:
    re, im = x
    cos, sin = known(matrix.real, re.dtype), known(matrix.imag, re.dtype)
    if im is None:
        return g.op("matmul", re, cos), g.op("matmul", re, sin)
    return (
        g.op("sub", g.op("matmul", re, cos), g.op("matmul", im, sin)),
        g.op("add", g.op("matmul", re, sin), g.op("matmul", im, cos)),
    )


def _composed(g: Graph, x: Complex, a: int, b: int, sign: int) -> Complex:
    """By Cooley and Tukey: `b` transforms of length a, factors, and `a` transforms of length b."""
    lead = g.shape(x[0])[:-1]
    rank = len(lead)
    turn = [*range(rank), rank + 1, rank]

    def turned(v: Operand | None, shape: list[Dim]) -> Operand | None:
        return None if v is None else g.transpose(g.reshape(v, shape), turn)

    inner = transformed(g, tuple(turned(v, [*lead, a, b]) for v in x), a, sign)  # [..., b, a]
    re, im = inner
    factors = _angles(b, a, a * b, sign)
    cos, sin = known(factors.real, re.dtype), known(factors.imag, re.dtype)
    product = (
        g.op("sub", g.op("mul", re, cos), g.op("mul", im, sin)),
        g.op("add", g.op("mul", re, sin), g.op("mul", im, cos)),
    )
    outer = transformed(g, tuple(g.transpose(v, turn) for v in product), b, sign)  # [..., a, b]
    return tuple(g.reshape(g.transpose(v, turn), [*lead, a * b]) for v in outer)


def _parts(g: Graph, x: Operand) -> Complex:
    """Of [..., 1] or [..., 2]."""
    *sizes, last = g.shape(x)
    invalid_if(last not in (1, 2), f"the last extent is {last}; 1 is for real numbers and 2 for complex ones")
    re, im = (g.reshape(g.cut(x, len(sizes), i, 1), sizes) if i < last else None for i in (0, 1))
    return re, im


def _joined(g: Graph, parts: Complex) -> Operand:
    return g.concat([g.add_axes(v, 1) for v in parts], g.rank(parts[0]))


def _to_length(g: Graph, x: Operand | None, length: int) -> Operand | None:
    """Cut, or with zeros behind, along the last axis."""
    if x is None:
        return None
    last, extent = g.rank(x) - 1, g.shape(x)[-1]
    own = g.fixed(extent, "the length of the signal")
    if own >= length:
        return g.cut(x, last, 0, length)
    end = [0] * last + [length - own]
    return g.op("pad", x, beginning_padding=[0] * (last + 1), ending_padding=end, mode="constant", value=0)


@reads("DFT")
def dft(g: Graph, node: Node) -> Operand:
    """Along an axis, which is an attribute before operator set 20."""
    x, inverse, onesided = node.x, bool(node.get("inverse", 0)), bool(node.get("onesided", 0))
    axis = node.get("axis", 1) if node.opset < 20 else -2
    through = x.dtype if x.dtype in ("f32", "f64") else "f32"
    last = g.rank(x) - 1
    if node.opset >= 20 and node.optional(2) is not None:
        if not is_known(node.operand(2)):
            return _dft_as_told(g, node, _parts(g, g.cast(x, through)), node.operand(2))
        axis = int(node.number(2, "the axis"))
    axis = g.axis(x, int(axis))
    invalid_if(axis == last, "the axis is the last one, which has the real and imaginary parts")
    re, im = _parts(g, g.cast(x, through))
    if not is_known(node.optional(1)) or isinstance(g.shape(re)[axis], Extent):
        return _dft_as_told(g, node, (re, im), axis)
    order = list(range(last))
    order[axis], order[-1] = order[-1], order[axis]
    re, im = (None if v is None else g.transpose(v, order) for v in (re, im))
    extent = g.fixed(g.shape(re)[-1], "the length of the signal")
    back = onesided and inverse
    length = (
        int(node.number(1, "the length"))
        if node.optional(1) is not None
        else 2 * (extent - 1)
        if back
        else extent
    )
    invalid_if(length < 1, f"the length is {length}; at least 1")
    g.check_extent(length)
    if back:
        re, im = _mirrored(g, re, im, length)
    re, im = _to_length(g, re, length), _to_length(g, im, length)
    y = transformed(g, (re, im), length, 1 if inverse else -1)
    if inverse:
        y = tuple(g.times(v, 1 / length) for v in y)
    if onesided and not inverse:
        y = tuple(g.cut(v, last - 1, 0, length // 2 + 1) for v in y)
    y = tuple(g.transpose(v, order) for v in y)
    return g.cast(g.add_axes(y[0], 1) if back else _joined(g, y), x.dtype)


def _dft_as_told(g: Graph, node: Node, parts: Complex, axis: int | Operand) -> Operand:
    y, is_real = dft_as_told(g, node, parts, axis)
    return g.cast(g.add_axes(y[0], 1) if is_real else _joined(g, y), node.x.dtype)


def _mirrored(g: Graph, re: Operand, im: Operand | None, length: int) -> Complex:
    """A spectrum of which half is given: the other half has the conjugates in reverse."""
    half = length // 2 + 1
    re = _to_length(g, re, half)
    im = known(np.zeros([1]), re.dtype) if im is None else _to_length(g, im, half)
    im = g.expand(im, g.shape(re))
    rest, last = length - half, g.rank(re) - 1
    if rest == 0:
        return re, im
    tails = [g.op("reverse", g.cut(v, last, 1, rest), axes=[last]) for v in (re, im)]
    return g.concat([re, tails[0]], last), g.concat([im, g.op("neg", tails[1])], last)


@reads("STFT")
def stft(g: Graph, node: Node) -> Operand:
    """[batch, frames, bins, 2]: a convolution whose filters are the transform's rows in the window."""
    signal, window = node.x, node.optional(2)
    through = signal.dtype if signal.dtype in ("f32", "f64") else "f32"
    parts = _parts(g, g.cast(signal if g.rank(signal) == 3 else g.add_axes(signal, 1), through))
    if not is_known(node.operand(1)) or not is_known(node.optional(3)):
        step = dims(g, node, 1, "frame_step")[0]
        length = dims(g, node, 3, "frame_length")[0] if node.optional(3) is not None else g.size(window)
        return g.cast(_joined(g, stft_as_told(g, node, parts, length, step)), signal.dtype)
    step = int(node.number(1, "frame_step"))
    if node.optional(3) is not None:
        length = int(node.number(3, "frame_length"))
    else:
        invalid_if(window is None, "there is neither a window nor a frame_length")
        length = g.fixed(g.shape(window)[0], "the length of the window")
    invalid_if(step < 1 or length < 1, f"frame_step is {step} and frame_length {length}; both are at least 1")
    onesided = bool(node.get("onesided", 1))
    bins = length // 2 + 1 if onesided else length
    g.check_extent(2 * bins * length)
    rows = _angles(bins, length, length, -1)
    filters = [known(part.reshape(bins, 1, 1, length), through) for part in (rows.real, rows.imag)]
    if window is not None:
        window = g.reshape(g.cast(window, through), [1, 1, 1, length])
        filters = [g.op("mul", f, window) for f in filters]
    cos, sin = filters

    def framed(x: Operand, bank: Operand) -> Operand:
        batch, extent = g.shape(x)
        y = g.op("conv2d", g.reshape(x, [batch, 1, 1, extent]), bank, strides=[1, step])
        batch, count, _, frames = g.shape(y)
        return g.transpose(g.reshape(y, [batch, count, frames]), [0, 2, 1])

    re, im = framed(parts[0], cos), framed(parts[0], sin)
    if parts[1] is not None:
        re = g.op("sub", re, framed(parts[1], sin))
        im = g.op("add", im, framed(parts[1], cos))
    return g.cast(_joined(g, (re, im)), signal.dtype)


@reads("MelWeightMatrix")
def mel_weight_matrix(g: Graph, node: Node) -> Operand:
    """[bins of the spectrum, bins of the mel scale]: triangles that overlap."""
    if not all(is_known(x) for x in node.inputs):
        return mel_as_told(g, node, dtype_named(node.get("output_datatype", 1), "output_datatype"))
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    count, length, rate, low, high = (node.number(i, name) for i, name in enumerate(names))
    invalid_if(
        count < 1 or length < 1 or rate < 1,
        f"num_mel_bins is {count}, dft_length {length}, sample_rate {rate}",
    )
    rows = length // 2 + 1
    g.check_extent(rows * count)
    edges = [2595 * math.log10(1 + hertz / 700) for hertz in (low, high)]
    places = np.arange(count + 2) * ((edges[1] - edges[0]) / (count + 2)) + edges[0]
    hertz = 700 * (10 ** (places / 2595) - 1)
    bins = ((length + 1) * hertz // rate).astype(np.int64)
    invalid_if(
        bins.min() < 0 or bins.max() > rows - 1 + 1, f"the edges {low} and {high} lie outside the spectrum"
    )
    result = np.zeros([rows + 1, count])
    for i in range(count):
        lower, centre, higher = bins[i : i + 3]
        if centre > lower:
            rising = np.arange(lower, centre + 1)
            result[rising, i] = (rising - lower) / (centre - lower)
        else:
            result[centre, i] = 1
        if higher > centre:
            falling = np.arange(centre, higher)
            result[falling, i] = (higher - falling) / (higher - centre)
    return known(result[:rows], dtype_named(node.get("output_datatype", 1), "output_datatype"))
