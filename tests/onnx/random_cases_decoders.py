"""Random cases of what ONNX Runtime's model builders write for decoders: experts, states, few bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from operator_cases_base import F32, I64, Case, Constant
from random_cases_base import Random, chance, numbers, pick, some
from random_cases_contrib import contrib, makes, reals

# --- experts ------------------------------------------------------------------------------------------------


def _packed(rng: Random, shape: list[int], bits: int) -> Constant:
    """Numbers of few bits, rows of whole bytes."""
    codes = rng.integers(0, 1 << bits, shape)
    each = 8 // bits
    rows = np.pad(codes, [(0, 0)] * (len(shape) - 1) + [(0, -shape[-1] % each)])
    parts = rows.reshape(*rows.shape[:-1], -1, each) << (bits * np.arange(each))
    return Constant(parts.sum(-1).astype(np.uint8))


def _routed(rng: Random, hidden: int, experts: int) -> list[Any]:
    tokens = some(rng, 1, 4, pick(rng, (1, 2)))
    return [reals(rng, *tokens, hidden), reals(rng, int(np.prod(tokens)), experts)]


def _activation(rng: Random) -> dict[str, Any]:
    kind = pick(rng, ("relu", "gelu", "silu", "identity", "swiglu", "swiglu"))
    if kind != "swiglu":
        return {"activation_type": kind}
    limits = {"activation_alpha": 1.7, "activation_beta": 1.0, "swiglu_limit": 1.5} if chance(rng) else {}
    return {"activation_type": kind, "swiglu_fusion": 1, **limits}


@makes("MoE")
def mixture_of_experts(rng: Random, op: str) -> Case:
    (hidden, inner), experts = some(rng, 1, 9, 2), int(rng.integers(1, 6))
    activation = _activation(rng)
    outputs = 2 * inner if activation["activation_type"] == "swiglu" else inner
    layers: list[Any] = []
    for n, k in ((outputs, hidden), (hidden, inner)):
        layers += [
            Constant(reals(rng, experts, n, k)),
            Constant(reals(rng, experts, n)) if chance(rng) else None,
        ]
    return contrib(
        op,
        [*_routed(rng, hidden, experts), *layers],
        k=int(rng.integers(1, experts + 1)),
        normalize_routing_weights=pick(rng, (0, 1)),
        **activation,
    )


@makes("QMoE")
def quantized_mixture_of_experts(rng: Random, op: str) -> Case:
    """Blocks of 2 and 8 bits aside, which ONNX Runtime multiplies with rounded activations."""
    bits, experts = pick(rng, (2, 4, 8)), int(rng.integers(1, 5))
    block = pick(rng, (None, 16, 32)) if bits == 4 else None
    hidden, inner = (n * (block or 8) for n in some(rng, 1, 3, 2))
    activation = _activation(rng)
    outputs = 2 * inner if activation["activation_type"] == "swiglu" else inner
    layers, zeros = [], []
    has_zeros = chance(rng)
    for n, k in ((outputs, hidden), (hidden, inner)):
        own = [experts, n, k // block] if block else [experts, n]
        scales = Constant(rng.uniform(0.01, 0.1, own).astype(F32))
        bias = Constant(reals(rng, experts, n)) if chance(rng) else None
        layers += [_packed(rng, [experts, n, k], bits), scales, bias]
        zeros.append(_packed(rng, own, bits) if has_zeros else None)
    routed = _routed(rng, hidden, experts)
    router = [np.abs(routed[1][:, ::-1]) + F32(0.1)] if chance(rng) else []
    return contrib(
        op,
        [*routed, *layers, None, None, None, *zeros, None, *router],
        tolerance=1e-4,
        k=int(rng.integers(1, experts + 1)),
        normalize_routing_weights=pick(rng, (0, 1)),
        expert_weight_bits=bits,
        block_size=block,
        **activation,
    )


@makes("MatMulBnb4")
def matmul_bnb4(rng: Random, op: str) -> Case:
    n, k = some(rng, 1, 40, 2)
    block = pick(rng, (16, 32, 64))
    packed = Constant(rng.integers(0, 256, (n * k + 1) // 2).astype(np.uint8))
    largest = Constant(rng.uniform(0.1, 2, -(-n * k // block)).astype(F32))
    x = reals(rng, *some(rng, 1, 4, int(rng.integers(0, 3))), k)
    return contrib(op, [x, packed, largest], N=n, K=k, block_size=block, quant_type=pick(rng, (0, 1)))


# --- positions and states -----------------------------------------------------------------------------------


@makes("MRotaryEmbedding")
def mrotary_embedding(rng: Random, op: str) -> Case:
    batch, heads, steps, angles = some(rng, 1, 5, 4)
    width = 2 * angles + (2 if chance(rng, 0.3) else 0)
    parts = np.sort(rng.integers(0, angles + 1, 2))
    section = [int(n) for n in np.diff([0, *parts, angles])]
    is_flat, is_partial = chance(rng), width > 2 * angles
    x = reals(rng, batch, steps, heads * width) if is_flat else reals(rng, batch, heads, steps, width)
    places = rng.integers(0, 9, [3, batch, steps])
    return contrib(
        op,
        [x, places, Constant(reals(rng, 9, angles)), Constant(reals(rng, 9, angles))],
        mrope_section=section,
        mrope_layout=pick(rng, (0, 1)),
        interleaved=pick(rng, (0, 1)),
        num_heads=heads if is_flat or is_partial else None,
        rotary_embedding_dim=2 * angles if is_partial else None,
    )


@makes("CausalConvWithState")
def causal_convolution(rng: Random, op: str) -> Case:
    batch, channels, steps, taps = some(rng, 1, 5, 4)
    dilation, last = int(rng.integers(1, 4)), pick(rng, (0, 1))
    kept = (taps - 1) * dilation
    turn = (lambda x: x.transpose(0, 2, 1).copy()) if last else np.asarray
    return contrib(
        op,
        [
            turn(reals(rng, batch, channels, steps)),
            Constant(reals(rng, channels, 1, taps)),
            Constant(reals(rng, channels)) if chance(rng) else None,
            turn(reals(rng, batch, channels, kept)) if chance(rng) else None,
        ],
        outputs=2,
        activation=pick(rng, (None, "silu", "swish", "none")),
        channels_last=last,
        dilation=dilation,
    )


@makes("LinearAttention")
def linear_attention(rng: Random, op: str) -> Case:
    rule = pick(rng, ("linear", "gated", "delta", "gated_delta"))
    batch, steps, width, inner = some(rng, 1, 4, 4)
    heads, groups = pick(rng, ((4, 2), (2, 2), (3, 1), (2, 4)))
    is_gated, is_delta = rule.startswith("gated"), rule.endswith("delta")
    decay = -rng.uniform(0, 1, [batch, steps, groups * pick(rng, (1, width))]).astype(F32)
    beta = rng.uniform(0, 1, [batch, steps, groups]).astype(F32)
    return contrib(
        op,
        [
            reals(rng, batch, steps, heads * width),
            reals(rng, batch, steps, groups * width) / F32(2),
            reals(rng, batch, steps, groups * inner),
            reals(rng, batch, groups, width, inner) if chance(rng) else None,
            decay if is_gated else None,
            beta if is_delta else None,
        ],
        outputs=2,
        tolerance=1e-4,
        q_num_heads=heads,
        kv_num_heads=groups,
        update_rule=rule,
        scale=pick(rng, (None, 0.3)),
    )


# --- elements -----------------------------------------------------------------------------------------------


@makes("UnfoldTensor")
def unfold_tensor(rng: Random, op: str) -> Case:
    shape = some(rng, 1, 6, int(rng.integers(1, 4)))
    dim = int(rng.integers(0, len(shape)))
    size = int(rng.integers(1, shape[dim] + 1))
    return contrib(
        op, [numbers(rng, shape, pick(rng, (F32, I64)))], dim=dim, size=size, step=pick(rng, (1, 2, 3))
    )


@makes("Unique")
def unique(rng: Random, op: str) -> Case:
    return contrib(op, [numbers(rng, [int(rng.integers(1, 20))], F32)], outputs=3)
