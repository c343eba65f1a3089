"""Slices, also of extents that are known only at run time."""

from __future__ import annotations

from ..graph import Dim, Extent, Graph, Operand, is_same
from ..ratios import at_least_0, either, is_short, less
from ..registry import Node, axes_of, invalid_if, reads

_FAR = 2**31 - 1  # from there on a place means "as far as there are elements"


@reads("Slice")
def slice_(g: Graph, node: Node) -> Operand:
    x = node.x
    if "starts" in node.attributes:
        starts, ends = list(node.get("starts")), list(node.get("ends"))
        axes, steps = node.get("axes") or list(range(len(starts))), [1] * len(starts)
    else:
        starts, ends = node.dims(1, "the starts"), node.dims(2, "the ends")
        axes = node.integers(3, "the axes") if node.optional(3) else list(range(len(starts)))
        steps = node.integers(4, "the steps") if node.optional(4) else [1] * len(starts)
    numbers = [len(part) for part in (starts, ends, axes, steps)]
    invalid_if(
        len(set(numbers)) != 1, f"starts, ends, axes and steps have {numbers} numbers; as many are needed"
    )
    for axis, start, end, step in zip(axes_of(axes, g.rank(x)), starts, ends, steps, strict=True):
        invalid_if(step == 0, f"the step along axis {axis} is 0")
        x = part(g, x, axis, start, end, step)
    return x if x is not node.x else g.op("identity", x)


def part(g: Graph, x: Operand, axis: int, start: Dim, end: Dim | None, step: int) -> Operand:
    """x[start:end:step] along an axis, as NumPy has it."""
    extent = g.shape(x)[axis]
    if not any(isinstance(d, Extent) for d in (extent, start, end)):
        return _of_numbers(g, x, axis, range(*slice(start, end, step).indices(extent)))
    if step < 0:  # element i is at extent - 1 - i of the reversed order
        x = g.op("reverse", x, axes=[axis])
        first = _clamped(extent - 1 - _from_the_front(start, extent), extent)
        last = extent if end is None else _clamped(extent - 1 - _from_the_front(end, extent), extent)
    else:
        first = _clamped(_from_the_front(start, extent), extent)
        last = extent if end is None else _clamped(_from_the_front(end, extent), extent)
    count = at_least_0(last - first)
    return g.cut(x, axis, 0 if is_same(count, 0) else first, count, min(abs(step), _FAR))


def _of_numbers(g: Graph, x: Operand, axis: int, places: range) -> Operand:
    """The elements at places that are all within the extent."""
    if len(places) < 2:
        return g.cut(x, axis, places[0] if places else 0, len(places))
    low, high = min(places[0], places[-1]), max(places[0], places[-1])
    x = g.cut(x, axis, low, high - low + 1, abs(places.step))
    return x if places.step > 0 else g.op("reverse", x, axes=[axis])


def _from_the_front(place: Dim, extent: Dim) -> Dim:
    """Negative places are counted from the end; far ones stay far."""
    if isinstance(place, int) and abs(place) >= _FAR:
        return -_FAR if place < 0 else extent + _FAR
    is_negative = less(place, 0)
    if isinstance(is_negative, Extent) and not is_short(place, extent):
        return place
    return either(is_negative, place + extent, place)


def _clamped(place: Dim, extent: Dim) -> Dim:
    """Within [0, extent]; believed to lie there where that is open and long to say. A run shows it."""
    lower = Extent.smallest([place, extent])
    if isinstance(lower, Extent) and not is_short(place, extent):
        lower = extent if is_same(lower, extent) else place
    return at_least_0(lower)
