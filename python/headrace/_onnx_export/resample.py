"""Resizing of images. Output o lies at (o + 1/2) * input / output - 1/2 of the input."""

from __future__ import annotations

import numpy as np

from .registry import Node, lowers
from .writer import Writer


def _nearest_indices(source: int, target: int) -> np.ndarray:
    """The lower of two equally near elements, without rounding errors: ceil(x - 1/2)."""
    numerators = (2 * np.arange(target, dtype=object) + 1) * source - 2 * target
    return np.array([min(max(-(-int(v) // (2 * target)), 0), source - 1) for v in numerators], np.int64)


def _linear_taps(source: int, target: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The elements below and above each output, and the weight of the one above."""
    x = np.clip((np.arange(target) + 0.5) * (source / target) - 0.5, 0, source - 1)
    low = x.astype(np.int64)
    return low, np.minimum(low + 1, source - 1), x - low


@lowers("resample2d")
def resample2d(w: Writer, n: Node) -> str:
    given = n.attributes["axes"]
    changed = [i for i, axis in enumerate(given) if n.shape[axis % 4] != n.out_shapes[0][axis % 4]]
    if not changed:
        return w.node("Identity", [n.x])
    axes = {given[i] % 4: _Extents(w, n, i) for i in changed}
    if n.attributes["mode"] == "nearest-neighbor":
        # Resize computes positions in float32 and may hit the other of two near elements.
        x = n.x
        for axis, extents in axes.items():
            x = w.node("Gather", [x, extents.nearest(w)], axis=axis)
        return x
    if n.dtype == "float32" and set(axes) <= {2, 3}:
        sizes = w.node("Concat", [extents.target_size for extents in axes.values()], axis=0)
        return w.node("Resize", [n.x, None, None, sizes], mode="linear", axes=list(axes))
    return _linear(w, n, axes)


class _Extents:
    """The input's and output's extent of one axis, known or computed at run time."""

    def __init__(self, w: Writer, n: Node, i: int) -> None:
        a = n.attributes
        axis = a["axes"][i] % 4
        self.source, self.target = n.shape[axis], n.out_shapes[0][axis]
        self.known = isinstance(self.source, int) and isinstance(self.target, int)
        self.source_size = w.extent(self.source)
        if isinstance(self.target, int) or "sizes" in a:
            self.target_size = w.extent(self.target)
        else:
            scaled = w.node(
                "Mul", [w.cast(self.source_size, "float64"), w.constant(a["scales"][i], "float64")]
            )
            self.target_size = w.cast(w.node("Floor", [scaled]), "int64")

    def _outputs(self, w: Writer) -> str:
        ends = [w.constant(0, "int64"), w.squeeze(self.target_size, [0]), w.constant(1, "int64")]
        return w.node("Range", ends)

    def nearest(self, w: Writer) -> str:
        """For each output the element that it copies."""
        if self.known:
            return w.constant(_nearest_indices(self.source, self.target), "int64")
        zero, one, two = (w.constant(v, "int64") for v in (0, 1, 2))
        denominator = w.node("Mul", [two, self.target_size])
        odd = w.node("Add", [w.node("Mul", [two, self._outputs(w)]), one])
        numerator = w.node("Sub", [w.node("Mul", [odd, self.source_size]), denominator])
        rounded = w.node("Add", [w.node("Max", [numerator, zero]), w.node("Sub", [denominator, one])])
        last = w.node("Sub", [self.source_size, one])
        return w.node("Min", [w.node("Div", [rounded, denominator]), last])

    def linear(self, w: Writer, shape: list[int]) -> tuple[str, str, str, str]:
        """Below and above each output: the elements and their shares, the latter in `shape`."""
        if self.known:
            low, high, share = _linear_taps(self.source, self.target)
            shares = [w.constant(v.reshape(shape), "float64") for v in (1 - share, share)]
            return w.constant(low, "int64"), w.constant(high, "int64"), shares[0], shares[1]
        source, target = (w.cast(v, "float64") for v in (self.source_size, self.target_size))
        half, one = w.constant(0.5, "float64"), w.constant(1, "int64")
        centers = w.node("Add", [w.cast(self._outputs(w), "float64"), half])
        x = w.node("Sub", [w.node("Mul", [centers, w.node("Div", [source, target])]), half])
        last = w.node("Sub", [self.source_size, one])
        x = w.node("Min", [w.node("Max", [x, w.constant(0, "float64")]), w.cast(last, "float64")])
        low_index = w.cast(x, "int64")
        high_index = w.node("Min", [w.node("Add", [low_index, one]), last])
        upper = w.reshape(w.node("Sub", [x, w.cast(low_index, "float64")]), shape)
        return low_index, high_index, w.node("Sub", [w.constant(1, "float64"), upper]), upper


def _linear(w: Writer, n: Node, axes: dict[int, _Extents]) -> str:
    """In float64, horizontally first: integers come out rounded as by our own kernel."""
    x = w.cast(n.x, "float64")
    for axis, extents in sorted(axes.items(), reverse=True):
        low, high, lower, upper = extents.linear(w, [-1] + [1] * (3 - axis))
        parts = [
            w.node("Mul", [w.node("Gather", [x, at], axis=axis), share])
            for at, share in ((low, lower), (high, upper))
        ]
        x = w.node("Add", parts)
    if n.dtype.startswith("float"):
        return w.cast(w.cast(x, "float32"), n.dtype) if n.dtype == "float16" else w.cast(x, n.dtype)
    return w.cast(w.node("Round", [x]), n.dtype)
