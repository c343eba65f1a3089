"""Operators that move elements without changing them."""

from __future__ import annotations

from .registry import MOVED, Node, lowers
from .writer import Writer


@lowers("concat", through=MOVED)
def concat(w: Writer, n: Node) -> str:
    return w.node("Concat", n.inputs, axis=n.axis())


@lowers("expand", through=MOVED)
def expand(w: Writer, n: Node) -> str:
    return w.node("Expand", [n.x, w.extents(n.attributes["new_shape"])])


@lowers("reshape", through=MOVED)
def reshape(w: Writer, n: Node) -> str:
    return w.reshape(n.x, n.attributes["new_shape"])


@lowers("tile", through=MOVED)
def tile(w: Writer, n: Node) -> str:
    return w.node("Tile", [n.x, w.ints(n.attributes["repetitions"])])


@lowers("transpose")
def transpose(w: Writer, n: Node) -> str:
    rank = len(n.shape)
    permutation = n.attributes.get("permutation")
    if permutation is None:
        permutation = list(reversed(range(rank)))
    if not permutation:
        return w.node("Identity", [n.x])
    return w.node("Transpose", [n.x], perm=[p % rank for p in permutation])


@lowers("reverse", through=MOVED)
def reverse(w: Writer, n: Node) -> str:
    rank = len(n.shape)
    axes = n.attributes.get("axes")
    axes = list(range(rank)) if axes is None else [axis % rank for axis in axes]
    if not axes:
        return w.node("Identity", [n.x])
    ends = [-(2**63)] * len(axes)  # beyond the first element
    return w.node(
        "Slice", [n.x, w.ints([-1] * len(axes)), w.ints(ends), w.ints(axes), w.ints([-1] * len(axes))]
    )


@lowers("slice", through=MOVED)
def slice_(w: Writer, n: Node) -> str:
    starts, sizes = n.attributes["starts"], n.attributes["sizes"]
    if not starts:
        return w.node("Identity", [n.x])
    if all(isinstance(size, int) for size in sizes):
        ends = w.ints([start + size for start, size in zip(starts, sizes, strict=True)])
    else:
        ends = w.node("Add", [w.extents(sizes), w.ints(starts)])
    axes = w.ints(range(len(starts)))
    strides = n.attributes.get("strides")
    return w.node("Slice", [n.x, w.ints(starts), ends, axes, w.ints(strides) if strides else None])


@lowers("split", through=MOVED)
def split(w: Writer, n: Node) -> list[str]:
    splits = n.attributes["splits"]
    return w.multi("Split", [n.x, w.ints(splits)], len(splits), axis=n.axis())


_PAD_MODES = {"constant": "constant", "edge": "edge", "reflection": "reflect"}


@lowers("pad", through=MOVED)
def pad(w: Writer, n: Node) -> str:
    if not n.shape:
        return w.node("Identity", [n.x])
    pads = w.ints([*n.attributes["beginning_padding"], *n.attributes["ending_padding"]])
    mode = n.attributes["mode"]
    value = w.constant(_element(n.attributes["value"], n.dtype), n.dtype) if mode == "constant" else None
    return w.node("Pad", [n.x, pads, value], mode=_PAD_MODES[mode])


def _element(value: float, dtype: str) -> float:
    """A number as an element: integers wrap; real numbers saturate, and NaN becomes 0."""
    if dtype.startswith("float"):
        return value
    bits = int(dtype.lstrip("uint"))
    low = 0 if dtype.startswith("u") else -(2 ** (bits - 1))
    if isinstance(value, int):
        return (value - low) % 2**bits + low
    if value != value:
        return 0
    high = low + 2**bits - 1
    return low if value <= low else high if value >= high else int(value)


@lowers("triangular", through=MOVED)
def triangular(w: Writer, n: Node) -> str:
    """Trilu lacks a few dtypes, but a wider one moves the same bits."""
    upper, diagonal = n.attributes["upper"], n.attributes["diagonal"]
    if n.dtype in ("float32", "float16", "int32", "int64"):
        return w.node("Trilu", [n.x, w.constant(diagonal, "int64")], upper=int(upper))
    moved = {"uint64": "int64", "uint32": "int64", "int8": "int32", "uint8": "int32"}[n.dtype]
    kept = w.node("Trilu", [w.cast(n.x, moved), w.constant(diagonal, "int64")], upper=int(upper))
    return w.cast(kept, n.dtype)
