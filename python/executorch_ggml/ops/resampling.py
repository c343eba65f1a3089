"""Images in other sizes, and images sampled at given points."""

from __future__ import annotations

from typing import Any

import torch
from headrace._core import Extent

from ..translate import (
    LOWERINGS,
    Dim,
    Translator,
    Unsupported,
    Value,
    arguments,
    extents,
    is_same,
    lowers,
    merged,
)
from .elementwise import times


def _sizes(t: Translator, node: torch.fx.Node, dims: int) -> list[tuple[Dim, Dim]]:
    """The input's and the output's extent of each axis of the image."""
    outputs = [t.named(e) for e in extents(node.meta["val"].shape[-dims:])]
    return list(zip(t.shape(t.value(node.args[0]))[-dims:], outputs, strict=True))


def _is_open(sizes: list[tuple[Dim, Dim]]) -> bool:
    return any(isinstance(extent, Extent) for pair in sizes for extent in pair)


def _factors(node: torch.fx.Node, dims: int) -> list[float | None]:
    """What the sizes are multiplied by, where that is given."""
    a = arguments(node)
    factors = a.get("scale_factors")
    if factors is None:
        factors = [a[name] for name in ("scales", "scales_d", "scales_h", "scales_w") if name in a]
    return list(factors) if len(factors or []) == dims else [None] * dims


def _of_open_sizes(
    t: Translator, node: torch.fx.Node, op: str, x: Value, sizes: list[tuple[Dim, Dim]], **options: Any
) -> Value:
    """An image whose extents are known only at run time, by the catalog's own op."""
    for (size, out), factor in zip(sizes, _factors(node, len(sizes)), strict=True):
        if len(sizes) != 2 or (factor is not None and not is_same([out], [size * int(factor)])):
            raise Unsupported("resampling of unknown extents by a factor that is not whole")
    return t.op(op, x, sizes=[out for _, out in sizes], axes=[2, 3], **options)


def _scales(node: torch.fx.Node, sizes: list[tuple[int, int]]) -> list[float]:
    """Input elements per output element, by the factors where they are given and else by the sizes."""
    factors = _factors(node, len(sizes))
    return [1 / f if f else size / out for (size, out), f in zip(sizes, factors, strict=True)]


def _nearest(is_exact: bool, dims: int) -> Any:
    def lower(t: Translator, node: torch.fx.Node) -> Value:
        x, sizes = t.value(node.args[0]), _sizes(t, node, dims)
        if _is_open(sizes):
            whole = [factor is not None and float(factor).is_integer() for factor in _factors(node, dims)]
            if not is_exact and not all(whole):
                raise Unsupported("the nearest elements of unknown extents by a factor that is not whole")
            return _of_open_sizes(t, node, "resample2d", x, sizes, mode="nearest-neighbor")
        if dims == 2 and not is_exact and all(out % size == 0 for size, out in sizes):
            return t.op(
                "resample2d", x, mode="nearest-neighbor", sizes=[out for _, out in sizes], axes=[2, 3]
            )
        shift = 0.5 if is_exact else 0.0
        for i, ((size, out), scale) in enumerate(zip(sizes, _scales(node, sizes), strict=True)):
            at = ((torch.arange(out) + shift) * torch.tensor(scale)).floor().long().clamp(max=size - 1)
            if at.tolist() != list(range(size)):
                x = t.op("gather", x, t.constant(at), axis=t.rank(x) - dims + i)
        return x

    return lower


def _points(size: int, out: int, scale: float, align_corners: bool) -> torch.Tensor:
    """Where each output element lies in the input."""
    places = torch.arange(out, dtype=torch.float64)
    if align_corners:
        return places * ((size - 1) / (out - 1) if out > 1 else 0)
    return (places + 0.5) * scale - 0.5


