"""Images in other sizes: an axis after the other, as weighted sums of elements."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..graph import LARGEST_EXTENT, Dim, Extent, Graph, Number, Operand, is_same, known
from ..numbers import extents_of, is_known
from ..ratios import BINARY, Ratio
from ..registry import Invalid, Node, Refused, axes_of, invalid_if, reads, refuse_if
from .open_resampling import OpenAxis, resized_open_axis

Taps = list[tuple[np.ndarray, np.ndarray]]  # places and weights for each element of the result
_ROUNDINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
_MOST_TAPS = 2**12  # elements of the input that one of the output is a sum of
_TRANSFORMATIONS = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)


@dataclass
class _Axis:
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


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    """Keys' kernel (doi:10.1109/TASSP.1981.1163711), of distances up to 2."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def _kernel_taps(points: np.ndarray, axis: _Axis, node: Node) -> Taps:
    """Of linear and cubic interpolation; antialiasing widens the kernel where the image shrinks."""
    cubic, a = node.get("mode") == "cubic", float(node.get("cubic_coeff_a", -0.75))
    antialias = node.get("antialias", 0)
    widened = max(1 / axis.scale, 1.0) if antialias else 1.0
    radius = (2 if cubic else 1) * widened
    points = points.astype(np.float64)
    if not cubic and widened == 1:
        points = np.clip(points, 0, axis.size - 1)
    first = np.floor(points - radius).astype(np.int64) + 1
    refuse_if(
        2 * radius * axis.out > LARGEST_EXTENT or 2 * radius > _MOST_TAPS,
        f"mode is {node.get('mode')} with antialias={antialias}, and the scale {axis.scale} makes "
        f"{axis.out} weighted sums of {2 * radius:.0f} elements; {LARGEST_EXTENT} elements in all, and "
        f"{_MOST_TAPS} of a sum, are the most",
        f"Export the model with {'antialias=0, or with ' if widened > 1 else ''}a scale nearer to 1",
    )
    taps: Taps = []
    for k in range(int(np.ceil(2 * radius)) + (1 if widened > 1 else 0)):
        places = first + k
        distance = (places - points) / widened
        weights = _cubic(distance, a) if cubic else np.maximum(1 - np.abs(distance), 0)
        if node.get("exclude_outside", 0):
            weights = np.where((places < 0) | (places >= axis.size), 0, weights)
        taps.append((np.clip(places, 0, axis.size - 1), weights))
    if node.get("exclude_outside", 0) or widened > 1:
        total = sum(weights for _, weights in taps)
        taps = [(places, weights / np.where(total == 0, 1, total)) for places, weights in taps]
    return [(places, weights) for places, weights in taps if np.any(weights)]


def _blended(g: Graph, x: Operand, dim: int, taps: Taps) -> Operand:
    column = [-1, *[1] * (g.rank(x) - 1 - dim)]
    total: Operand | None = None
    for places, weights in taps:
        part = g.op("gather", x, known(places, "i64"), axis=dim)
        if not np.all(weights == 1):
            part = g.op("mul", part, known(weights.reshape(column).astype(np.float32), x.dtype))
        total = part if total is None else g.op("add", total, part)
    return x if total is None else total


def _resized_axis(g: Graph, x: Operand, dim: int, axis: _Axis, node: Node) -> Operand:
    transformation = node.get("coordinate_transformation_mode", "half_pixel")
    points = axis.points(transformation)
    if node.get("mode", "nearest") == "nearest":
        rounding = _ROUNDINGS[node.get("nearest_mode", "round_prefer_floor")]
        places = np.clip(rounding(points), 0, axis.size - 1).astype(np.int64)
        y = (
            x
            if axis.size == axis.out and np.array_equal(places, np.arange(axis.size))
            else g.op("gather", x, known(places, "i64"), axis=dim)
        )
    else:
        y = _blended(g, x, dim, _kernel_taps(points, axis, node))
    if transformation != "tf_crop_and_resize":
        return y
    outside = (points < 0) | (points > axis.size - 1)
    if not outside.any():
        return y
    column = [-1, *[1] * (g.rank(x) - 1 - dim)]
    value = known(float(node.get("extrapolation_value", 0.0)), x.dtype)
    return g.op("where", known(outside.reshape(column), "bool"), value, y)


