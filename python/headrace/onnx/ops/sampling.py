"""Images sampled at given points."""

from __future__ import annotations

from ..graph import Dim, Graph, Operand, known, product
from ..registry import Node, invalid_if, reads, refuse_if

_MODES = {"linear": "linear", "bilinear": "linear", "nearest": "nearest"}


class _Image:
    """[n, c, h, w], sampled at points [n, h', w', 2] whose coordinates are within [-1, 1]."""

    def __init__(self, g: Graph, image: Operand, mode: str, padding: str, align_corners: bool) -> None:
        self.g, self.image, self.padding, self.align_corners = g, image, padding, align_corners
        self.is_nearest = _MODES[mode] == "nearest"
        self.batch, self.channels, self.height, self.width = g.fixed_shape(image)
        self.dtype = image.dtype

    def coordinate(self, grid: Operand, which: int, size: int) -> Operand:
        """In elements of the image, rounded for the nearest one, and brought inside it by the padding."""
        g = self.g
        x = g.reshape(g.cut(grid, 3, which, 1), g.shape(grid)[:3])
        # [-1, 1] are the centres of the outermost elements, or their outer edges
        factor = (size - 1) / 2 if self.align_corners else size / 2
        x = g.op("linear", x, alpha=float(factor), beta=(size - 1) / 2)
        if self.is_nearest:
            x = g.op("round_even", x)
        if self.padding == "reflection":
            x = self._reflected(x, size)
        return x if self.padding == "zeros" else g.op("clamp", x, min_value=0, max_value=size - 1)

    def _reflected(self, x: Operand, size: int) -> Operand:
        g = self.g
        low, span = (0.0, size - 1) if self.align_corners else (-0.5, size)
        if span == 0:
            return g.times(x, 0)
        away = g.op("abs", g.plus(x, -low))
        place = g.op("remainder", away, known(2.0 * span, self.dtype))
        folded = g.op("min", place, g.op("linear", place, alpha=-1.0, beta=2.0 * span))
        return g.plus(folded, low)

    def at(self, y: Operand, x: Operand) -> Operand:
        """The elements at whole coordinates, zero outside."""
        g = self.g
        shape = g.shape(y)
        inside: Operand | None = None
        for v, size in ((y, self.height), (x, self.width)):
            for test, bound in (("greater_or_equal", 0), ("lesser_or_equal", size - 1)):
                holds = g.op(test, v, known(bound, self.dtype))
                inside = holds if inside is None else g.op("logical_and", inside, holds)
        row = g.cast(g.op("clamp", y, min_value=0, max_value=self.height - 1), "i64")
        column = g.cast(g.op("clamp", x, min_value=0, max_value=self.width - 1), "i64")
        count = product(shape[1:])
        place = g.reshape(g.op("add", g.times(row, self.width), column), [self.batch, 1, count])
        place = g.expand(place, [self.batch, self.channels, count])
        flat = g.reshape(self.image, [self.batch, self.channels, self.height * self.width])
        taken = g.op("gather_elements", flat, place, axis=2)
        taken = g.reshape(taken, [self.batch, self.channels, *shape[1:]])
        return g.op("where", self.for_channels(inside), taken, known(0, self.dtype))

    def for_channels(self, x: Operand) -> Operand:
        """[n, h', w'] as [n, 1, h', w']"""
        batch, *size = self.g.shape(x)
        return self.g.reshape(x, [batch, 1, *size])


@reads("GridSample")
def grid_sample(g: Graph, node: Node) -> Operand:
    image, grid, mode = (
        node.x,
        node.operand(1),
        node.get("mode", "linear" if node.opset >= 20 else "bilinear"),
    )
    padding = node.get("padding_mode", "zeros")
    refuse_if(
        mode not in _MODES,
        f"mode is '{mode}'; linear and nearest are read",
        "Export the model with one of these, or run it with ONNX Runtime",
    )
    invalid_if(
        padding not in ("zeros", "border", "reflection"),
        f"padding_mode is '{padding}'; zeros, border and reflection are ONNX's",
    )
    refuse_if(
        g.rank(image) != 4 or g.rank(grid) != 4,
        f"the image has {g.rank(image)} dimensions and the grid {g.rank(grid)}; 4 are read",
    )
    g.fixed_shape(grid, "an extent of the grid")
    source = _Image(g, image, mode, padding, bool(node.get("align_corners", 0)))
    grid = g.cast(grid, image.dtype)
    x, y = source.coordinate(grid, 0, source.width), source.coordinate(grid, 1, source.height)
    if source.is_nearest:
        return source.at(y, x)
    left, top = g.op("floor", x), g.op("floor", y)
    total: Operand | None = None
    for down in (0, 1):
        for right in (0, 1):
            row, column = g.plus(top, down), g.plus(left, right)
            weight = g.op("mul", _closeness(g, x, column), _closeness(g, y, row))
            part = g.op("mul", source.at(row, column), source.for_channels(weight))
            total = part if total is None else g.op("add", total, part)
    return total


def _closeness(g: Graph, a: Operand, b: Operand) -> Operand:
    """1 - |a - b|"""
    return g.op("linear", g.op("abs", g.op("sub", a, b)), alpha=-1.0, beta=1.0)


@reads("AffineGrid")
def affine_grid(g: Graph, node: Node) -> Operand:
    """Where theta [n, 2, 3] or [n, 3, 4] puts each element of an image: [n, h, w, 2] or [n, d, h, w, 3]."""
    theta, sizes = node.x, node.dims(1, "the size")
    refuse_if(len(sizes) not in (4, 5), f"the size is {sizes}; an image has 4 extents and a volume 5")
    batch, _, *extents = sizes
    dims, columns = len(extents), []
    for i, extent in reversed(
        list(enumerate(extents))
    ):  # x is the last coordinate of an image, and here the first
        line = g.cast(_centres(g, extent, bool(node.get("align_corners", 0))), theta.dtype)
        line = g.reshape(line, [extent if j == i else 1 for j in range(dims)])
        columns.append(g.reshape(g.expand(line, extents), [product(extents), 1]))
    columns.append(g.filled(1, theta.dtype, [product(extents), 1]))
    grid = g.op("matmul", g.concat(columns, 1), g.transpose(theta, [0, 2, 1]))
    return g.reshape(grid, [batch, *extents, dims])


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
