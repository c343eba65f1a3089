"""Which extents an image is resized to, by scales or sizes that are known, follow from shapes, or are fed."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np

from ..graph import Dim, Extent, Graph, Number, Operand, Undecided, known
from ..numbers import extents_of
from ..ratios import BINARY, Ratio
from ..registry import Node, invalid_if
from .open_resampling import OpenAxis


@dataclass
class Axis:
    """One that is resized: the input's and the output's extent, and the part of the input that is shown."""

    size: int
    out: int
    scale: float
    start: float = 0.0
    end: float = 1.0

    def points(self, transformation: str) -> np.ndarray:
        """Where each output element lies in the input, in single precision as runtimes compute it."""
        x, scale, half = np.arange(self.out, dtype=np.float32), np.float32(self.scale), np.float32(0.5)
        size, out = np.float32(self.size), np.float32(self.out)
        if transformation == "asymmetric":
            return x / scale
        if transformation == "align_corners":
            return x * (size - 1) / (out - 1) if self.out > 1 else x * 0
        if transformation == "pytorch_half_pixel":
            return (x + half) / scale - half if self.out > 1 else x * 0
        if transformation == "tf_half_pixel_for_nn":
            return (x + half) / scale
        if transformation == "half_pixel_symmetric":
            offset = size / 2 * (1 - out / (scale * size))
            doubled = (
                offset + (x.astype(np.float64) + 0.5) / np.float64(scale) - 0.5
            )  # ONNX Runtime rounds here
            return doubled.astype(np.float32)
        if transformation == "tf_crop_and_resize":
            start, end = np.float32(self.start), np.float32(self.end)
            if self.out == 1:
                return x + half * (start + end) * (size - 1)
            return start * (size - 1) + x * (end - start) * (size - 1) / (out - 1)
        return (x + half) / scale - half


def _targets_told(
    g: Graph, sizes: list[Dim], axes: list[int], scales: list[Operand]
) -> dict[int, Axis | OpenAxis]:
    """By scales that are known only at run time."""
    result: dict[int, Axis | OpenAxis] = {}
    for a, scale in zip(axes, scales, strict=True):
        scale = g.cast(scale, "f32")
        out = g.op("floor", g.op("mul", g.at_run_time(sizes[a], "f32"), scale))
        result[a] = OpenAxis(sizes[a], extents_of(g, g.reshape(g.cast(out, "i64"), [1]))[0], scale)
    return result


def _scaled_open(g: Graph, node: Node, sizes: list[Dim], axis: int, scale: Number) -> Axis | OpenAxis:
    """By a scale whose product with an open extent may be rounded: then it is computed in the run."""
    try:
        return _open_targets(node, sizes, [axis], ([scale], None))[axis]
    except Undecided:
        told = _targets_told(g, sizes, [axis], [known(_checked_scale(scale), "f32")])[axis]
        return replace(told, scale=Ratio(*float(scale).as_integer_ratio()))


def _open_targets(node: Node, sizes: list[Dim], axes: list[int], given: tuple) -> dict[int, Axis | OpenAxis]:
    scales, wanted = given
    policy = node.get("keep_aspect_ratio_policy", "stretch")
    _check_policy(policy)
    own = [sizes[a] for a in axes]
    if wanted is None:
        pairs = [(s, _checked_scale(f)) for s, f in zip(own, scales, strict=True)]
        factors = [Ratio.of(f) for _, f in pairs]
        outs = [_scaled(s, f) for s, f in pairs]
    else:
        factors = [Ratio.of(w) for w in wanted]
        factors = [Ratio(f.above, f.below * s) for s, f in zip(own, factors, strict=True)]
        outs = list(wanted)
        if policy != "stretch":
            choose = BINARY["Min" if policy == "not_larger" else "Max"]
            factors = [functools.reduce(choose, factors)] * len(own)
            outs = [
                Ratio(2 * s * f.above + f.below, 2 * f.below).floor()
                for s, f in zip(own, factors, strict=True)
            ]
    result: dict[int, Axis | OpenAxis] = {}
    for a, size, out, factor in zip(axes, own, outs, factors, strict=True):
        if any(isinstance(n, Extent) for n in (size, out, factor.above, factor.below)):
            result[a] = OpenAxis(size, out, factor)
        else:
            result[a] = Axis(size, out, factor.above / factor.below)
    return result


def _checked_scale(factor: Number) -> Number:
    is_float = isinstance(factor, float)
    invalid_if(is_float and not 0 < factor < math.inf, f"scales has {factor}; each is more than 0")
    return factor


def _scaled(size: Dim, factor: Number) -> Dim:
    """Numbers in single precision, as runtimes have them."""
    if isinstance(size, int) and isinstance(factor, float):
        return int(np.floor(np.float32(size) * np.float32(factor)))
    factor = Ratio.of(factor)
    return Ratio(size * factor.above, factor.below).floor()


def _check_policy(policy: str) -> None:
    invalid_if(
        policy not in ("stretch", "not_larger", "not_smaller"),
        f"keep_aspect_ratio_policy is '{policy}'; stretch, not_larger and not_smaller are ONNX's",
    )


def targets(
    g: Graph, node: Node, sizes: list[Dim], axes: list[int], given: tuple
) -> dict[int, Axis | OpenAxis]:
    """By scales or by sizes, which may keep the aspect ratio."""
    scales, wanted = given
    result: dict[int, Axis | OpenAxis] = {}
    numbers = wanted if wanted is not None else scales
    invalid_if(len(numbers) != len(axes), f"there are {len(numbers)} sizes or scales for {len(axes)} axes")
    if wanted is not None:
        invalid_if(
            any(isinstance(w, int) and w < 1 for w in wanted), f"the sizes are {wanted}; each is at least 1"
        )
    if any(isinstance(n, Operand) for n in numbers):
        return _targets_told(g, sizes, axes, numbers)
    if any(isinstance(n, (Extent, Ratio)) for n in (*numbers, *(sizes[a] for a in axes))):
        if wanted is not None:
            return _open_targets(node, sizes, axes, given)
        return {a: _scaled_open(g, node, sizes, a, scale) for a, scale in zip(axes, scales, strict=True)}
    if wanted is not None:
        policy = node.get("keep_aspect_ratio_policy", "stretch")
        own = [g.fixed(sizes[a], "an extent of the image") for a in axes]
        factors = [w / s if s else 1.0 for w, s in zip(wanted, own, strict=True)]
        if policy != "stretch":
            _check_policy(policy)
            factor = min(factors) if policy == "not_larger" else max(factors)
            factors = [factor] * len(own)
            wanted = [int(np.floor(factor * s + 0.5)) for s in own]
        for a, size, out, factor in zip(axes, own, wanted, factors, strict=True):
            result[a] = Axis(size, int(out), factor)
        return result
    for a, factor in zip(axes, scales, strict=True):
        if factor != 1:
            result[a] = Axis(sizes[a], _scaled(sizes[a], _checked_scale(factor)), float(factor))
    return result