_PLAIN = {  # as resample2d calls them
    "half_pixel": "half_pixel",
    "pytorch_half_pixel": "half_pixel_or_first",
    "align_corners": "corners",
    "asymmetric": "edges",
}


def _is_plain(node: Node, pairs: list[tuple[int, _Axis | OpenAxis]], rank: int) -> bool:
    """What resample2d does: linear, of the last two axes."""
    return (
        rank == 4
        and all(dim in (2, 3) for dim, _ in pairs)
        and node.get("mode") == "linear"
        and node.get("coordinate_transformation_mode", "half_pixel") in _PLAIN
        and not node.get("antialias", 0)
        and not node.get("exclude_outside", 0)
        and all(_is_exact(axis) for _, axis in pairs)
    )


def _is_exact(axis: _Axis | OpenAxis) -> bool:
    """Whether the scale is the quotient of the extents."""
    if isinstance(axis, _Axis):
        return axis.scale == axis.out / axis.size
    if isinstance(axis.scale, Operand):
        return False
    scale = Ratio.of(axis.scale)
    return is_same(axis.size * scale.above, axis.out * scale.below)


def _resampled(g: Graph, node: Node, x: Operand, pairs: list[tuple[int, _Axis | OpenAxis]]) -> Operand:
    sizes = g.shape(x)
    for dim, axis in pairs:
        sizes[dim] = axis.out
    way = _PLAIN[node.get("coordinate_transformation_mode", "half_pixel")]
    return g.op("resample2d", x, mode="linear", sizes=sizes[2:], axes=[2, 3], coordinates=way)


def resized(g: Graph, node: Node, x: Operand, axes: dict[int, _Axis | OpenAxis]) -> Operand:
    pairs = [(dim, axis) for dim, axis in sorted(axes.items()) if not _is_unchanged(axis, node)]
    if not pairs:
        return g.op("identity", x)
    closed = [axis for _, axis in pairs if isinstance(axis, _Axis)]
    largest = max((axis.out for axis in closed), default=1)
    invalid_if(
        any(axis.size < 1 or axis.out < 1 for axis in closed),
        f"extents {[axis.size for axis in closed]} become {[axis.out for axis in closed]}; least is 1",
    )
    refuse_if(
        largest > LARGEST_EXTENT,
        f"an extent becomes {largest} by the sizes or scales; {LARGEST_EXTENT} is the most",
    )
    dtype = x.dtype
    if node.get("mode", "nearest") != "nearest" and not x.is_float:
        raise Refused(
            f"mode is {node.get('mode')}, and the image is {dtype}; floats are interpolated",
            "Cast the image to float before it",
        )
    if _is_plain(node, pairs, g.rank(x)):
        return _resampled(g, node, x, pairs)
    for dim, axis in pairs:
        resize_axis = resized_open_axis if isinstance(axis, OpenAxis) else _resized_axis
        x = resize_axis(g, x, dim, axis, node)
    return x


def _is_unchanged(axis: _Axis | OpenAxis, node: Node) -> bool:
    cropped = node.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    if isinstance(axis, OpenAxis):
        return is_same(axis.size, axis.out) and not cropped and _is_exact(axis)
    return axis.size == axis.out and axis.scale == 1 and not cropped


