"""Products, convolutions and norms of ONNX Runtime's optimisers with what comes before and behind them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..graph import Graph, Operand
from ..registry import MICROSOFT, OPERATORS, Node, invalid_if, reads, refuse_if
from .contrib_quantised import channels_first, channels_last
from .elementwise import scaled_silu
from .linear_algebra import gemm, product_of
from .normalization import group_normalization

_PARAMETERS = {
    "Clip": ("min", "max"),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Elu": ("alpha",),
    "ThresholdedRelu": ("alpha",),
    "Selu": ("alpha", "gamma"),
    "QuickGelu": ("alpha",),
}
_UNARY = {
    "Relu",
    "Sigmoid",
    "Tanh",
    "Softplus",
    "Softsign",
    "Gelu",
    "HardSwish",
    "Swish",
    "Mish",
    *_PARAMETERS,
}


def check_activation(node: Node) -> None:
    name = node.get("activation", "")
    refuse_if(
        name and name not in _UNARY,
        f"activation is '{name}'; {', '.join(sorted(_UNARY))} are read",
        "Save the model before ONNX Runtime's optimiser fuses the activation into it",
    )


def activated(g: Graph, node: Node, y: Operand, given: dict[str, Any]) -> Operand:
    """By the operator that the attribute activation names; given: its own attributes."""
    name = node.get("activation", "")
    if not name:
        return y
    check_activation(node)
    domain = MICROSOFT if name == "QuickGelu" else ""
    made = replace(node, domain=domain, op=name, opset=6, inputs=[y], outputs=["y"], attributes=given)
    return OPERATORS[domain, name](g, made)


def _numbered(node: Node) -> dict[str, float]:
    """The parameters of a convolution's activation, which are a list."""
    values = node.get("activation_params") or []
    names = _PARAMETERS.get(node.get("activation", ""), ())
    return {name: float(value) for name, value in zip(names, values, strict=False)}


def _named(node: Node) -> dict[str, float]:
    """Those of a product's, which are attributes by themselves."""
    names = _PARAMETERS.get(node.get("activation", ""), ())
    found = {name: node.get(f"activation_{name}") for name in names}
    return {name: float(value) for name, value in found.items() if value is not None}


def _plain(node: Node, op: str, inputs: list[Operand | None]) -> Node:
    kept = {k: v for k, v in node.attributes.items() if k not in ("activation", "activation_params")}
    return replace(node, domain="", op=op, opset=18, inputs=inputs, attributes=kept)


@reads("FusedConv", domain=MICROSOFT)
def fused_conv(g: Graph, node: Node) -> Operand:
    """A convolution, plus an operand, and an activation of that."""
    y = OPERATORS["", "Conv"](g, _plain(node, "Conv", node.inputs[:3]))
    if node.optional(3) is not None:
        y = g.op("add", y, node.operand(3))
    return activated(g, node, y, _numbered(node))


@reads("NhwcConv", "NhwcFusedConv", domain=MICROSOFT)
def in_channels_last_conv(g: Graph, node: Node) -> Operand:
    """The channels of images and filters lie last."""
    inputs = [channels_first(g, node.x), node.operand(1), node.optional(2)]
    if node.op == "NhwcConv":
        inputs[1] = channels_first(g, node.operand(1))
    if node.optional(3) is not None:
        inputs.append(channels_first(g, node.operand(3)))
    return channels_last(g, fused_conv(g, replace(node, inputs=inputs)))


@reads("NhwcMaxPool", domain=MICROSOFT)
def in_channels_last_max_pool(g: Graph, node: Node) -> Operand:
    made = replace(_plain(node, "MaxPool", [channels_first(g, node.x)]), outputs=node.outputs[:1])
    return channels_last(g, OPERATORS["", "MaxPool"](g, made)[0])


# --- products ---------------------------------------------------------------------------------------------


def _turned(g: Graph, x: Operand, is_transposed: bool, is_batch_inside: bool) -> Operand:
    """A matrix or a batch of them; its batch may lie between its rows and its columns."""
    order = list(range(g.rank(x)))
    if is_batch_inside:
        order = [*order[1:-1], order[0], order[-1]]
    if is_transposed and len(order) > 1:
        order[-2:] = order[:-3:-1]
    return g.transpose(x, order)


@reads("FusedMatMul", "FusedMatMulActivation", "TransposeMatMul", domain=MICROSOFT)
def fused_matmul(g: Graph, node: Node) -> Operand:
    operands = [
        _turned(g, x, bool(node.get(f"trans{which}", 0)), bool(node.get(f"transBatch{which}", 0)))
        for x, which in ((node.x, "A"), (node.operand(1), "B"))
    ]
    y = g.times(product_of(g, *operands), float(node.get("alpha", 1.0)))
    return activated(g, node, y, _named(node))


@reads("FusedGemm", domain=MICROSOFT)
def fused_gemm(g: Graph, node: Node) -> Operand:
    check_activation(node)
    return activated(g, node, gemm(g, replace(node, domain="", opset=13)), _named(node))


# --- sums and norms ---------------------------------------------------------------------------------------


