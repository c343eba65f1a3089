"""Operators of ONNX Runtime's own domain that exported transformers have."""

from __future__ import annotations

import numpy as np

from ..graph import Graph, Operand, known
from ..registry import MICROSOFT, Node, invalid_if, reads, refuse_if
from .elementwise import gelu, scaled_silu
from .linear_algebra import product_of
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


@reads("MatMulNBits", domain=MICROSOFT)
def matmul_n_bits(g: Graph, node: Node) -> Operand:
    """x times the transpose of a matrix [n, k] in blocks of 2, 4 or 8 bits with scales and zero points."""
    n, k, bits, block = (
        int(node.get(name, d)) for name, d in (("N", 0), ("K", 0), ("bits", 4), ("block_size", 0))
    )
    refuse_if(
        bits not in (2, 4, 8), f"bits is {bits}; 2, 4 and 8 are read", "Quantise the model with one of these"
    )
    invalid_if(min(n, k, block) < 1, f"N is {n}, K {k} and block_size {block}; each must be at least 1")
    blocks = -(-k // block)
    packed = node.known(1, "the weights").reshape(n, blocks * block * bits // 8)
    whole = _unpacked(packed, bits)
    scales = node.known(2, "the scales")
    zeros = np.full((n, blocks), 1 << (bits - 1), np.float32)
    if node.optional(3) is not None:
        given = node.known(3, "the zero points")
        zeros = (
            _unpacked(given.reshape(n, -1), bits)[:, :blocks]
            if given.dtype == np.uint8
            else given.reshape(n, blocks)
        )
    places = np.arange(k) // block
    if node.optional(4) is not None:  # the rows' blocks in the order of their activations
        places = node.known(4, "g_idx").reshape(-1)[:k].astype(np.int64)
        invalid_if(
            places.size < k or places.min() < 0 or places.max() >= blocks,
            f"g_idx (input 4) has {places.size} places of {blocks} blocks for {k} rows",
        )
    values = whole.reshape(n, blocks * block)[:, :k].astype(np.float32) - zeros.astype(np.float32)[:, places]
    matrix = values * scales.reshape(n, blocks).astype(np.float32)[:, places]
    y = product_of(g, node.x, known(np.ascontiguousarray(matrix.T), node.x.dtype))
    bias = node.optional(5)
    return y if bias is None else g.op("add", y, bias)


def _unpacked(rows: np.ndarray, bits: int) -> np.ndarray:
    """The low bits of a byte come first."""
    if bits == 8:
        return rows
    parts = [rows >> shift & 2**bits - 1 for shift in range(0, 8, bits)]
    return np.stack(parts, axis=-1).reshape(rows.shape[0], -1)
