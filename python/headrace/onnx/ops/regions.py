"""Regions of images, and convolutions whose elements are moved by offsets."""

from __future__ import annotations

from ..graph import Extent, Graph, Operand
from ..numbers import checked
from ..registry import Node, invalid_if, reads, refuse_if
from .convolution import kernel_of, window_of

_HALF_PIXEL = {"half_pixel": True, "output_half_pixel": False}


@reads("RoiAlign")
def roi_align(g: Graph, node: Node) -> Operand:
    """Each region as a grid of cells; before operator set 16 coordinates are of elements' centres."""
    mode = node.get(
        "coordinate_transformation_mode", "half_pixel" if node.opset >= 16 else "output_half_pixel"
    )
    invalid_if(
        mode not in _HALF_PIXEL,
        f"coordinate_transformation_mode is '{mode}'; {', '.join(_HALF_PIXEL)} are ONNX's",
    )
    pooling = str(node.get("mode", "avg")).lower()
    invalid_if(pooling not in ("avg", "max"), f"mode is '{pooling}'; avg and max are ONNX's")
    x = node.x
    through = x.dtype if x.dtype in ("f32", "f64") else "f32"
    y = g.op(
        "roi_align",
        g.cast(x, through),
        _rows(g, g.cast(node.operand(1), through), 4),
        checked(g, g.cast(node.operand(2), "i64"), "the number of a region's image", 0, g.shape(x)[0] - 1),
        height=int(node.get("output_height", 1)),
        width=int(node.get("output_width", 1)),
        sampling_ratio=int(node.get("sampling_ratio", 0)),
        scale=float(node.get("spatial_scale", 1.0)),
        half_pixel=_HALF_PIXEL[mode],
        mode=pooling,
    )
    return g.cast(y, x.dtype)


def _rows(g: Graph, regions: Operand, width: int) -> Operand:
    """Of so many numbers, also where a run has to show that."""
    shape = g.shape(regions)
    is_open = len(shape) == 2 and isinstance(shape[1], Extent)
    return g.reshape(regions, [shape[0], width]) if is_open else regions


@reads("MaxRoiPool")
def max_roi_pool(g: Graph, node: Node) -> Operand:
    shape = [int(n) for n in node.get("pooled_shape") or []]
    invalid_if(len(shape) != 2, f"pooled_shape is {shape}; a height and a width")
    x = node.x
    through = x.dtype if x.dtype in ("f32", "f64") else "f32"
    regions, scale = _rows(g, g.cast(node.operand(1), through), 5), float(node.get("spatial_scale", 1.0))
    y = g.op("roi_max_pool", g.cast(x, through), regions, height=shape[0], width=shape[1], scale=scale)
    return g.cast(y, x.dtype)


@reads("DeformConv")
def deform_conv(g: Graph, node: Node) -> Operand:
    """A product of the filters with the elements that the offsets choose."""
    x, weight, offset, bias, mask = (node.optional(i) for i in range(5))
    invalid_if(None in (x, weight, offset), "the input, the filter or the offsets are missing")
    refuse_if(
        g.rank(x) != 4,
        f"the input has {g.rank(x)} dimensions; images of 4 are read",
        "Run it with ONNX Runtime",
    )
    kernel = kernel_of(g, node, weight, g.rank(x))
    window = window_of(g, node, g.shape(x)[2:], kernel)
    outputs, inner, *_ = g.fixed_shape(weight)
    groups = int(node.get("group", 1))
    invalid_if(
        groups < 1 or outputs % groups, f"group is {groups}, into which {outputs} filters do not divide"
    )
    through = x.dtype if x.dtype in ("f32", "f64") else "f32"
    columns = g.op(
        "deformed_columns",
        *(None if v is None else g.cast(v, through) for v in (x, offset, mask)),
        kernel=kernel,
        strides=window.strides,
        padding=window.padding,
        dilations=window.dilations,
        offset_groups=int(node.get("offset_group", 1)),
    )
    batch, rows, places = g.shape(columns)
    columns = g.reshape(columns, [batch, groups, rows // groups, places])
    filters = g.reshape(
        g.cast(weight, through), [1, groups, outputs // groups, inner * kernel[0] * kernel[1]]
    )
    y = g.op("matmul", filters, columns)
    y = g.reshape(y, [batch, outputs, *g.shape(offset)[2:]])
    if bias is not None:
        y = g.op("add", y, g.reshape(g.cast(bias, through), [outputs, 1, 1]))
    return g.cast(y, x.dtype)
