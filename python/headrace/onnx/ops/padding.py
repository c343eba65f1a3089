"""Elements around a tensor, or less of it."""

from __future__ import annotations

from ..graph import Dim, Extent, Graph, Operand, is_same, known
from ..numbers import Numbers, counted_from_front, distinct, is_known
from ..registry import Node, axes_of, invalid_if, reads

_PAD_MODES = {"constant": "constant", "edge": "edge", "reflect": "reflection"}


@reads("Pad")
def pad(g: Graph, node: Node) -> Operand:
    """Negative amounts take elements away; mode wrap repeats the input."""
    x = node.x
    if not all(is_known(operand) for operand in node.inputs[1:]):
        return _padded_as_told(g, node)
    if "pads" in node.attributes:
        amounts: list[Dim] = [int(n) for n in node.get("pads")]
    else:
        invalid_if(
            node.optional(1) is None,
            "the amounts are missing (attribute pads, or input 1 from operator set 11 on)",
        )
        amounts = node.dims(1, "the amounts")
    rank = g.rank(x)
    axes = axes_of(node.integers(3, "the axes") if node.optional(3) else range(rank), rank)
    invalid_if(len(amounts) != 2 * len(axes), f"pads has {len(amounts)} amounts for {len(axes)} axes")
    begin: list[Dim] = [0] * rank
    end: list[Dim] = [0] * rank
    for i, axis in enumerate(axes):
        begin[axis], end[axis] = amounts[i], amounts[i + len(axes)]
    mode = node.get("mode", "constant")
    invalid_if(
        mode not in (*_PAD_MODES, "wrap"),
        f"mode is '{mode}'; {', '.join(_PAD_MODES)} and wrap are ONNX's",
    )
    value: int | float = 0
    if mode == "constant":
        has_input = node.optional(2) is not None
        value = node.number(2, "the value") if has_input else node.get("value", 0)
    return with_margin(g, x, begin, end, mode, int(value) if isinstance(value, bool) else value)


def _padded_as_told(g: Graph, node: Node) -> Operand:
    """By amounts, axes or with a value that are known only at run time."""
    x, sizes, mode = node.x, g.shape(node.x), node.get("mode", "constant")
    rank = len(sizes)
    invalid_if(
        mode not in (*_PAD_MODES, "wrap"), f"mode is '{mode}'; {', '.join(_PAD_MODES)} and wrap are ONNX's"
    )
    amounts, axes = Numbers(g, node.operand(1)), node.optional(3)
    count = rank if axes is None else g.fixed(g.size(axes), "the number of axes")
    given = g.shape(amounts.x)
    invalid_if(given != [2 * count], f"pads has the shape {given}; {count} axes need {2 * count} amounts")
    begin, end = amounts.at(list(range(count))), amounts.at(list(range(count, 2 * count)))
    if axes is not None:
        places = distinct(counted_from_front(Numbers(g, axes), rank))
        begin, end = (Numbers(g, [0] * rank).with_at(places, side) for side in (begin, end))
    value = node.optional(2)
    value = known(0, x.dtype) if value is None else g.reshape(g.cast(value, x.dtype), [])
    # What is taken away is so first; the rest is continued.
    cut = (0 - begin).at_least(0)
    left = Numbers(g, sizes) - cut - (0 - end).at_least(0)
    for axis, size in enumerate((begin + end + sizes).extents()):
        own, first = left.at([axis]), cut.at([axis])
        place = Numbers(g, g.positions(size)) - begin.at([axis]).at_least(0)
        source = _continued(place, own, mode).at_most(own - 1).at_least(0)
        x = g.op("gather", x, (source + first).x, axis=axis)
        if mode == "constant":
            is_outside = (place < 0).either(place >= own)
            x = g.op("where", g.add_axes(is_outside.x, rank - 1 - axis), value, x)
    return x


def _continued(place: Numbers, extent: Numbers, mode: str) -> Numbers:
    """Which element lies at a place before the first or behind the last."""
    if mode == "wrap":
        return place % extent
    if mode == "reflect":
        period = (extent - 1) * 2
        rest = place % period
        return (rest < extent).choose(rest, period - rest)
    return place


def with_margin(
    g: Graph, x: Operand, begin: list[Dim], end: list[Dim], mode: str = "constant", value: float = 0
) -> Operand:
    """Negative amounts take elements away."""
    before, after = ([_positive(n) for n in amounts] for amounts in (begin, end))
    parts = list(zip(g.shape(x), begin, end, strict=True))
    left = [
        own + first - one + last - other
        for (own, first, last), one, other in zip(parts, before, after, strict=True)
    ]
    whole = [own + first + last for own, first, last in parts]
    if any(is_same(n, 0) for n in whole) or (
        mode == "constant" and any(isinstance(n, int) and n < 1 for n in left)
    ):
        return g.filled(value, x.dtype, whole)  # of the elements none is left
    for axis, (own, first, last) in enumerate(parts):
        cut = [_positive(n) - n for n in (first, last)]
        if not all(is_same(n, 0) for n in cut):
            x = g.cut(x, axis, cut[0], own - cut[0] - cut[1])
    if all(is_same(n, 0) for n in (*before, *after)):
        return g.op("identity", x)
    if mode == "wrap":
        return _wrapped(g, x, before, after)
    options = {"value": value} if mode == "constant" else {}
    return g.op("pad", x, beginning_padding=before, ending_padding=after, mode=_PAD_MODES[mode], **options)


def _positive(amount: Dim) -> Dim:
    """What is added; the rest of an amount is taken away, so that the sum is as short as the amount is."""
    return Extent.largest([0, amount])


def _wrapped(g: Graph, x: Operand, begin: list[Dim], end: list[Dim]) -> Operand:
    for axis, (before, after) in enumerate(zip(begin, end, strict=True)):
        if is_same(before, 0) and is_same(after, 0):
            continue
        extent = g.shape(x)[axis]
        invalid_if(is_same(extent, 0), f"mode is wrap, and extent {axis} is 0, with nothing to continue")
        if not any(isinstance(d, Extent) for d in (before, extent, after)):
            places = known((g.numbered(before + extent + after) - before) % extent, "i64")
        else:  # the remainder of what is moved into the positive ones
            moved = g.plus(g.positions(before + extent + after), extent * before - before)
            places = g.op("remainder", moved, g.at_run_time(extent, "i64"))
        x = g.op("gather", x, places, axis=axis)
    return x
