"""Slices, also of extents that are known only at run time."""

from __future__ import annotations

from ..graph import Dim, Extent, Graph, Operand, is_same
from ..numbers import Numbers, counted_from_front, distinct, is_known
from ..ratios import at_least_0, either, is_short, less
from ..registry import Node, axes_of, invalid_if, reads

_FAR = 2**31 - 1  # from there on a place means "as far as there are elements"


@reads("Slice")
def slice_(g: Graph, node: Node) -> Operand:
    x = node.x
    if "starts" in node.attributes:
        starts, ends = list(node.get("starts")), list(node.get("ends"))
        axes, steps = node.get("axes") or list(range(len(starts))), [1] * len(starts)
    elif not all(is_known(operand) for operand in node.inputs[1:]) or _is_open(node.optional(4)):
        return _as_told(g, node)
    else:
        starts, ends = node.dims(1, "the starts"), node.dims(2, "the ends")
        axes = node.integers(3, "the axes") if node.optional(3) else list(range(len(starts)))
        steps = node.integers(4, "the steps") if node.optional(4) else [1] * len(starts)
    numbers = [len(part) for part in (starts, ends, axes, steps)]
    invalid_if(
        len(set(numbers)) != 1, f"starts, ends, axes and steps have {numbers} numbers; as many are needed"
    )
    axes = axes_of(axes, g.rank(x))
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        invalid_if(step == 0, f"the step along axis {axis} is 0")
        x = part(g, x, axis, start, end, step)
    return x if x is not node.x else g.op("identity", x)


def _is_open(steps: Operand | None) -> bool:
    """Whether they follow from open dimensions: how many elements there are is counted in the run then."""
    return steps is not None and any(isinstance(step, Extent) for step in steps.array.flat)


def _as_told(g: Graph, node: Node) -> Operand:
    """Of places that are known only at run time."""
    x, sizes = node.x, g.shape(node.x)
    shape = g.shape(node.operand(1))
    invalid_if(len(shape) != 1, f"the starts (input 1) have the shape {shape}; they are a list")
    count = g.fixed(shape[0], "the number of axes")
    starts, ends = Numbers(g, node.operand(1)), Numbers(g, node.operand(2))
    steps = Numbers(g, node.optional(4) or [1] * count)
    axes = node.optional(3)
    if axes is None or is_known(axes):
        chosen = axes_of(node.integers(3, "the axes") if axes else range(count), len(sizes))
        extent = Numbers(g, [sizes[axis] for axis in chosen])
    else:
        chosen, extent = list(range(len(sizes))), Numbers(g, sizes)
        places = distinct(counted_from_front(Numbers(g, axes), len(sizes)))
        starts = Numbers(g, [0] * len(sizes)).with_at(places, starts)
        ends = Numbers(g, sizes).with_at(places, ends)
        steps = Numbers(g, [1] * len(sizes)).with_at(places, steps)
    if not chosen:
        return g.op("identity", x)
    is_down = steps < 0
    low, high = is_down.choose(-1, 0), is_down.choose(extent - 1, extent)
    starts, ends = ((place < 0).choose(place + extent, place) for place in (starts, ends))
    first, last = starts.at_least(0).at_most(high), ends.at_least(low).at_most(high)
    stride = is_down.choose(0 - steps, steps).at_most(2**60)
    if node.optional(4) is not None:
        stride = stride.checked("the distance of a step", 1)
    counts = (is_down.choose(first - last, last - first) + stride - 1) // stride
    counts = counts.at_least(0)
    if node.optional(4) is None:
        extents = Numbers(g, g.concat([first.x, counts.x], 0)).extents()
        for axis, start, size in zip(chosen, extents[: len(chosen)], extents[len(chosen) :], strict=True):
            x = g.cut(x, axis, start, size)
        return x
    for i, (axis, size) in enumerate(zip(chosen, counts.extents(), strict=True)):
        places = Numbers(g, g.positions(size)) * steps.at([i]) + first.at([i])
        x = g.op("gather", x, places.x, axis=axis)
    return x


def part(g: Graph, x: Operand, axis: int, start: Dim, end: Dim | None, step: int) -> Operand:
    """x[start:end:step] along an axis as NumPy has it, but a start before the first element is that."""
    extent = g.shape(x)[axis]
    if not any(isinstance(d, Extent) for d in (extent, start, end)):
        start = max(start, -extent) if extent else start
        return _of_numbers(g, x, axis, range(*slice(start, end, step).indices(extent)))
    if step < 0:  # element i is at extent - 1 - i of the reversed order
        x = g.op("reverse", x, axes=[axis])
        first = _clamped(extent - 1 - _from_the_front(start, extent), extent - 1)
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


def _clamped(place: Dim, most: Dim) -> Dim:
    """Within [0, most]; believed to lie there where that is open and long to say. A run shows it."""
    lower = Extent.smallest([place, most])
    if isinstance(lower, Extent) and not is_short(place, most):
        lower = most if is_same(lower, most) else place
    return at_least_0(lower)