def _targets_told(
    g: Graph, sizes: list[Dim], axes: list[int], scales: list[Operand]
) -> dict[int, _Axis | OpenAxis]:
    """By scales that are known only at run time."""
    result: dict[int, _Axis | OpenAxis] = {}
    for a, scale in zip(axes, scales, strict=True):
        scale = g.cast(scale, "f32")
        out = g.op("floor", g.op("mul", g.at_run_time(sizes[a], "f32"), scale))
        result[a] = OpenAxis(sizes[a], extents_of(g, g.reshape(g.cast(out, "i64"), [1]))[0], scale)
    return result


def _open_targets(node: Node, sizes: list[Dim], axes: list[int], given: tuple) -> dict[int, _Axis | OpenAxis]:
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
    result: dict[int, _Axis | OpenAxis] = {}
    for a, size, out, factor in zip(axes, own, outs, factors, strict=True):
        if any(isinstance(n, Extent) for n in (size, out, factor.above, factor.below)):
            result[a] = OpenAxis(size, out, factor)
        else:
            result[a] = _Axis(size, out, factor.above / factor.below)
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


def _targets(
    g: Graph, node: Node, sizes: list[Dim], axes: list[int], given: tuple
) -> dict[int, _Axis | OpenAxis]:
    """By scales or by sizes, which may keep the aspect ratio."""
    scales, wanted = given
    result: dict[int, _Axis | OpenAxis] = {}
    numbers = wanted if wanted is not None else scales
    invalid_if(len(numbers) != len(axes), f"there are {len(numbers)} sizes or scales for {len(axes)} axes")
    if any(isinstance(n, Operand) for n in numbers):
        return _targets_told(g, sizes, axes, numbers)
    if any(isinstance(n, (Extent, Ratio)) for n in (*numbers, *(sizes[a] for a in axes))):
        return _open_targets(node, sizes, axes, given)
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
            result[a] = _Axis(size, int(out), factor)
        return result
    for a, factor in zip(axes, scales, strict=True):
        if factor != 1:
            result[a] = _Axis(sizes[a], _scaled(sizes[a], _checked_scale(factor)), float(factor))
    return result


def _numbers(g: Graph, node: Node, index: int, what: str) -> list[Any] | None:
    """An input that is a list of numbers; left out, or empty, it is None.

    Where only a run knows them, integers are extents, and others are operands.
    """
    operand = node.optional(index)
    if operand is None or is_same(g.size(operand), 0):
        return None
    if not is_known(operand):
        if not operand.is_float:
            return extents_of(g, operand)
        count = g.fixed(g.size(operand), f"the number of {what}")
        return [g.reshape(g.cut(operand, 0, i, 1), []) for i in range(count)]
    values = node.known(index, what).reshape(-1)
    return [v if isinstance(v, (Extent, Ratio)) else float(v) for v in values]


def _repeated(g: Graph, node: Node, scales: list[float] | None, axes: list[int]) -> Operand | None:
    """Nearest neighbours at whole factors repeat every element, of however many there are."""
    sizes = g.shape(node.x)
    how, nearest = node.get("coordinate_transformation_mode", "half_pixel"), node.get("nearest_mode", "")
    plain = (how, nearest) == ("asymmetric", "floor") or (
        how == "half_pixel" and nearest not in ("floor", "ceil")
    )
    if scales is None or node.get("mode", "nearest") != "nearest" or not plain or len(scales) != len(axes):
        return None
    factors = dict(zip(axes, scales, strict=True))
    if not any(isinstance(sizes[a], Extent) and factors[a] != 1 for a in axes):
        return None
    if any(
        isinstance(f, (Extent, Ratio, Operand)) or not f.is_integer() or not 1 <= f <= LARGEST_EXTENT
        for f in scales
    ):
        return None
    x = node.x
    for a, factor in factors.items():
        if factor != 1:
            shape = g.shape(x)
            tall = g.reshape(x, [*shape[: a + 1], 1, *shape[a + 1 :]])
            wide = g.expand(tall, [*shape[: a + 1], int(factor), *shape[a + 1 :]])
            x = g.reshape(wide, [*shape[:a], shape[a] * int(factor), *shape[a + 1 :]])
    return x


