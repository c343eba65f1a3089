"""Images and volumes sampled at given points."""

from __future__ import annotations

import itertools

from ..graph import Dim, Extent, Graph, Operand, is_same, known, product
from ..numbers import dims
from ..ratios import Ratio
from ..registry import Node, invalid_if, reads, refuse_if

_MODES = {
    "linear": "linear",
    "bilinear": "linear",
    "nearest": "nearest",
    "cubic": "cubic",
    "bicubic": "cubic",
}
_SHARPNESS = -0.75  # of the cubic interpolation


class _Image:
    """[n, c, sizes...], sampled at points [n, places..., axes] whose coordinates are within [-1, 1]."""

    def __init__(self, g: Graph, image: Operand, mode: str, padding: str, align_corners: bool) -> None:
        self.g, self.image, self.padding, self.align_corners = g, image, padding, align_corners
        self.mode = _MODES[mode]
        self.batch, self.channels, *self.sizes = g.shape(image)
        self.dtype = image.dtype

    def coordinate(self, grid: Operand, axis: int) -> Operand:
        """In elements of the image, rounded for the nearest one, and brought inside it by the padding."""
        g, size = self.g, self.sizes[axis]
        last = len(self.sizes) - 1 - axis  # grids have the last axis first
        rank = g.rank(grid)
        x = g.reshape(g.cut(grid, rank - 1, last, 1), g.shape(grid)[:-1])
        # [-1, 1] are the centres of the outermost elements, or their outer edges
        factor = Ratio(size - 1 if self.align_corners else size, 2)
        x = g.plus(g.times(x, factor), Ratio(size - 1, 2))
        if self.mode == "cubic":
            return x  # the elements around it are brought inside
        if self.mode == "nearest":
            x = g.op("round_even", x)
        return self._inside(x, size)

    def _inside(self, x: Operand, size: Dim) -> Operand:
        if self.padding == "reflection":
            x = self._reflected(x, size)
        return x if self.padding == "zeros" else self.g.within(x, 0, size - 1)

    def _reflected(self, x: Operand, size: Dim) -> Operand:
        g = self.g
        low, span = (0.0, size - 1) if self.align_corners else (-0.5, size)
        if is_same(span, 0):
            return g.times(x, 0)
        span = Extent.largest([span, 1])  # of one element all else is clamped
        away = g.op("abs", g.plus(x, -low))
        place = g.op("remainder", away, g.at_run_time(2 * span, self.dtype))
        folded = g.op("min", place, g.plus(g.op("neg", place), 2 * span))
        return g.plus(folded, low)

    def at(self, places: list[Operand]) -> Operand:
        """The elements at whole coordinates, zero outside."""
        g = self.g
        shape = g.shape(places[0])
        if self.mode == "cubic":
            places = [self._inside(v, size) for v, size in zip(places, self.sizes, strict=True)]
        inside: Operand | None = None
        where: Operand | None = None
        for v, size in zip(places, self.sizes, strict=True):
            for test, bound in (("greater_or_equal", 0), ("lesser_or_equal", size - 1)):
                holds = g.op(test, v, g.at_run_time(bound, self.dtype))
                inside = holds if inside is None else g.op("logical_and", inside, holds)
            step = g.cast(g.within(v, 0, size - 1), "i64")
            where = step if where is None else g.op("add", g.times(where, size), step)
        count = product(shape[1:])
        where = g.expand(g.reshape(where, [self.batch, 1, count]), [self.batch, self.channels, count])
        flat = g.reshape(self.image, [self.batch, self.channels, product(self.sizes)])
        taken = g.op("gather_elements", flat, where, axis=2)
        taken = g.reshape(taken, [self.batch, self.channels, *shape[1:]])
        return g.op("where", self.for_channels(inside), taken, known(0, self.dtype))

    def for_channels(self, x: Operand) -> Operand:
        """[n, places...] as [n, 1, places...]"""
        batch, *size = self.g.shape(x)
        return self.g.reshape(x, [batch, 1, *size])