def _blended(t: Translator, x: Value, axis: int, taps: list[tuple[torch.Tensor, torch.Tensor]]) -> Value:
    """The sum of elements along an axis, given as places and weights for each output element."""
    column = [-1, *[1] * (t.rank(x) - 1 - axis)]
    parts = []
    for places, weights in taps:
        weight = t.cast(t.constant(weights.float().reshape(column)), t.dtype(x))
        parts.append(t.op("mul", t.op("gather", x, t.constant(places), axis=axis), weight))
    total = parts[0]
    for part in parts[1:]:
        total = t.op("add", total, part)
    return total


def _linear_taps(points: torch.Tensor, size: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    points = points.clamp(0, size - 1)
    low = points.floor().long()
    fraction = points - low
    return [(low, 1 - fraction), ((low + 1).clamp(max=size - 1), fraction)]


def _cubic_weights(distance: torch.Tensor) -> torch.Tensor:
    """Keys' kernel with a = -0.75, of distances up to 2."""
    d, a = distance.abs(), -0.75
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return torch.where(d <= 1, near, far)


def _cubic_taps(points: torch.Tensor, size: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    low = points.floor().long()
    fraction = points - low
    return [((low + k).clamp(0, size - 1), _cubic_weights(fraction - k)) for k in (-1, 0, 1, 2)]


def _interpolation(taps: Any, dims: int) -> Any:
    def lower(t: Translator, node: torch.fx.Node) -> Value:
        x, sizes, align = t.value(node.args[0]), _sizes(t, node, dims), arguments(node)["align_corners"]
        if _is_open(sizes):
            if taps is not _linear_taps:
                raise Unsupported("cubic resampling of unknown extents")
            if align:
                return _of_open_sizes(t, node, "resample_linear2d", x, sizes, coordinates="corners")
            return _of_open_sizes(t, node, "resample2d", x, sizes, mode="linear")
        scales = _scales(node, sizes)
        plain = not align and scales == [size / out for size, out in sizes]
        if taps is _linear_taps and dims == 2 and plain:
            return t.op("resample2d", x, mode="linear", sizes=[out for _, out in sizes], axes=[2, 3])
        for i, ((size, out), scale) in enumerate(zip(sizes, scales, strict=True)):
            x = _blended(t, x, t.rank(x) - dims + i, taps(_points(size, out, scale, align), size))
        return x

    return lower


for _name, _dims, _lowering in (
    ("nearest1d", 1, _nearest(False, 1)),
    ("nearest2d", 2, _nearest(False, 2)),
    ("nearest3d", 3, _nearest(False, 3)),
    ("linear1d", 1, _interpolation(_linear_taps, 1)),
    ("bilinear2d", 2, _interpolation(_linear_taps, 2)),
    ("trilinear3d", 3, _interpolation(_linear_taps, 3)),
    ("bicubic2d", 2, _interpolation(_cubic_taps, 2)),
):
    LOWERINGS[f"aten.upsample_{_name}.default"] = LOWERINGS[f"aten.upsample_{_name}.vec"] = _lowering
    if "nearest" in _name:
        for _form in ("default", "vec"):
            LOWERINGS[f"aten._upsample_nearest_exact{_dims}d.{_form}"] = _nearest(True, _dims)


# --- sampling at points -------------------------------------------------------------------------------


class _Grid:
    """Sampling an image [n, c, h, w] at points [n, h', w', 2] with coordinates within [-1, 1]."""

    def __init__(self, t: Translator, image: Value, padding: int, align_corners: bool) -> None:
        self.t, self.image, self.padding, self.align_corners = t, image, padding, align_corners
        self.batch, self.channels, self.height, self.width = t.shape(image)
        self.dtype = t.dtype(image)

    def coordinate(self, grid: Value, which: int, size: int) -> Value:
        """In elements of the image, brought inside it where the padding says so."""
        t = self.t
        shape = t.shape(grid)
        part = t.op("slice", grid, starts=[0, 0, 0, which], sizes=[*shape[:3], 1])
        x = t.reshape(part, shape[:3])
        # [-1, 1] are the centres of the outermost elements, or their outer edges
        factor, offset = (
            ((size - 1) / 2, (size - 1) / 2) if self.align_corners else (size / 2, (size - 1) / 2)
        )
        x = t.op("linear", x, alpha=factor, beta=offset)
        if self.padding == 2:
            x = self._reflected(x, size)
        return x if self.padding == 0 else t.op("clamp", x, min_value=0, max_value=size - 1)

    def _reflected(self, x: Value, size: int) -> Value:
        t = self.t
        low, span = (0.0, size - 1) if self.align_corners else (-0.5, size)
        if span == 0:
            return times(t, x, 0)
        away = t.op("abs", t.op("linear", x, alpha=1, beta=-low))
        place = t.op("remainder", away, t.scalar(2.0 * span, self.dtype))
        folded = t.op("min", place, t.op("linear", place, alpha=-1, beta=2.0 * span))
        return t.op("linear", folded, alpha=1, beta=low)

    def at(self, y: Value, x: Value) -> Value:
        """The elements at whole coordinates, zero outside."""
        t = self.t
        shape = t.shape(y)
        inside = None
        for v, size in ((y, self.height), (x, self.width)):
            for test, bound in (("greater_or_equal", 0), ("lesser_or_equal", size - 1)):
                holds = t.op(test, v, t.scalar(bound, self.dtype))
                inside = holds if inside is None else t.op("logical_and", inside, holds)
        row = t.op("clamp", y, min_value=0, max_value=self.height - 1)
        column = t.op("clamp", x, min_value=0, max_value=self.width - 1)
        place = t.op(
            "add", t.op("mul", t.cast(row, "i64"), t.scalar(self.width, "i64")), t.cast(column, "i64")
        )
        count = merged(shape[1:])
        place = t.op(
            "expand", t.reshape(place, [self.batch, 1, count]), new_shape=[self.batch, self.channels, count]
        )
        flat = t.reshape(self.image, [self.batch, self.channels, self.height * self.width])
        taken = t.op("gather_elements", flat, place, axis=2)
        taken = t.reshape(taken, [self.batch, self.channels, *shape[1:]])
        return t.op("mul", taken, self.column(t.cast(inside, self.dtype)))

    def column(self, weight: Value) -> Value:
        """[n, h', w'] for all channels."""
        batch, *size = self.t.shape(weight)
        return self.t.reshape(weight, [batch, 1, *size])


@lowers("aten.grid_sampler_2d.default")
def grid_sampler(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    image, grid, mode = t.value(a["input"]), t.value(a["grid"]), a["interpolation_mode"]
    if any(isinstance(extent, Extent) for extent in t.shape(image)[2:]):
        raise Unsupported("sampling of an image of unknown extents")
    if mode == 2:
        raise Unsupported("cubic sampling at points")
    sampler = _Grid(t, image, a["padding_mode"], a["align_corners"])
    x, y = sampler.coordinate(grid, 0, sampler.width), sampler.coordinate(grid, 1, sampler.height)
    if mode == 1:
        return sampler.at(t.op("round_even", y), t.op("round_even", x))
    total = None
    left, top = t.op("floor", x), t.op("floor", y)
    for down in (0, 1):
        for right in (0, 1):
            row, column = (t.op("linear", v, beta=float(d)) for v, d in ((top, down), (left, right)))
            weight = t.op("mul", *(_closeness(t, a, b) for a, b in ((y, row), (x, column))))
            part = t.op("mul", sampler.at(row, column), sampler.column(weight))
            total = part if total is None else t.op("add", total, part)
    return total


def _closeness(t: Translator, a: Value, b: Value) -> Value:
    """1 - |a - b|"""
    return t.op("linear", t.op("abs", t.op("sub", a, b)), alpha=-1, beta=1)
