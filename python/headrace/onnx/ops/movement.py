"""Operators that only move elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Dim, Extent, Graph, Operand, is_same, known, product
from ..numbers import Numbers, axes_told, dims, extents_among, is_known, others
from ..polynomials import exact_quotient
from ..ratios import divided_up, is_short
from ..registry import Invalid, Node, axes_of, invalid_if, reads, shortened
from ..told import Told, is_told


@reads("Reshape")
def reshape(g: Graph, node: Node) -> Operand:
    """0 keeps an extent, -1 stands for what is left."""
    if not is_known(node.operand(1)):
        return _reshaped_as_told(g, node)
    own, wanted = g.shape(node.x), node.dims(1, "the shape")
    if not node.get("allowzero", 0):
        for i, d in enumerate(wanted):
            if isinstance(d, int) and d == 0:
                invalid_if(
                    i >= len(own), f"the shape (input 1) {wanted} keeps extent {i} of {own}, which has none"
                )
                wanted[i] = own[i]
    open_ = [i for i, d in enumerate(wanted) if isinstance(d, int) and d == -1]
    invalid_if(len(open_) > 1, f"the shape (input 1) {wanted} has -1 more than once")
    invalid_if(
        any(isinstance(d, int) and d < -1 for d in wanted),
        f"the shape (input 1) is {shortened(wanted)}; extents are at least -1",
    )
    if open_:
        wanted[open_[0]] = _left_over(own, [d for i, d in enumerate(wanted) if i != open_[0]])
    return g.reshape(node.x, wanted)


def _left_over(own: list[Dim], others: list[Dim]) -> Dim:
    """What the others leave of the elements; extents that both have cancel out."""
    left, divisors = list(own), []
    for d in others:
        same = next((i for i, other in enumerate(left) if is_same(d, other)), None)
        if same is None or is_same(d, 0):
            divisors.append(d)
        else:
            del left[same]
    return _quotient(product(left), product(divisors))


def _reshaped_as_told(g: Graph, node: Node) -> Operand:
    """To a shape that is known only at run time."""
    own, wanted = g.shape(node.x), Numbers(g, node.operand(1))
    rank = g.shape(node.operand(1))
    invalid_if(len(rank) != 1, f"the shape (input 1) has the shape {rank}; it is a list")
    count = g.fixed(rank[0], "the number of dimensions of the result")
    if count == 0:
        return g.reshape(node.x, [])
    if not node.get("allowzero", 0):
        kept = Numbers(g, [*own, *[0] * count][:count])
        wanted = wanted.equals(0).choose(kept, wanted)
    is_left = wanted.equals(-1)
    rest = is_left.choose(1, wanted).reduced("product")
    whole = is_left.choose(Numbers(g, product(own)) // rest, wanted)
    elements = _elements(node.operand(1), count)
    sure = [d if isinstance(d, Extent) or (isinstance(d, int) and d > 0) else None for d in elements]
    return g.reshape(node.x, extents_among(g, whole, sure))


def _elements(x: Operand, count: int) -> list[Any]:
    """Of a list of which a run tells some."""
    return list(x.array) if x.array is not None else [None] * count


def _quotient(total: Dim, rest: Dim) -> Dim:
    """Open extents are checked when they are known, as all that Reshape takes."""
    if isinstance(rest, int) and rest == 0:
        return 0
    if isinstance(total, int) and isinstance(rest, int):
        invalid_if(total % rest, f"{total} elements do not divide by {rest}, the other extents' product")
    exact = exact_quotient(total, rest)
    return total // rest if exact is None else exact


@reads("Flatten")
def flatten(g: Graph, node: Node) -> Operand:
    sizes = g.shape(node.x)
    axis = node.get("axis", 1)
    invalid_if(not -len(sizes) <= axis <= len(sizes), f"axis {axis} is outside the dimensions of {sizes}")
    axis = axis + len(sizes) if axis < 0 else axis
    return g.reshape(node.x, [product(sizes[:axis]), product(sizes[axis:])])


@reads("Squeeze")
def squeeze(g: Graph, node: Node) -> Operand:
    sizes = g.shape(node.x)
    if not is_known(node.optional(1)):
        return _squeezed_as_told(g, node.x, node.operand(1))
    axes = node.list_at("axes", 1, "the axes")
    if axes is None:
        axes = [i for i, d in enumerate(sizes) if is_same(d, 1)]
    axes = axes_of(axes, len(sizes))
    for axis in axes:
        is_open = isinstance(sizes[axis], Extent)  # then Reshape says so when it is another number
        invalid_if(
            not is_open and sizes[axis] != 1, f"extent {axis} of {sizes} is to be dropped, and is not 1"
        )
    return g.reshape(node.x, [d for i, d in enumerate(sizes) if i not in axes])


def _told_axes(g: Graph, x: Operand) -> int:
    sizes = g.shape(x)
    invalid_if(len(sizes) > 1, f"the axes have the shape {sizes}; they are a list")
    return g.fixed(product(sizes), "the number of axes")


def _squeezed_as_told(g: Graph, x: Operand, axes: Operand) -> Operand:
    sizes = g.shape(x)
    count = _told_axes(g, axes)
    if count == 0:
        return g.op("identity", x)
    left = len(sizes) - count
    invalid_if(left < 0, f"{count} axes of {len(sizes)} dimensions are to be dropped")
    if left == 0:
        return g.reshape(x, [])
    kept = others(g, axes_told(g, axes, len(sizes)), len(sizes), left)
    return g.reshape(x, Numbers(g, sizes).at(kept).extents())


def _unsqueezed_as_told(g: Graph, x: Operand, axes: Operand) -> Operand:
    sizes = g.shape(x)
    count = _told_axes(g, axes)
    rank = len(sizes) + count
    is_new = axes_told(g, axes, rank)
    # A dimension that is kept has as many kept ones before it as its place in the input says.
    before = Numbers(g, g.op("cumulative_sum", is_new.choose(0, 1).x, axis=0, exclusive=True))
    return g.reshape(x, is_new.choose(1, Numbers(g, [*sizes, 1]).at(before)).extents())


@reads("Unsqueeze")
def unsqueeze(g: Graph, node: Node) -> Operand:
    sizes = g.shape(node.x)
    if not is_known(node.optional(1)):
        return _unsqueezed_as_told(g, node.x, node.operand(1))
    axes = node.list_at("axes", 1, "the axes")
    invalid_if(axes is None, "the axes are missing (attribute axes, or input 1 from operator set 13 on)")
    rank = len(sizes) + len(axes)
    axes = axes_of(axes, rank)
    rest = iter(sizes)
    return g.reshape(node.x, [1 if i in axes else next(rest) for i in range(rank)])


@reads("Transpose")
def transpose(g: Graph, node: Node) -> Operand:
    rank = g.rank(node.x)
    order = [int(i) for i in node.get("perm") or range(rank)[::-1]]
    invalid_if(
        sorted(order) != list(range(rank)), f"perm is {shortened(order)}; it has each of 0 to {rank - 1} once"
    )
    return g.transpose(node.x, order)


@reads("Concat")
def concat(g: Graph, node: Node) -> Operand:
    parts = [x for x in (node.operand(i) for i in range(len(node.inputs)))]
    axis = g.axis(parts[0], node.get("axis", 0))
    ranks = {g.rank(part) for part in parts}
    invalid_if(
        len(ranks) != 1 or ranks == {0},
        f"the inputs have {sorted(ranks)} dimensions; they must have the same number, 1 or more",
    )
    listed = _listed(g, parts)
    if listed is not None:
        return listed
    filled = [x for x in parts if not is_same(g.shape(x)[axis], 0)]
    return g.concat(filled or parts[:1], axis)


_MOST_LISTED = 64


def _listed(g: Graph, parts: list[Operand]) -> Operand | None:
    """A list of few integers of which some are known: the shapes that are made of them are known as far."""
    sizes = [g.shape(x) for x in parts]
    is_small = all(len(s) == 1 and isinstance(s[0], int) and s[0] <= _MOST_LISTED for s in sizes)
    if not is_small or parts[0].dtype not in ("i32", "i64") or all(is_told(x.array) for x in parts):
        return None
    elements: list[Any] = []
    for x, (count,) in zip(parts, sizes, strict=True):
        if x.array is not None:
            elements.extend(x.array)
        else:
            elements.extend(Told(x if count == 1 else g.cut(x, 0, i, 1)) for i in range(count))
    array = np.empty(len(elements), object)
    array[:] = [d if isinstance(d, (Extent, Told)) else int(d) for d in elements]
    return known(array, parts[0].dtype)


@reads("Split")
def split(g: Graph, node: Node) -> list[Operand]:
    """Into parts of given sizes, or as many equal ones as there are outputs; the last may be smaller."""
    x, count = node.x, len(node.outputs)
    given = node.get("num_outputs", count)
    invalid_if(given != count or not count, f"num_outputs is {given} and there are {count} outputs")
    axis = g.axis(x, node.get("axis", 0))
    extent = g.shape(x)[axis]
    if "split" in node.attributes:
        sizes: list[Dim] | None = [int(n) for n in node.get("split")]
    else:
        sizes = None if node.optional(1) is None else dims(g, node, 1, "the parts' sizes")
    if sizes is None:
        each = divided_up(extent, count)
        sizes = [each] * (count - 1) + [extent - each * (count - 1)]
    is_open = any(isinstance(d, Extent) for d in (extent, *sizes))
    invalid_if(
        len(sizes) != count or (not is_open and (sum(sizes) != extent or min(sizes) < 0)),
        f"parts of {shortened(sizes)} do not add up to {extent}, extent {axis} of the input",
    )
    return g.ops("split", [x], splits=sizes, axis=axis)


@reads("Expand")
def expand(g: Graph, node: Node) -> Operand:
    """To the shape that both broadcast to."""
    if not is_known(node.operand(1)):
        return _expanded_as_told(g, node.x, node.operand(1))
    return g.expand(node.x, broadcast(g, g.shape(node.x), node.dims(1, "the shape")))


def _expanded_as_told(g: Graph, x: Operand, shape: Operand) -> Operand:
    count = g.fixed(product(g.shape(shape)), "the number of dimensions of the result")
    rank = max(count, g.rank(x))
    if rank == 0:
        return x
    own = [*[1] * (rank - g.rank(x)), *g.shape(x)]
    elements = [*[1] * (rank - count), *_elements(shape, count)]
    wanted = g.reshape(g.cast(shape, "i64"), [count])
    wanted = Numbers(g, g.concat([known([1] * (rank - count), "i64"), wanted], 0) if rank > count else wanted)
    whole = wanted.equals(1).choose(Numbers(g, own), wanted)
    sure = [_joint(d, d_own) for d, d_own in zip(elements, own, strict=True)]
    return g.expand(x, extents_among(g, whole, sure))


def _joint(wanted: Any, own: Dim) -> Any:
    """What both broadcast to, where that is sure."""
    if is_same(own, 1):
        return wanted
    if isinstance(wanted, int):
        return own if wanted == 1 else wanted
    return None


def broadcast(g: Graph, a: list[Dim], b: list[Dim]) -> list[Dim]:
    rank = max(len(a), len(b))
    a, b = [1] * (rank - len(a)) + a, [1] * (rank - len(b)) + b
    joint = []
    for one, other in zip(a, b, strict=True):
        if is_same(one, 1) or is_same(one, other):
            joint.append(other)
        elif is_same(other, 1):
            joint.append(one)
        elif not is_short(one, other):
            joint.append(other if isinstance(one, Extent) else one)
        elif isinstance(one, Extent) and isinstance(other, Extent):
            joint.append(Extent.largest([one, other]) * Extent.smallest([one, other, 1]))
        elif isinstance(one, Extent) or isinstance(other, Extent):
            joint.append(other if isinstance(one, Extent) else one)
        else:
            raise Invalid(f"the shapes {a} and {b} do not broadcast")
    return joint


@reads("Tile")
def tile(g: Graph, node: Node) -> Operand:
    return g.op("tile", node.x, repetitions=dims(g, node, 1, "the repetitions"))


def _blocks(node: Node) -> tuple[int, str]:
    mode = node.get("mode", "DCR")
    invalid_if(mode not in ("DCR", "CRD"), f"mode is '{mode}'; it must be DCR or CRD")
    return int(node.get("blocksize")), mode


@reads("DepthToSpace")
def depth_to_space(g: Graph, node: Node) -> Operand:
    """[n, c b b, h, w] as [n, c, h b, w b]; the blocks are before the channels, or after them in mode CRD."""
    b, mode = _blocks(node)
    n, c, h, w = g.shape(node.x)
    invalid_if(
        b < 1 or (not isinstance(c, Extent) and c % (b * b)),
        f"blocksize is {b}, and {c} channels do not divide into blocks of {b} x {b}",
    )
    if mode == "DCR":
        x = g.transpose(g.reshape(node.x, [n, b, b, c // (b * b), h, w]), [0, 3, 4, 1, 5, 2])
    else:
        x = g.transpose(g.reshape(node.x, [n, c // (b * b), b, b, h, w]), [0, 1, 4, 2, 5, 3])
    return g.reshape(x, [n, c // (b * b), h * b, w * b])


@reads("SpaceToDepth")
def space_to_depth(g: Graph, node: Node) -> Operand:
    """The inverse of DepthToSpace in the same mode."""
    b, mode = _blocks(node)
    n, c, h, w = g.shape(node.x)
    is_open = isinstance(h, Extent) or isinstance(w, Extent)  # then Reshape says what does not divide
    invalid_if(
        b < 1 or (not is_open and (h % b or w % b)),
        f"blocksize is {b}, and the image of {h} x {w} does not divide into blocks of {b} x {b}",
    )
    order = [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4]
    x = g.transpose(g.reshape(node.x, [n, c, h // b, b, w // b, b]), order)
    return g.reshape(x, [n, c * b * b, h // b, w // b])


@reads("Trilu")
def trilu(g: Graph, node: Node) -> Operand:
    x, upper, diagonal = node.x, bool(node.get("upper", 1)), node.optional(1)
    if diagonal is None or (is_known(diagonal) and not isinstance(node.dims(1, "the diagonal")[0], Extent)):
        number = int(node.number(1, "the diagonal")) if diagonal else 0
        return g.op("triangular", x, upper=upper, diagonal=max(min(number, 2**31 - 1), -(2**31)))
    invalid_if(g.rank(x) < 2, f"the input has {g.rank(x)} dimensions; 2 are the least")
    rows, columns = g.shape(x)[-2:]
    row = Numbers(g, g.positions(rows)).shaped([rows, 1]) + Numbers(g, g.reshape(diagonal, []))
    column = Numbers(g, g.positions(columns)).shaped([1, columns])
    return g.op("where", (column >= row if upper else row >= column).x, x, known(0, x.dtype))
