"""Products of matrices."""

from __future__ import annotations

import torch

from ..translate import Translator, Unsupported, Value, arguments, is_same, lowers, target_name

CASTS = ("dim_order_ops._to_dim_order_copy.default", "aten._to_copy.default", "aten.to.dtype")


def _matrix(t: Translator, node: torch.fx.Node) -> Value:
    """A product's second operand. Bytes that were cast to floats are dequantised by 1 instead, which products
    can read as blocks."""
    if target_name(node) in CASTS:
        whole = t.values.get(node.args[0])
        if whole is not None and t.dtype(whole) in ("i8", "u8") and t.dtype(t.value(node)) == "f32":
            return t.op("dequantize_linear", whole, t.scalar(1.0, "f32"))
    return t.value(node)


@lowers("aten.linear.default")
def linear(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    x, weight, bias = t.value(a["input"]), t.value(a["weight"]), t.optional(a["bias"])
    if t.rank(weight) != 2:
        raise Unsupported("a weight that is no matrix")
    # Where the user asked for blocks, rounding x adds little to what rounding the weights has cost.
    options = {"transpose_b": True, "round_a": t.is_blocks(weight)}
    if t.dtype(weight) != t.dtype(x):  # blocks, of a model in half precision
        x, bias = (v if v is None else t.cast(v, t.dtype(weight)) for v in (x, bias))
    if t.rank(x) > 1:
        return t.op("fused_matmul", x, weight, bias, **options)
    row = t.op("fused_matmul", t.reshape(x, [1, *t.shape(x)]), weight, bias, **options)
    return t.reshape(row, t.shape(row)[1:])


@lowers("aten.mm.default", "aten.bmm.default", "aten.matmul.default")
def matmul(t: Translator, node: torch.fx.Node) -> Value:
    a, b = t.value(node.args[0]), _matrix(t, node.args[1])
    if min(t.rank(a), t.rank(b)) < 2:
        raise Unsupported("a vector in a product")
    return t.op("matmul", a, b)


@lowers("aten.addmm.default", "aten.baddbmm.default")
def addmm(t: Translator, node: torch.fx.Node) -> Value:
    a = arguments(node)
    alpha, beta = float(t.number(a["alpha"])), float(t.number(a["beta"]))
    x, matrix, bias = (t.value(node.args[i]) for i in (1, 2, 0))
    is_row = t.rank(bias) > 0 and is_same(t.shape(bias)[-1:], t.shape(matrix)[-1:])
    if alpha == beta == 1 and t.rank(x) == 2 and is_row:  # what kernels add
        return t.op("gemm", x, matrix, bias)
    product = t.op("matmul", x, matrix)
    if alpha != 1:
        product = t.op("mul", product, t.scalar(alpha, t.dtype(product)))
    if beta == 0:  # whatever the other is, also where that is no number
        return product
    if beta != 1:
        bias = t.op("mul", bias, t.scalar(beta, t.dtype(bias)))
    return t.op("add", product, bias)
