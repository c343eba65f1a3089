"""Convolutions of one, two and three dimensions, all on the catalog's two-dimensional ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..graph import Dim, Extent, Graph, Operand
from ..ratios import divided_up
from ..registry import Node, invalid_if, reads, refuse_if
from .padding import with_margin

_AUTOMATIC = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


@dataclass
class Window:
    """How a filter or a pool's window moves, a number for each axis of the image."""

    kernel: list[Dim]
    strides: list[int]
    dilations: list[int]
    before: list[Dim]
    after: list[Dim]

    def __post_init__(self) -> None:
        lists = (self.kernel, self.strides, self.dilations, self.before, self.after)
        invalid_if(
            len({len(numbers) for numbers in lists}) != 1,
            f"kernel, strides, dilations and pads {lists} differ in their number of axes",
        )
        numbers = [n for n in (*self.kernel, *self.strides, *self.dilations) if isinstance(n, int)]
        invalid_if(
            min(numbers, default=1) < 1,
            f"kernel {self.kernel}, strides {self.strides}, dilations {self.dilations} must be at least 1",
        )

    @property
    def dims(self) -> int:
        return len(self.kernel)

    @property
    def reach(self) -> list[Dim]:
        """How many elements a window covers, those between its own included."""
        return [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]

    @property
    def padding(self) -> list[Dim]:
        """As the catalog has it: above, below, left, right."""
        return [n for pair in zip(self.before, self.after, strict=True) for n in pair]

    def part(self, axes: slice) -> Window:
        lists = (self.kernel, self.strides, self.dilations, self.before, self.after)
        return Window(*(numbers[axes] for numbers in lists))

    def with_height(self) -> Window:
        lists = (self.kernel, self.strides, self.dilations, self.before, self.after)
        return Window(*([n, *numbers] for n, numbers in zip((1, 1, 1, 0, 0), lists, strict=True)))