@reads("BiasAdd", domain=MICROSOFT)
def bias_add(g: Graph, node: Node) -> Operand:
    return g.op("add", g.op("add", node.x, node.operand(1)), node.operand(2))


@reads("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(g: Graph, node: Node) -> Operand:
    """The first half times the Gelu of the second."""
    x = g.op("add", node.x, node.operand(1))
    last = g.rank(x) - 1
    half = g.fixed(g.shape(x)[last], "the width") // 2
    return g.op("mul", g.cut(x, last, 0, half), g.op("gelu", g.cut(x, last, half, half)))


@reads("BiasSoftmax", domain=MICROSOFT)
def bias_softmax(g: Graph, node: Node) -> Operand:
    """Over the axes from `axis` on; the bias lacks some of those before it."""
    x, bias = node.x, node.operand(1)
    axis, rank = g.axis(x, node.get("axis", 1)), g.rank(x)
    if node.get("is_inner_broadcast", 1) and g.rank(bias) < rank:
        sizes = g.shape(bias)
        lead = len(sizes) - (rank - axis)
        invalid_if(lead < 0, f"the bias {sizes} lacks axes of the softmax")
        bias = g.reshape(bias, [*sizes[:lead], *[1] * (rank - len(sizes)), *sizes[lead:]])
    y = replace(
        node, domain="", op="Softmax", opset=11, inputs=[g.op("add", x, bias)], attributes={"axis": axis}
    )
    return OPERATORS["", "Softmax"](g, y)


@reads("ScaledSiLU", domain=MICROSOFT)
def contrib_scaled_silu(g: Graph, node: Node) -> Operand:
    y = scaled_silu(g, node.x, float(node.get("alpha", 1.0)))
    return y if node.optional(1) is None else g.op("mul", y, node.operand(1))


def _grouped(g: Graph, node: Node, x: Operand) -> Operand:
    """Images whose channels lie last, unless channels_last is 0."""
    last = bool(node.get("channels_last", 1))
    inputs = [channels_first(g, x) if last else x, node.operand(1), node.operand(2)]
    attributes = {"num_groups": node.get("groups"), "epsilon": node.get("epsilon", 1e-5)}
    plain = replace(node, domain="", opset=21, attributes=attributes)
    inputs = [inputs[0], *(g.cast(v, x.dtype) for v in inputs[1:])]
    y = group_normalization(g, replace(plain, inputs=inputs))
    y = channels_last(g, y) if last else y
    return g.op("silu", y) if node.get("activation", 0) else y


@reads("GroupNorm", domain=MICROSOFT)
def contrib_group_norm(g: Graph, node: Node) -> Operand:
    return _grouped(g, node, node.x)


@reads("SkipGroupNorm", domain=MICROSOFT)
def skip_group_norm(g: Graph, node: Node) -> list[Operand]:
    """Of input + skip + bias, which is the second output."""
    x, skip = node.x, node.operand(3)
    if g.rank(skip) == 2:
        batch, channels = g.shape(skip)
        ones = [1] * (g.rank(x) - 2)
        last = bool(node.get("channels_last", 1))
        skip = g.reshape(skip, [batch, *ones, channels] if last else [batch, channels, *ones])
    total = g.op("add", x, skip)
    bias = node.optional(4)
    if bias is not None:
        bias = bias if node.get("channels_last", 1) else g.add_axes(bias, g.rank(x) - 2)
        total = g.op("add", total, bias)
    return [_grouped(g, node, total), total]


@reads("CDist", domain=MICROSOFT)
def distances(g: Graph, node: Node) -> Operand:
    """Between the rows of two matrices."""
    metric = node.get("metric", "sqeuclidean")
    invalid_if(metric not in ("euclidean", "sqeuclidean"), f"metric is '{metric}'; euclidean or sqeuclidean")
    a, b = node.x, node.operand(1)
    rows, width = g.shape(a)
    apart = g.op("sub", g.reshape(a, [rows, 1, width]), g.reshape(b, [1, *g.shape(b)]))
    total = g.op("reduce_sum", g.op("mul", apart, apart), axes=[2])
    return g.op("sqrt", total) if metric == "euclidean" else total


# --- of ONNX's own kind -----------------------------------------------------------------------------------

_SAME = {"Trilu": 14, "GatherND": 13, "GridSample": 16, "Pad": 13, "Range": 11}


@reads(*_SAME, domain=MICROSOFT)
def as_in_onnx(g: Graph, node: Node) -> Any:
    return OPERATORS["", node.op](g, replace(node, domain="", opset=_SAME[node.op]))


@reads("ExpandDims", domain=MICROSOFT)
def expand_dims(g: Graph, node: Node) -> Operand:
    sizes, axis = g.shape(node.x), int(node.number(1, "the axis"))
    invalid_if(
        not -len(sizes) - 1 <= axis <= len(sizes), f"axis {axis} is outside {len(sizes) + 1} dimensions"
    )
    axis %= len(sizes) + 1
    return g.reshape(node.x, [*sizes[:axis], 1, *sizes[axis:]])
