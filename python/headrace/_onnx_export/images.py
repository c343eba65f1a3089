"""Convolution and pooling of images, which ONNX wants with the channels first."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .linear_algebra import activated
from .registry import REAL, Node, lowers
from .writer import Shape, Writer

_TO_NCHW, _TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)


def spatial(shape: Shape, layout: str) -> Shape:
    """Height and width."""
    return shape[2:] if layout == "nchw" else shape[1:3]


def _onnx_pads(padding: list[int]) -> list[int]:
    """Top, bottom, left, right as ONNX's top, left, bottom, right."""
    top, bottom, left, right = padding
    return [top, left, bottom, right]


def _order(layout: str, wanted: str) -> list[int]:
    return [layout.index(letter) for letter in wanted]


def _convolution(w: Writer, n: Node) -> str:
    a = n.attributes
    nhwc = a["input_layout"] == "nhwc"
    x = w.transpose(n.x, _TO_NCHW) if nhwc else n.x
    filter_ = w.transpose(n.inputs[1], _order(a["filter_layout"], "oihw"))
    y = w.node(
        "Conv",
        [x, filter_, n.inputs[2]],
        pads=_onnx_pads(a["padding"]),
        strides=a["strides"],
        dilations=a["dilations"],
        group=a["groups"],
    )
    return w.transpose(y, _TO_NHWC) if nhwc else y


@lowers("conv2d", through=REAL, operands=3)
def conv2d(w: Writer, n: Node) -> str:
    return _convolution(w, n)


@lowers("fused_conv2d", through=REAL, operands=4)
def fused_conv2d(w: Writer, n: Node) -> str:
    """What low-power contexts, whose optimised graph is exported, make of a convolution."""
    a, residual = n.attributes, n.inputs[3]
    y = _convolution(w, n)
    if residual is not None and a["residual_first"]:
        y = w.node("Add", [y, residual])
    y = activated(w, y, a["activation"])
    for op, limit in (("Max", a.get("min_value")), ("Min", a.get("max_value"))):
        if limit is not None:
            y = w.node(op, [y, w.constant(limit, "float32")])
    return y if residual is None or a["residual_first"] else w.node("Add", [y, residual])


@lowers("conv_transpose2d", through=REAL, operands=3)
def conv_transpose2d(w: Writer, n: Node) -> str:
    a = n.attributes
    layout = a["input_layout"]
    x = w.transpose(n.x, _TO_NCHW) if layout == "nhwc" else n.x
    order = _order(a["filter_layout"], "iohw")
    added = a["output_padding"]
    if "output_sizes" in a:
        assert n.shapes[1] is not None
        sizes, kernel = spatial(n.shape, layout), [n.shapes[1][order[2]], n.shapes[1][order[3]]]
        added = [
            a["output_sizes"][i]
            - (
                (sizes[i] - 1) * a["strides"][i]
                + (kernel[i] - 1) * a["dilations"][i]
                + 1
                - sum(a["padding"][2 * i : 2 * i + 2])
            )
            for i in range(2)
        ]
    y = w.node(
        "ConvTranspose",
        [x, w.transpose(n.inputs[1], order), n.inputs[2]],
        pads=_onnx_pads(a["padding"]),
        strides=a["strides"],
        dilations=a["dilations"],
        output_padding=added,
        group=a["groups"],
    )
    return w.transpose(y, _TO_NHWC) if layout == "nhwc" else y


