"""Gathering and scattering. WebNN clamps indices, ONNX has no rule for those outside."""

from __future__ import annotations

import numpy as np

from .registry import MOVED, Node, lowers
from .writer import Dim, Writer


def clamped(w: Writer, n: Node, i: int, extents: list[Dim]) -> str:
    """Index input i as int64 within [0, extent), one extent for all or one for each of the last dimension."""
    known = n.value(i)
    if known is not None and all(isinstance(extent, int) for extent in extents):
        sizes = np.asarray(extents, np.int64) if len(extents) > 1 else np.int64(extents[0])
        wide = known.astype(np.int64)
        return w.constant(np.clip(np.where(wide < 0, wide + sizes, wide), 0, sizes - 1), "int64")
    indices = n.inputs[i]
    if n.dtypes[i] != "int64":
        indices = w.cast(indices, "int64")
    size = w.extents(extents)
    if len(extents) == 1:
        size = w.squeeze(size, [0])
    zero = w.constant(0, "int64")
    from_front = w.where(w.node("Less", [indices, zero]), w.node("Add", [indices, size]), indices)
    last = w.node("Sub", [size, w.constant(1, "int64")])
    return w.node("Min", [w.node("Max", [from_front, zero]), last])


@lowers("checked_indices")
def checked_indices(w: Writer, n: Node) -> str:
    """The indices: a run that would fail here is not told from others in ONNX."""
    return w.node("Identity", [n.x])


@lowers("gather", through=MOVED)
def gather(w: Writer, n: Node) -> str:
    axis = n.axis()
    return w.node("Gather", [n.x, clamped(w, n, 1, [n.shape[axis]])], axis=axis)


@lowers("gather_elements", through=MOVED)
def gather_elements(w: Writer, n: Node) -> str:
    axis = n.axis()
    return w.node("GatherElements", [n.x, clamped(w, n, 1, [n.shape[axis]])], axis=axis)


def _tuple_extents(n: Node) -> list[Dim]:
    assert n.shapes[1] is not None
    depth = n.fixed(n.shapes[1][-1], "the last extent of indices")
    return list(n.shape[:depth])


@lowers("gather_nd", through=MOVED)
def gather_nd(w: Writer, n: Node) -> str:
    return w.node("GatherND", [n.x, clamped(w, n, 1, _tuple_extents(n))])


@lowers("scatter_elements", through=MOVED)
def scatter_elements(w: Writer, n: Node) -> str:
    axis = n.axis()
    return w.node("ScatterElements", [n.x, clamped(w, n, 1, [n.shape[axis]]), n.inputs[2]], axis=axis)


@lowers("scatter_nd", through=MOVED)
def scatter_nd(w: Writer, n: Node) -> str:
    return w.node("ScatterND", [n.x, clamped(w, n, 1, _tuple_extents(n)), n.inputs[2]])
