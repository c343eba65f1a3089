"""The ways back from pools and windows to images, and writes into caches."""

from __future__ import annotations

import math

import numpy as np

from ..graph import Dim, Extent, Graph, Operand, known, product
from ..numbers import Numbers, checked, dims, is_known
from ..registry import Node, invalid_if, reads
from .convolution import window_of
from .indexing import as_indices


@reads("MaxUnpool")
def max_unpool(g: Graph, node: Node) -> Operand:
    """Each element where its maximum was, zero elsewhere.

    Places are of an output_shape that is known, as in ONNX Runtime and in models that were exported. Of one
    that is fed they are of the smallest image, behind which zeros follow, as ONNX's own tests have it.
    """
    x, places = node.x, g.cast(node.operand(1), "i64")
    batch, channels, *sizes = g.shape(x)
    kernel = [int(n) for n in node.get("kernel_shape") or []]
    window = window_of(g, node, sizes, kernel)
    rows = zip(sizes, window.strides, window.before, window.after, window.kernel, strict=True)
    image = [(n - 1) * stride - before - after + k for n, stride, before, after, k in rows]
    wanted = [batch, channels, *image]
    is_told = node.optional(2) is not None and not is_known(node.operand(2))
    if node.optional(2) is not None and not is_told:
        least, wanted = wanted, node.dims(2, "the output's shape")
        invalid_if(
            len(wanted) != len(least) or any(_is_less(w, n) for w, n in zip(wanted, least, strict=True)),
            f"output_shape (input 2) is {wanted}; it must be at least {least}",
        )
    total, count = product(wanted), g.size(x)
    places = checked(g, places, "the place of a maximum", 0, total - 1)
    zeros = g.filled(0, x.dtype, [total])
    y = g.op("scatter_elements", zeros, g.reshape(places, [count]), g.reshape(x, [count]), axis=0)
    y = g.reshape(y, wanted)
    return _with_zeros_behind(g, y, dims(g, node, 2, "the output's shape")) if is_told else y


def _is_less(a: Dim, b: Dim) -> bool:
    """Whether it is for all values."""
    difference = b - a
    return difference.least > 0 if isinstance(difference, Extent) else difference > 0


def _with_zeros_behind(g: Graph, x: Operand, sizes: list[Dim]) -> Operand:
    for axis, size in enumerate(sizes):
        own = g.shape(x)
        zeros = g.filled(0, x.dtype, [*own[:axis], size - own[axis], *own[axis + 1 :]])
        x = g.concat([x, zeros], axis)
    return g.reshape(x, sizes)


@reads("Col2Im")
def columns_to_image(g: Graph, node: Node) -> Operand:
    """Adds up the blocks' elements where they lie in the image."""
    x = node.x
    batch, rows, columns = g.shape(x)
    is_open = isinstance(rows, Extent) or isinstance(columns, Extent)
    if is_open or not is_known(node.operand(1)) or not is_known(node.operand(2)):
        return _columns_as_told(g, node)
    image, block = node.integers(1, "the image's shape"), node.integers(2, "the blocks' shape")
    window = window_of(g, node, list(image), block)
    taps = math.prod(block)
    parts = zip(image, window.before, window.after, window.reach, window.strides, strict=True)
    counts = [(n + before + after - reach) // stride + 1 for n, before, after, reach, stride in parts]
    invalid_if(
        not taps or rows % taps or math.prod(counts) != columns,
        f"the input has {rows} rows and {columns} columns; blocks {block} lie {counts} times in the image",
    )
    padded = [n + before + after for n, before, after in zip(image, window.before, window.after, strict=True)]
    g.check_extent(taps * columns)
    place = np.zeros([1] * (2 * len(image)), np.int64)
    for axis, size in enumerate(padded):
        within = np.arange(block[axis])[:, None] * window.dilations[axis]
        starts = np.arange(counts[axis])[None, :] * window.strides[axis]
        shape = [1] * (2 * len(image))
        shape[axis], shape[len(image) + axis] = block[axis], counts[axis]
        place = place * size + (within + starts).reshape(shape)
    channels = rows // taps
    places = g.expand(known(place.reshape(1, 1, -1), "i64"), [batch, channels, taps * columns])
    zeros = g.filled(0, x.dtype, [batch, channels, math.prod(padded)])
    updates = g.reshape(x, [batch, channels, taps * columns])
    y = g.op("scatter_reduce", zeros, places, updates, axis=2, reduction="sum")
    y = g.reshape(y, [batch, channels, *padded])
    for axis, (before, size) in enumerate(zip(window.before, image, strict=True)):
        y = g.cut(y, 2 + axis, before, size)
    return y


def _columns_as_told(g: Graph, node: Node) -> Operand:
    """Of an image and blocks whose extents are known only at run time."""
    x, image, block = node.x, dims(g, node, 1, "the image's shape"), dims(g, node, 2, "the blocks' shape")
    rank = len(image)
    strides, dilations = ([int(n) for n in node.get(name) or [1] * rank] for name in ("strides", "dilations"))
    pads = [int(n) for n in node.get("pads") or [0] * (2 * rank)]
    invalid_if(len(block) != rank, f"the image has {rank} extents and the blocks {len(block)}")
    batch, rows, columns = g.shape(x)
    taps = product(block)
    place, padded = Numbers(g, [0]), []
    for axis in range(rank):
        size = image[axis] + pads[axis] + pads[rank + axis]
        count = (size - (block[axis] - 1) * dilations[axis] - 1) // strides[axis] + 1
        within = Numbers(g, g.positions(block[axis])) * dilations[axis]
        begins = Numbers(g, g.positions(count)) * strides[axis]
        shape = [1] * (2 * rank)
        own = within.shaped([*shape[:axis], block[axis], *shape[axis + 1 :]])
        own = own + begins.shaped([*shape[: rank + axis], count, *shape[rank + axis + 1 :]])
        place = place * size + own
        padded.append(size)
    channels, whole = rows // taps, [batch, rows // taps, taps * columns]
    places = g.expand(place.shaped([1, 1, taps * columns]).x, whole)
    zeros = g.filled(0, x.dtype, [batch, channels, product(padded)])
    y = g.op("scatter_reduce", zeros, places, g.reshape(x, whole), axis=2, reduction="sum")
    y = g.reshape(y, [batch, channels, *padded])
    for axis, size in enumerate(image):
        y = g.cut(y, 2 + axis, pads[axis], size)
    return y


@reads("TensorScatter")
def tensor_scatter(g: Graph, node: Node) -> Operand:
    """The cache with an update written at each sequence's own place."""
    cache, update, begins = node.x, node.operand(1), node.optional(2)
    axis, mode = g.axis(cache, node.get("axis", -2)), node.get("mode", "linear")
    invalid_if(mode not in ("linear", "circular"), f"mode is '{mode}'; linear and circular are ONNX's")
    invalid_if(axis == 0, "axis is 0, the batch")
    shape, rank = g.shape(update), g.rank(update)
    places = g.reshape(g.positions(shape[axis]), [shape[axis], *[1] * (rank - 1 - axis)])
    if begins is not None:
        most = g.shape(cache)[axis] - shape[axis] if mode == "linear" else None
        begins = checked(g, g.cast(as_indices(g, begins), "i64"), "the place of an update", 0, most)
        places = g.op("add", g.reshape(begins, [*g.shape(begins), *[1] * (rank - 1)]), places)
    if mode == "circular":
        places = g.op("remainder", places, g.at_run_time(g.shape(cache)[axis], "i64"))
    return g.op("scatter_elements", cache, g.expand(places, shape), update, axis=axis)