@reads("GridSample")
def grid_sample(g: Graph, node: Node) -> Operand:
    image, grid = node.x, node.operand(1)
    mode = node.get("mode", "linear" if node.opset >= 20 else "bilinear")
    padding = node.get("padding_mode", "zeros")
    invalid_if(mode not in _MODES, f"mode is '{mode}'; linear, nearest and cubic are ONNX's")
    invalid_if(
        padding not in ("zeros", "border", "reflection"),
        f"padding_mode is '{padding}'; zeros, border and reflection are ONNX's",
    )
    dims = g.rank(image) - 2
    if g.rank(grid) == dims + 2 and isinstance(g.shape(grid)[-1], Extent):
        grid = g.reshape(grid, [*g.shape(grid)[:-1], dims])
    refuse_if(
        dims not in (2, 3) or g.rank(grid) != dims + 2 or g.shape(grid)[-1] != dims,
        f"the image has {g.rank(image)} dimensions and the grid the shape {g.shape(grid)}; images of 4 and "
        "volumes of 5 are read, whose grids end in 2 and 3",
    )
    refuse_if(
        dims == 3 and _MODES[mode] == "cubic", "mode is 'cubic' for a volume; ONNX defines it for images"
    )
    source = _Image(g, image, mode, padding, bool(node.get("align_corners", 0)))
    grid = g.cast(grid, image.dtype)
    points = [source.coordinate(grid, axis) for axis in range(dims)]
    if source.mode == "nearest":
        return source.at(points)
    reach = range(-1, 3) if source.mode == "cubic" else range(2)
    taps = [_taps(g, x, reach, source.mode == "cubic") for x in points]
    total: Operand | None = None
    for corner in itertools.product(*taps):
        weight = corner[0][1]
        for _, other in corner[1:]:
            weight = g.op("mul", weight, other)
        part = g.op("mul", source.at([place for place, _ in corner]), source.for_channels(weight))
        total = part if total is None else g.op("add", total, part)
    return total


def _taps(g: Graph, x: Operand, reach: range, is_cubic: bool) -> list[tuple[Operand, Operand]]:
    """The whole coordinates around one, each with its weight."""
    base = g.op("floor", x)
    places = [g.plus(base, offset) for offset in reach]
    away = [g.op("abs", g.op("sub", x, place)) for place in places]
    if not is_cubic:
        return [(p, g.op("linear", d, alpha=-1.0, beta=1.0)) for p, d in zip(places, away, strict=True)]
    return [(p, _cubic(g, d, offset in (0, 1))) for p, d, offset in zip(places, away, reach, strict=True)]


def _cubic(g: Graph, d: Operand, is_near: bool) -> Operand:
    """Keys' weight of a distance within 1, or between 1 and 2."""
    a = _SHARPNESS
    factors = (a + 2, -(a + 3), 0.0, 1.0) if is_near else (a, -5 * a, 8 * a, -4 * a)
    total = g.times(d, factors[0])
    for factor in factors[1:-1]:
        total = g.op("mul", g.plus(total, factor), d)
    return g.plus(total, factors[-1])


@reads("AffineGrid")
def affine_grid(g: Graph, node: Node) -> Operand:
    """Where theta [n, 2, 3] or [n, 3, 4] puts each element of an image: [n, h, w, 2] or [n, d, h, w, 3]."""
    theta, sizes = node.x, dims(g, node, 1, "the size")
    refuse_if(len(sizes) not in (4, 5), f"the size is {sizes}; an image has 4 extents and a volume 5")
    batch, _, *extents = sizes
    rank, columns = len(extents), []
    for i, extent in reversed(
        list(enumerate(extents))
    ):  # x is the last coordinate of an image, and here the first
        line = g.cast(_centres(g, extent, bool(node.get("align_corners", 0))), theta.dtype)
        line = g.reshape(line, [extent if j == i else 1 for j in range(rank)])
        columns.append(g.reshape(g.expand(line, extents), [product(extents), 1]))
    columns.append(g.filled(1, theta.dtype, [product(extents), 1]))
    grid = g.op("matmul", g.concat(columns, 1), g.transpose(theta, [0, 2, 1]))
    return g.reshape(grid, [batch, *extents, rank])


def _centres(g: Graph, extent: Dim, align_corners: bool) -> Operand:
    """Of the elements along an axis from -1 to 1, f32: the outermost lie at its ends, or touch them.

    A lone one that would lie at both ends is at 1.
    """
    place, count = g.cast(g.positions(extent), "f32"), g.at_run_time(extent, "f32")
    if not align_corners:
        return g.plus(g.op("div", g.op("linear", place, alpha=2.0, beta=1.0), count), -1.0)
    last = g.plus(count, -1.0)
    is_lone = g.op("equal", last, known(0, "f32"))
    apart = g.op("div", g.times(place, 2.0), g.op("where", is_lone, known(1, "f32"), last))
    return g.op("where", is_lone, known(1, "f32"), g.plus(apart, -1.0))
