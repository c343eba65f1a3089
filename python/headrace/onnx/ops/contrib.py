"""Operators of ONNX Runtime's own domain that exported transformers have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..graph import Graph, Operand, known
from ..registry import MICROSOFT, Node, invalid_if, reads, refuse_if
from .attention import rotated
from .elementwise import gelu, scaled_silu
from .linear_algebra import gemm, product_of
from .normalization import layer_norm, rms_norm, rms_normalization


@reads("Gelu", domain=MICROSOFT)
def contrib_gelu(g: Graph, node: Node) -> Operand:
    return gelu(g, node)


@reads("FastGelu", "BiasGelu", domain=MICROSOFT)
def gelu_with_bias(g: Graph, node: Node) -> Operand:
    x, bias = node.x, node.optional(1)
    x = x if bias is None else g.op("add", x, bias)
    return g.op("gelu_tanh" if node.op == "FastGelu" else "gelu", x)


@reads("QuickGelu", domain=MICROSOFT)
def quick_gelu(g: Graph, node: Node) -> Operand:
    return scaled_silu(g, node.x, node.get("alpha", 1.702))


@reads("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(g: Graph, node: Node) -> list[Operand | None]:
    """Of input + skip + bias, which is the fourth output."""
    refuse_if(
        node.wants(1) or node.wants(2),
        "outputs 1 and 2 are wanted, mean and inverse deviation, which are not given out",
        "Export the model for inference, without these outputs",
    )
    simple = node.op == "SkipSimplifiedLayerNormalization"
    total = g.op("add", node.x, node.operand(1))
    bias = node.optional(3 if simple else 4)
    total = total if bias is None else g.op("add", total, bias)
    axis, epsilon = g.rank(total) - 1, float(node.get("epsilon", 1e-12))
    if simple:
        y = rms_norm(g, total, node.operand(2), axis, epsilon)
    else:
        y = layer_norm(g, total, node.operand(2), node.optional(3), axis, epsilon)
    return [y, None, None, total]


@reads("SimplifiedLayerNormalization", domain=MICROSOFT)
def simplified_layer_normalization(g: Graph, node: Node) -> list[Operand]:
    return rms_normalization(g, node)


@reads("FusedMatMul", domain=MICROSOFT)
def fused_matmul(g: Graph, node: Node) -> Operand:
    for name in ("transBatchA", "transBatchB"):
        refuse_if(
            node.get(name, 0),
            f"{name} is {node.get(name)}; only 0 is read",
            "Save the model before ONNX Runtime's optimiser fuses transpositions into it",
        )
    operands = []
    for x, name in ((node.x, "transA"), (node.operand(1), "transB")):
        order = list(range(g.rank(x)))
        if node.get(name, 0) and len(order) > 1:
            order[-2:] = order[:-3:-1]
        operands.append(g.transpose(x, order))
    return g.times(product_of(g, *operands), float(node.get("alpha", 1.0)))


@reads("FusedGemm", domain=MICROSOFT)
def fused_gemm(g: Graph, node: Node) -> Operand:
    functions = {"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh"}
    name = node.get("activation")
    refuse_if(
        name not in functions,
        f"activation is '{name}'; {', '.join(functions)} are read",
        "Save the model before ONNX Runtime's optimiser fuses the activation into it",
    )
    return g.op(functions[name], gemm(g, replace(node, domain="", opset=13)))


@reads("RotaryEmbedding", domain=MICROSOFT)
def contrib_rotary_embedding(g: Graph, node: Node) -> Operand:
    """The positions come second; one position is the first of a row of them."""
    x, positions, cos, sin = (node.operand(i) for i in range(4))
    refuse_if(
        g.rank(x) != 4,
        f"the input has {g.rank(x)} dimensions; [batch, heads, steps, width] is read",
        "Export the model with its heads apart there",
    )
    batch, _, steps, _ = g.shape(x)
    positions = g.cast(positions, "i64")
    if g.rank(positions) == 1:
        positions = g.op("add", g.reshape(positions, [1, 1]), g.reshape(g.positions(steps), [1, steps]))
        positions = g.expand(positions, [batch, steps])
    tables = [g.op("gather", table, positions, axis=0) for table in (cos, sin)]
    return rotated(g, x, *tables, bool(node.get("interleaved", 0)), int(node.get("rotary_embedding_dim", 0)))


@reads("MatMulNBits", domain=MICROSOFT)
def matmul_n_bits(g: Graph, node: Node) -> Operand:
    """x times the transpose of a matrix [n, k] of 4- or 8-bit blocks, each with a scale and a zero point."""
    n, k, bits, block = (
        int(node.get(name, d)) for name, d in (("N", 0), ("K", 0), ("bits", 4), ("block_size", 0))
    )
    refuse_if(bits not in (4, 8), f"bits is {bits}; 4 and 8 are read", "Quantise the model with one of these")
    refuse_if(
        node.optional(4) is not None,
        "input 4 is given, g_idx, which reorders the blocks; that is not read",
        "Quantise the model without activation order (desc_act, GPTQ's act_order)",
    )
    invalid_if(min(n, k, block) < 1, f"N is {n}, K {k} and block_size {block}; each must be at least 1")
    blocks = -(-k // block)
    packed = node.known(1, "the weights").reshape(n, blocks * block * bits // 8)
    whole = _unpacked(packed, bits)
    scales = node.known(2, "the scales").reshape(n, blocks, 1)
    zeros = np.full((n, blocks), 1 << (bits - 1), np.float32)
    if node.optional(3) is not None:
        given = node.known(3, "the zero points")
        zeros = (
            _unpacked(given.reshape(n, -1), bits)[:, :blocks]
            if given.dtype == np.uint8
            else given.reshape(n, blocks)
        )
    values = whole.reshape(n, blocks, block).astype(np.float32) - zeros[:, :, None].astype(np.float32)
    matrix = (values * scales.astype(np.float32)).reshape(n, blocks * block)[:, :k]
    y = product_of(g, node.x, known(np.ascontiguousarray(matrix.T), node.x.dtype))
    bias = node.optional(5)
    return y if bias is None else g.op("add", y, bias)


def _unpacked(rows: np.ndarray, bits: int) -> np.ndarray:
    """The low half of a byte comes first."""
    if bits == 8:
        return rows
    return np.stack([rows & 15, rows >> 4], axis=-1).reshape(rows.shape[0], -1)