def window_of(g: Graph, node: Node, sizes: list[Dim], kernel: list[Dim]) -> Window:
    """By the attributes; auto_pad SAME_* gives each axis ceil(size / stride) windows."""
    dims = len(sizes)
    strides = [int(n) for n in node.get("strides") or [1] * dims]
    dilations = [int(n) for n in node.get("dilations") or [1] * dims]
    pads = [int(n) for n in node.get("pads") or [0] * (2 * dims)]
    auto = node.get("auto_pad", "NOTSET") or "NOTSET"
    invalid_if(auto not in _AUTOMATIC, f"auto_pad is '{auto}'; {', '.join(_AUTOMATIC)} are ONNX's")
    if auto == "VALID":
        pads = [0] * (2 * dims)
    invalid_if(len(pads) != 2 * dims, f"pads has {len(pads)} numbers for {dims} axes")
    window = Window(kernel, strides, dilations, pads[:dims], pads[dims:])
    if not auto.startswith("SAME"):
        return window
    totals = []
    for size, stride, reach in zip(sizes, strides, window.reach, strict=True):
        if stride == 1:
            totals.append(reach - 1)
            continue
        totals.append(Extent.largest([(divided_up(size, stride) - 1) * stride + reach - size, 0]))
    small = [total // 2 for total in totals]
    large = [total - n for total, n in zip(totals, small, strict=True)]
    upper = auto == "SAME_UPPER"
    return replace(window, before=small if upper else large, after=large if upper else small)


def with_height(g: Graph, x: Operand) -> Operand:
    """[n, c, w] as [n, c, 1, w]."""
    n, c, w = g.shape(x)
    return g.reshape(x, [n, c, 1, w])


def without_height(g: Graph, y: Operand) -> Operand:
    n, c, _, w = g.shape(y)
    return g.reshape(y, [n, c, w])


def unpadded(g: Graph, x: Operand, window: Window, value: float = 0) -> tuple[Operand, Window]:
    """Negative padding takes rows and columns away; open padding becomes a margin of a value."""
    apart = [
        any(isinstance(n, Extent) or n < 0 for n in pair)
        for pair in zip(window.before, window.after, strict=True)
    ]
    if not any(apart):
        return x, window
    kept = [0] * (g.rank(x) - window.dims)
    begin, end = (
        kept + [n if out else 0 for n, out in zip(amounts, apart, strict=True)]
        for amounts in (window.before, window.after)
    )
    x = with_margin(g, x, begin, end, "constant", value)
    inside = {
        name: [0 if out else n for n, out in zip(getattr(window, name), apart, strict=True)]
        for name in ("before", "after")
    }
    return x, replace(window, **inside)


def convolve(
    g: Graph, x: Operand, weight: Operand, bias: Operand | None, window: Window, groups: int
) -> Operand:
    x, window = unpadded(g, x, window)
    if window.dims == 1:
        y = convolve(g, with_height(g, x), with_height(g, weight), bias, window.with_height(), groups)
        return without_height(g, y)
    if window.dims == 3:
        return _over_volumes(g, x, weight, bias, window, groups)
    options = {"strides": window.strides, "dilations": window.dilations, "padding": window.padding}
    return g.op("conv2d", x, weight, bias, groups=groups, **options)


def _over_volumes(
    g: Graph, x: Operand, weight: Operand, bias: Operand | None, window: Window, groups: int
) -> Operand:
    """The planes under a filter become channels of one image: [n, c, d, h, w] as [n d', c kd, h, w]."""
    before, after = window.before[0], window.after[0]
    if before or after:
        margin = {"beginning_padding": [0, 0, before, 0, 0], "ending_padding": [0, 0, after, 0, 0]}
        x = g.op("pad", x, mode="constant", value=0, **margin)
    batch, channels, depth, height, width = g.shape(x)
    outputs, inner, planes, *kernel = g.shape(weight)
    planes = g.fixed(planes, "the depth of the filter")
    stride, dilation = window.strides[0], window.dilations[0]
    count = (depth - dilation * (planes - 1) - 1) // stride + 1
    taps = []
    for k in range(planes):
        tap = g.cut(x, 2, k * dilation, (count - 1) * stride + 1, stride)
        taps.append(g.reshape(tap, [batch, channels, 1, count, height, width]))
    stacked = g.transpose(g.concat(taps, 2), [0, 3, 1, 2, 4, 5])
    image = g.reshape(stacked, [batch * count, channels * planes, height, width])
    weight = g.reshape(weight, [outputs, inner * planes, *kernel])
    y = convolve(g, image, weight, bias, window.part(slice(1, None)), groups)
    _, outputs, *size = g.shape(y)
    return g.transpose(g.reshape(y, [batch, count, outputs, *size]), [0, 2, 1, 3, 4])


def kernel_of(g: Graph, node: Node, weight: Operand, rank: int) -> list[Dim]:
    shape = g.shape(weight)
    invalid_if(
        len(shape) != rank or rank < 3,
        f"the filter (input 1) has {len(shape)} dimensions and the input {rank}; both need 3 or more",
    )
    refuse_if(rank > 5, f"the convolution is over {rank - 2} dimensions; 3 are the most")
    given = node.get("kernel_shape")
    is_open = any(isinstance(d, Extent) for d in shape[2:])
    invalid_if(
        given and not is_open and list(given) != shape[2:],
        f"kernel_shape is {given} and the filter's shape {shape}",
    )
    return shape[2:]


@reads("Conv")
def conv(g: Graph, node: Node) -> Operand:
    x, weight = node.x, node.operand(1)
    return convolution(g, node, x, weight, node.optional(2))


def convolution(g: Graph, node: Node, x: Operand, weight: Operand, bias: Operand | None) -> Operand:
    """With the attributes of Conv, on operands that may have been computed from the node's."""
    kernel = kernel_of(g, node, weight, g.rank(x))
    window = window_of(g, node, g.shape(x)[2:], kernel)
    return convolve(g, x, weight, bias, window, int(node.get("group", 1)))


# --- transposed -------------------------------------------------------------------------------------------


@reads("ConvTranspose")
def conv_transpose(g: Graph, node: Node) -> Operand:
    x, weight, bias = node.x, node.operand(1), node.optional(2)
    sizes = g.shape(x)[2:]
    kernel = kernel_of(g, node, weight, g.rank(x))
    added = [int(n) for n in node.get("output_padding") or [0] * len(kernel)]
    plain = replace_auto_pad(node)
    window = window_of(g, plain, sizes, kernel)
    wanted = node.get("output_shape")
    auto = node.get("auto_pad", "NOTSET") or "NOTSET"
    if wanted or auto.startswith("SAME"):
        extents = [int(n) for n in wanted][-len(kernel) :] if wanted else None
        window = _to_size(g, window, sizes, added, extents, auto)
    if len(kernel) == 3:
        return _transposed_volume(g, x, weight, bias, window, added, int(node.get("group", 1)))
    if len(kernel) == 1:
        x, weight, window, added = (
            with_height(g, x),
            with_height(g, weight),
            window.with_height(),
            [0, *added],
        )
    y = _transposed(g, x, weight, bias, window, added, int(node.get("group", 1)))
    return without_height(g, y) if len(kernel) == 1 else y


def replace_auto_pad(node: Node) -> Node:
    """SAME_* means another thing for transposed convolutions."""
    if str(node.get("auto_pad", "")).startswith("SAME"):
        return replace(
            node, attributes={k: v for k, v in node.attributes.items() if k not in ("auto_pad", "pads")}
        )
    return node


def _to_size(
    g: Graph, window: Window, sizes: list[Dim], added: list[int], wanted: list[int] | None, auto: str
) -> Window:
    """Padding by which the result has the wanted extents, or at most the input's times the strides.

    Half of it lies on each side; what cannot be halved lies before, with SAME_UPPER behind. Where the whole
    result is smaller than wanted, the rest is added behind.
    """
    before, after = [], []
    for i, size in enumerate(sizes):
        whole = window.strides[i] * (size - 1) + added[i] + window.reach[i]
        surplus = whole - (wanted[i] if wanted else size * window.strides[i])
        total = Extent.largest([surplus, 0])
        before.append(total // 2 if auto == "SAME_UPPER" else total - total // 2)
        after.append((surplus if wanted else total) - before[-1])
    return replace(window, before=before, after=after)


def _transposed(
    g: Graph, x: Operand, weight: Operand, bias: Operand | None, window: Window, added: list[int], groups: int
) -> Operand:
    options = {"strides": window.strides, "dilations": window.dilations, "groups": groups}
    fits = all(isinstance(n, int) and n >= 0 for n in window.before + window.after)
    if fits and all(a < s for a, s in zip(added, window.strides, strict=True)):
        return g.op(
            "conv_transpose2d", x, weight, bias, padding=window.padding, output_padding=added, **options
        )
    # The catalog's cannot: the whole result, then its edges by themselves, then the bias also there.
    y = g.op("conv_transpose2d", x, weight, None, **options)
    begin = [0, 0, *(-n for n in window.before)]
    y = with_margin(g, y, begin, [0, 0, *(a - n for a, n in zip(added, window.after, strict=True))])
    if bias is None:
        return y
    return g.op("add", y, g.reshape(bias, [g.shape(bias)[0], 1, 1]))


def _transposed_volume(
    g: Graph, x: Operand, weight: Operand, bias: Operand | None, window: Window, added: list[int], groups: int
) -> Operand:
    """A convolution of the volume set apart by zeros, with the filter backwards."""
    shape = g.shape(x)
    for i, stride in enumerate(window.strides):
        if stride > 1:
            axis = 2 + i
            x = g.reshape(x, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
            end = [0] * 6
            end[axis + 1] = stride - 1
            x = g.op("pad", x, beginning_padding=[0] * 6, ending_padding=end, mode="constant", value=0)
            shape[axis] *= stride
            x = g.reshape(x, shape)
            shape[axis] -= stride - 1
            x = g.cut(x, axis, 0, shape[axis])
    inner, outer, *kernel = g.shape(weight)
    weight = g.reshape(weight, [groups, inner // groups, outer, *kernel])
    weight = g.op("reverse", g.transpose(weight, [0, 2, 1, 3, 4, 5]), axes=[3, 4, 5])
    weight = g.reshape(weight, [groups * outer, inner // groups, *kernel])
    before = [r - 1 - n for r, n in zip(window.reach, window.before, strict=True)]
    after = [r - 1 - n + a for r, n, a in zip(window.reach, window.after, added, strict=True)]
    dense = replace(window, strides=[1] * 3, before=before, after=after)
    return convolve(g, x, weight, bias, dense, groups)