class _Pool:
    """The geometry of a pooling operation, with the image's axes first vertical, then horizontal."""

    def __init__(self, n: Node) -> None:
        a = n.attributes
        self.layout = a["layout"]
        sizes, outputs = spatial(n.shape, self.layout), spatial(n.out_shapes[0], self.layout)
        self.strides, self.dilations = a["strides"], a["dilations"]
        self.window = a.get("window_dimensions") or [n.fixed(size, "the image's extent") for size in sizes]
        self.begin, self.end = list(a["padding"][0::2]), list(a["padding"][1::2])
        self.outputs = outputs
        self.ceil = 0
        for i in range(2):
            if isinstance(sizes[i], int):
                # The padding behind that makes ONNX's rounding down give the wanted size.
                needed = (outputs[i] - 1) * self.strides[i] + self._reach(i) - sizes[i] - self.begin[i]
                self.end[i] = max(self.end[i], needed)
            elif a["output_shape_rounding"] == "ceil":
                self.ceil = 1
        # ONNX Runtime refuses margins as large as the window, even those of a Pad before, which it merges.
        self.by_slices = any(
            margin >= window for margin, window in zip(self.begin + self.end, self.window * 2, strict=True)
        )

    def _reach(self, i: int) -> int:
        return (self.window[i] - 1) * self.dilations[i] + 1

    def attributes(self) -> dict[str, object]:
        return {
            "kernel_shape": self.window,
            "strides": self.strides,
            # Left out where it says nothing: ONNX Runtime's own pool of bytes does not know it.
            "dilations": None if self.dilations == [1, 1] else self.dilations,
            "pads": self.begin + self.end,
            "ceil_mode": self.ceil,
        }

    def combine_slices(self, w: Writer, n: Node, x: str, onnx_op: str, margin: float, dtype: str) -> str:
        """Add or Max of shifted copies, first down, then across, after adding a margin."""
        if any(self.begin + self.end):
            pads = w.ints([0, 0, *self.begin, 0, 0, *self.end])
            x = w.node("Pad", [x, pads, w.constant(margin, dtype)])
        for i in range(2):
            count = n.fixed(self.outputs[i], "the output's extent")
            reach = (count - 1) * self.strides[i] + 1
            parts = []
            for at in range(0, self.window[i] * self.dilations[i], self.dilations[i]):
                bounds = [[at], [at + reach], [2 + i], [self.strides[i]]]
                parts.append(w.node("Slice", [x, *map(w.ints, bounds)]))
            x = parts[0]
            for part in parts[1:]:
                x = w.node(onnx_op, [x, part])
        return x


def _pooled(w: Writer, n: Node, write: Callable[[Writer, _Pool, str, Node], str]) -> str:
    pool = _Pool(n)
    nhwc = pool.layout == "nhwc"
    x = w.transpose(n.x, _TO_NCHW) if nhwc else n.x
    y = write(w, pool, x, n)
    return w.transpose(y, _TO_NHWC) if nhwc else y


@lowers("average_pool2d", through=REAL)
def average_pool2d(w: Writer, n: Node) -> str:
    return _pooled(w, n, _average)


def _average(w: Writer, pool: _Pool, x: str, n: Node) -> str:
    if not pool.by_slices:
        return w.node("AveragePool", [x], **pool.attributes())
    one = w.constant(1, n.dtype)
    shape = w.node("Concat", [w.ints([1, 1]), w.node("Shape", [x], start=2)], axis=0)
    counts = pool.combine_slices(w, n, w.node("Expand", [one, shape]), "Add", 0, n.dtype)
    sums = pool.combine_slices(w, n, x, "Add", 0, n.dtype)
    return w.node("Div", [sums, w.node("Max", [counts, one])])  # 0 where no element of the image counts


@lowers("l2_pool2d", through=REAL)
def l2_pool2d(w: Writer, n: Node) -> str:
    return _pooled(w, n, _l2)


def _l2(w: Writer, pool: _Pool, x: str, n: Node) -> str:
    if not pool.by_slices:
        return w.node("LpPool", [x], p=2, **pool.attributes())
    squares = w.node("Mul", [x, x])
    return w.node("Sqrt", [pool.combine_slices(w, n, squares, "Add", 0, n.dtype)])


@lowers("max_pool2d", through=REAL | {"int32": "float64", "uint32": "float64"})
def max_pool2d(w: Writer, n: Node) -> str:
    return _pooled(w, n, _maximum)


def _maximum(w: Writer, pool: _Pool, x: str, n: Node) -> str:
    """MaxPool has no 64-bit integers."""
    if n.dtype not in ("int64", "uint64") and not pool.by_slices:
        return w.node("MaxPool", [x], **pool.attributes())
    declared = n.out_dtypes[0]
    lowest = -math.inf if declared.startswith("float") else int(np.iinfo(declared).min)
    return pool.combine_slices(w, n, x, "Max", lowest, n.dtype)