@reads("Resize")
def resize(g: Graph, node: Node) -> Operand:
    x, sizes = node.x, g.shape(node.x)
    mode, how = node.get("mode", "nearest"), node.get("coordinate_transformation_mode", "half_pixel")
    invalid_if(mode not in ("nearest", "linear", "cubic"), f"mode is '{mode}'; nearest, linear or cubic")
    if node.opset < 11:
        scales = _numbers(g, node, 1, "the scales")
        return _by_old_rules(g, node, scales)
    invalid_if(
        how not in _TRANSFORMATIONS,
        f"coordinate_transformation_mode is '{how}'; {', '.join(_TRANSFORMATIONS)} are ONNX's",
    )
    invalid_if(
        node.get("nearest_mode", "round_prefer_floor") not in _ROUNDINGS,
        f"nearest_mode is '{node.get('nearest_mode')}'; {', '.join(_ROUNDINGS)} are ONNX's",
    )
    axes = axes_of(node.get("axes") or range(len(sizes)), len(sizes))
    wanted, scales = _numbers(g, node, 3, "the sizes"), _numbers(g, node, 2, "the scales")
    if wanted is None and scales is None:
        raise Invalid("it has neither scales (input 2) nor sizes (input 3)")
    repeated = _repeated(g, node, scales if wanted is None else None, axes)
    if repeated is not None:
        return repeated
    if wanted is not None:
        wanted = [w if isinstance(w, Extent) else int(w) for w in wanted]
    targets = _targets(g, node, sizes, axes, (scales, wanted))
    if how == "tf_crop_and_resize":
        roi = _numbers(g, node, 1, "the region")
        invalid_if(
            roi is None or len(roi) != 2 * len(axes),
            f"roi (input 1) must have {2 * len(axes)} numbers where the mode is tf_crop_and_resize",
        )
        for i, a in enumerate(axes):
            if _is_whole(roi[i], roi[i + len(axes)]) and a not in targets:
                continue
            targets[a] = _of_region(targets.get(a), sizes[a], roi[i], roi[i + len(axes)])
    return resized(g, node, x, targets)


def _is_whole(start: Any, end: Any) -> bool:
    return not isinstance(start, Operand) and (start, end) == (0, 1)


def _of_region(target: _Axis | OpenAxis | None, size: Dim, start: Any, end: Any) -> _Axis | OpenAxis:
    if target is None:
        target = OpenAxis(size, size, 1.0) if isinstance(size, Extent) else _Axis(size, size, 1.0)
    if isinstance(target, _Axis) and any(isinstance(edge, (Extent, Ratio, Operand)) for edge in (start, end)):
        target = OpenAxis(target.size, target.out, target.scale)
    target.start, target.end = start, end
    return target


def _by_old_rules(g: Graph, node: Node, scales: list[float] | None) -> Operand:
    """Upsample, and Resize before operator set 11: positions are x / scale, rounded down."""
    invalid_if(scales is None, "the scales are missing (attribute scales, or input 1 from operator set 9 on)")
    sizes = g.shape(node.x)
    invalid_if(len(scales) != len(sizes), f"scales has {len(scales)} numbers for {len(sizes)} dimensions")
    rules = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    node.attributes = {**node.attributes, **rules}
    if node.get("mode") == "bilinear":
        node.attributes["mode"] = "linear"
    repeated = _repeated(g, node, scales, list(range(len(sizes))))
    if repeated is not None:
        return repeated
    return resized(g, node, node.x, _targets(g, node, sizes, list(range(len(sizes))), (scales, None)))


@reads("Upsample")
def upsample(g: Graph, node: Node) -> Operand:
    mode = node.get("mode", "nearest")
    invalid_if(mode not in ("nearest", "linear", "bilinear"), f"mode is '{mode}'; nearest or linear")
    scales = node.get("scales") or _numbers(g, node, 1, "the scales")
    return _by_old_rules(g, node, scales)
