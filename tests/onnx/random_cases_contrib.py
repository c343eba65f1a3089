"""Random cases of ONNX Runtime's own operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from operator_cases_base import F32, F64, I8, I32, I64, LARGEST_I8, MICROSOFT, U8, Case, Constant
from random_cases_base import MAKERS, Random, chance, pick, some


def contrib(
    op: str, inputs: list[Any], outputs: int = 1, tolerance: float = 2e-5, ulps: int = 0, **attributes: Any
) -> Case:
    given = {key: value for key, value in attributes.items() if value is not None}
    return Case(op, inputs, 18, outputs, MICROSOFT, given, tolerance, ulps)


def makes(*names: str) -> Any:
    def register(function: Any) -> Any:
        for name in names:
            MAKERS[f"{MICROSOFT}.{name}"] = lambda rng, name=name: function(rng, name.split("-")[0])
        return function

    return register


def reals(rng: Random, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(F32)


def scalar(value: Any, dtype: Any = F32) -> Constant:
    return Constant(np.array(value, dtype))


def whole(rng: Random, shape: list[int], dtype: Any) -> np.ndarray:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def weights(rng: Random, shape: list[int], dtype: Any) -> np.ndarray:
    x = whole(rng, shape, dtype)
    return x.clip(-LARGEST_I8, LARGEST_I8) if dtype == I8 else x


def scale(rng: Random, *shape: int) -> Constant:
    return Constant(np.asarray(rng.uniform(0.01, 0.1, shape)).astype(F32))


def zero(rng: Random, dtype: Any) -> Constant:
    return scalar(int(rng.integers(0, 100)), dtype)


# --- whole numbers ----------------------------------------------------------------------------------------


def _operand(rng: Random, shape: list[int], dtype: Any) -> list[Any]:
    return [whole(rng, shape, dtype), scale(rng), zero(rng, dtype)]


@makes("QLinearSigmoid", "QLinearLeakyRelu")
def qlinear_unary(rng: Random, op: str) -> Case:
    dtype = pick(rng, (U8, I8))
    alpha = 0.1 if op == "QLinearLeakyRelu" else None
    inputs = [*_operand(rng, some(rng, 1, 5, 2), dtype), scale(rng), zero(rng, dtype)]
    return contrib(op, inputs, ulps=1, alpha=alpha)


@makes("QLinearSoftmax")
def qlinear_softmax(rng: Random, op: str) -> Case:
    dtype = pick(rng, (U8, I8))
    inputs = [
        *_operand(rng, some(rng, 2, 5, 3), dtype),
        scalar(1 / 256),
        scalar(0 if dtype == U8 else -128, dtype),
    ]
    return contrib(op, inputs, ulps=1, axis=pick(rng, (-1, 1, 2)), opset=pick(rng, (11, 13)))


@makes("QLinearAveragePool", "QLinearGlobalAveragePool")
def qlinear_pool(rng: Random, op: str) -> Case:
    dtype, last = pick(rng, (U8, I8)), pick(rng, (0, 1))
    n, c, h, w = some(rng, 3, 6, 4)
    shape = [n, h, w, c] if last else [n, c, h, w]
    inputs = [*_operand(rng, shape, dtype), scale(rng), zero(rng, dtype)]
    if op == "QLinearGlobalAveragePool":
        return contrib(op, inputs, ulps=1, channels_last=last)
    window = {
        "kernel_shape": some(rng, 1, 3, 2),
        "strides": some(rng, 1, 2, 2),
        "ceil_mode": pick(rng, (0, 1)),
    }
    return contrib(op, inputs, ulps=1, channels_last=last, count_include_pad=pick(rng, (0, 1)), **window)


@makes("QLinearConcat")
def qlinear_concat(rng: Random, op: str) -> Case:
    dtype, axis = pick(rng, (U8, I8)), pick(rng, (0, 1, -1))
    shape, inputs = some(rng, 1, 4, 3), [scale(rng), zero(rng, dtype)]
    for _ in range(int(rng.integers(2, 4))):
        shape = [*shape]
        shape[axis] = int(rng.integers(1, 4))
        inputs += _operand(rng, shape, dtype)
    return contrib(op, inputs, ulps=1, axis=axis)


@makes("QLinearAdd", "QLinearMul")
def qlinear_binary(rng: Random, op: str) -> Case:
    dtype, shape = pick(rng, (U8, I8)), some(rng, 1, 4, 3)
    other = shape[int(rng.integers(0, 3)) :]
    inputs = [*_operand(rng, shape, dtype), *_operand(rng, other, dtype), scale(rng), zero(rng, dtype)]
    return contrib(op, inputs, ulps=1)


@makes("QLinearWhere")
def qlinear_where(rng: Random, op: str) -> Case:
    dtype, shape = pick(rng, (U8, I8)), some(rng, 1, 4, 2)
    condition = rng.integers(0, 2, shape).astype(bool)
    inputs = [
        condition,
        *_operand(rng, shape, dtype),
        *_operand(rng, shape, dtype),
        scale(rng),
        zero(rng, dtype),
    ]
    return contrib(op, inputs, ulps=1)


@makes("QGemm")
def qgemm(rng: Random, op: str) -> Case:
    dtype, (m, n, k) = pick(rng, (U8, I8)), some(rng, 1, 40, 3)
    across, down = pick(rng, (0, 1)), pick(rng, (0, 1))
    a, b = whole(rng, [k, m] if down else [m, k], dtype), weights(rng, [n, k] if across else [k, n], I8)
    wide = chance(rng)
    c = Constant(rng.integers(-500, 500, n).astype(I32)) if chance(rng) else None
    inputs = [a, scale(rng), zero(rng, dtype), Constant(b), scale(rng, n) if wide else scale(rng)]
    inputs += [Constant(np.zeros(n, I8)) if wide else scalar(3, I8), c]
    if chance(rng):
        inputs += [scalar(3.0), zero(rng, dtype)]
    return contrib(op, inputs, ulps=1, transA=down, transB=across, alpha=pick(rng, (None, 0.5)))


@makes("MatMulIntegerToFloat", "DynamicQuantizeMatMul")
def product_to_float(rng: Random, op: str) -> Case:
    m, n, k = some(rng, 1, 40, 3)
    b, each = Constant(weights(rng, [k, n], pick(rng, (U8, I8)))), chance(rng)
    b_scale = scale(rng, n) if each else scale(rng)
    b_zero = Constant(whole(rng, [n], b.value.dtype)) if each else zero(rng, b.value.dtype)
    b_zero = b_zero if chance(rng, 0.7) else None
    bias = Constant(reals(rng, n)) if chance(rng) else None
    if op == "DynamicQuantizeMatMul":
        return contrib(op, [reals(rng, m, k), b, b_scale, b_zero, bias], tolerance=1e-4)
    a = whole(rng, [m, k], U8)
    inputs = [a, b, scale(rng), b_scale, zero(rng, U8) if chance(rng) else None, b_zero, bias]
    return contrib(op, inputs, tolerance=1e-4)


@makes("GatherBlockQuantized")
def gather_block_quantized(rng: Random, op: str) -> Case:
    rows, blocks, block = int(rng.integers(2, 6)), int(rng.integers(1, 4)), pick(rng, (16, 32))
    bits = pick(rng, (4, 8))
    width = blocks * block * bits // 8
    indices = rng.integers(0, rows, some(rng, 1, 3, int(rng.integers(1, 3)))).astype(pick(rng, (I64, I32)))
    scales = Constant(rng.uniform(0.01, 0.1, [rows, blocks]).astype(F32))
    zeros = Constant(whole(rng, [rows, -(-blocks * bits // 8)], U8)) if chance(rng) else None
    inputs = [Constant(whole(rng, [rows, width], U8)), indices, scales, zeros]
    return contrib(op, inputs, bits=bits, block_size=block, gather_axis=0, quantize_axis=1)


@makes("MatMulNBits")
def matmul_n_bits(rng: Random, op: str) -> Case:
    n, blocks, block, bits = (
        int(rng.integers(1, 9)),
        int(rng.integers(1, 4)),
        pick(rng, (16, 32)),
        pick(rng, (4, 8)),
    )
    k = blocks * block
    zeros = Constant(whole(rng, [n * -(-blocks * bits // 8)], U8)) if chance(rng) else None
    is_ordered = zeros is None and chance(rng)  # with both, ONNX Runtime forgets the zero points
    inputs = [
        reals(rng, 2, int(rng.integers(1, 4)), k),
        Constant(whole(rng, [n, blocks, block * bits // 8], U8)),
        Constant(rng.uniform(0.01, 0.1, [n * blocks]).astype(F32)),
        zeros,
        Constant(rng.integers(0, blocks, k).astype(I32)) if is_ordered else None,
    ]
    return contrib(op, inputs, tolerance=1e-4, K=k, N=n, bits=bits, block_size=block)


# --- attention --------------------------------------------------------------------------------------------


def _mask(rng: Random, batch: int, steps: int, total: int) -> np.ndarray | None:
    """A mask whose every row leaves the first key."""
    kind = pick(rng, ("none", "lengths", "keys", "queries"))
    if kind == "none":
        return None
    if kind == "lengths":
        return rng.integers(1, total + 1, batch).astype(I32)
    mask = rng.integers(0, 2, [batch, total] if kind == "keys" else [batch, steps, total]).astype(I32)
    mask[..., 0] = 1
    return mask


@makes("Attention", "QAttention")
def self_attention(rng: Random, op: str) -> Case:
    batch, steps, heads, width, inner = (int(n) for n in rng.integers([1, 1, 1, 2, 1], [4, 6, 4, 6, 9]))
    hidden, before = heads * width, int(rng.integers(0, 4)) if chance(rng, 0.4) else 0
    mask = _mask(rng, batch, steps, before + steps)
    if before and mask is not None and mask.ndim == 1:
        mask = None
    past = reals(rng, 2, batch, heads, before, width) if before else None
    options = {"num_heads": heads, "unidirectional": pick(rng, (0, 1)), "tolerance": 1e-4}
    outputs = 2 if before else 1
    bias = Constant(reals(rng, 3 * hidden))
    if op == "QAttention":
        weight = Constant(weights(rng, [inner, 3 * hidden], I8))
        inputs = [whole(rng, [batch, steps, inner], U8), weight, bias, scalar(0.02), scalar(0.01), mask]
        inputs += [zero(rng, U8), scalar(0, I8), past]
        return contrib(op, inputs, outputs, **options)
    inputs = [reals(rng, batch, steps, inner), Constant(reals(rng, inner, 3 * hidden)), bias, mask, past]
    if chance(rng, 0.4):
        shape = [pick(rng, (1, batch)), pick(rng, (1, heads)), steps, before + steps]
        inputs += [reals(rng, *shape)]
    return contrib(op, inputs, outputs, scale=pick(rng, (None, 0.3)), **options)


@makes("MultiHeadAttention")
def multi_head_attention(rng: Random, op: str) -> Case:
    batch, steps, heads, width, others = (int(n) for n in rng.integers([1, 1, 1, 1, 1], [4, 6, 4, 3, 6]))
    width *= 4
    hidden, before = heads * width, int(rng.integers(1, 4)) if chance(rng, 0.4) else 0
    keys = steps if before else others
    query, key, value = reals(rng, batch, steps, hidden), *(reals(rng, batch, keys, hidden) for _ in range(2))
    bias = Constant(reals(rng, 3 * hidden)) if chance(rng) else None
    mask = rng.integers(0, 2, [batch, before + keys]).astype(I32) if chance(rng) else None
    if mask is not None:
        mask[:, 0] = 1
    extra = reals(rng, 1, heads, steps, before + keys) if chance(rng, 0.3) else None
    past = [reals(rng, batch, heads, before, width) for _ in range(2)] if before else []
    inputs = [query, key, value, bias, mask, extra, *past]
    return contrib(op, inputs, 3 if before else 1, 1e-4, num_heads=heads)


@makes("GroupQueryAttention", "GroupQueryAttention-forms")
def group_query_attention(rng: Random, op: str) -> Case:
    batch, groups, each, width = (int(n) for n in rng.integers([1, 1, 1, 1], [4, 3, 4, 3]))
    width *= 16
    heads, before = groups * each, int(rng.integers(1, 6)) if chance(rng) else 0
    steps = 1 if before else int(rng.integers(1, 6))
    total = before + steps
    query, key, value = (reals(rng, batch, steps, n * width) for n in (heads, groups, groups))
    past = [reals(rng, batch, groups, before, width) for _ in range(2)]
    lengths = np.full(batch, total - 1, I32)
    turned = chance(rng)
    angles = rng.uniform(0, 6, [16, width // 2])
    tables = [Constant(f(angles).astype(F32)) for f in (np.cos, np.sin)] if turned else [None, None]
    inputs = [query, key, value, *past, Constant(lengths), scalar(total, I32), *tables]
    options: dict[str, Any] = {"rotary_interleaved": pick(rng, (0, 1)), "scale": pick(rng, (None, 0.2))}
    if chance(rng, 0.4):
        options["local_window_size"] = int(rng.integers(1, 5))
    if chance(rng, 0.3):
        options["softcap"] = 2.0
    if chance(rng, 0.3):
        options["smooth_softmax"] = 1
    return contrib(
        op, inputs, 3, 1e-4, num_heads=heads, kv_num_heads=groups, do_rotary=int(turned), **options
    )


@makes("RotaryEmbedding")
def rotary_embedding(rng: Random, op: str) -> Case:
    batch, heads, steps, width = (int(n) for n in rng.integers([1, 1, 1, 1], [4, 4, 5, 4]))
    width *= 4
    flat = chance(rng)
    x = reals(rng, batch, steps, heads * width) if flat else reals(rng, batch, heads, steps, width)
    positions = scalar([3], I64) if chance(rng, 0.3) else rng.integers(0, 20, [batch, steps])
    angles = rng.uniform(0, 6, [24, width // 2])
    tables = [Constant(f(angles).astype(F32)) for f in (np.cos, np.sin)]
    return contrib(op, [x, positions, *tables], interleaved=pick(rng, (0, 1)))


@makes("EmbedLayerNormalization")
def embed_layer_normalization(rng: Random, op: str) -> Case:
    batch, steps, width = (int(n) for n in rng.integers([1, 1, 2], [4, 6, 9]))
    has_segments = chance(rng)
    ids = rng.integers(0, 9, [batch, steps]).astype(I32)
    segments = rng.integers(0, 2, [batch, steps]).astype(I32) if has_segments else None
    tables = [Constant(reals(rng, n, width)) for n in (9, 8)]
    third = Constant(reals(rng, 2, width)) if has_segments else None
    mask = np.tril(np.ones([batch, steps]), int(rng.integers(0, 5))).astype(I32) if chance(rng) else None
    inputs = [ids, segments, *tables, third, Constant(reals(rng, width)), Constant(reals(rng, width)), mask]
    return contrib(op, inputs, pick(rng, (2, 3)), 1e-4, epsilon=1e-5)


@makes("Inverse")
def inverse(rng: Random, op: str) -> Case:
    """With a diagonal that leaves no matrix without an inverse."""
    n, dtype = int(rng.integers(1, 7)), pick(rng, (F32, F64))
    x = rng.uniform(-1, 1, [*some(rng, 1, 3, int(rng.integers(0, 3))), n, n]) + n * np.eye(n)
    return contrib(op, [x.astype(dtype)])


@makes("CropAndResize")
def crop_and_resize(rng: Random, op: str) -> Case:
    count, images = int(rng.integers(1, 5)), int(rng.integers(1, 3))
    x = reals(rng, images, int(rng.integers(1, 4)), *some(rng, 1, 8, 2))
    corners = rng.uniform(-0.3, 1.3, [count, 4]) if chance(rng) else rng.integers(0, 5, [count, 4]) / 4
    inputs = [x, corners.astype(F32), rng.integers(0, images, count).astype(I32)]
    inputs.append(Constant(np.array(some(rng, 1, 5, 2), I32)))
    mode, outside = pick(rng, ("bilinear", "nearest", None)), pick(rng, (None, 2.5))
    return contrib(op, inputs, mode=mode, extrapolation_value=outside)


@makes("ConvTransposeWithDynamicPads")
def conv_transpose_with_pads(rng: Random, op: str) -> Case:
    x, weight = reals(rng, 1, 3, *some(rng, 3, 6, 2)), Constant(reals(rng, 3, 2, *some(rng, 2, 3, 2)))
    pads = Constant(np.array(some(rng, 0, 1, 4), I64))
    bias = Constant(reals(rng, 2)) if chance(rng) else None
    return contrib(op, [x, weight, pads, bias], strides=some(rng, 1, 2, 2))


@makes("DecoderMaskedMultiHeadAttention")
def decoder_step(rng: Random, op: str) -> Case:
    """To keys and values of an encoder; test_shared_caches.py has the others."""
    batch, heads, width, others = (int(n) for n in rng.integers([1, 1, 1, 1], [4, 4, 5, 6]))
    query = reals(rng, batch, 1, heads * 4 * width)
    keys, values = (reals(rng, batch, heads, others, 4 * width) for _ in range(2))
    return contrib(op, [query, keys, values], 1, 1e-4, num_heads=heads, scale=pick(rng, (None, 0.3)))


# --- fused ------------------------------------------------------------------------------------------------


@makes("FusedConv")
def fused_conv(rng: Random, op: str) -> Case:
    x, weight = reals(rng, 2, 3, 6, 5), Constant(reals(rng, 4, 3, *some(rng, 1, 3, 2)))
    name = pick(rng, ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"))
    parameters = {"LeakyRelu": [0.2], "Clip": [-0.5, 1.0], "HardSigmoid": [0.3, 0.4]}.get(name)
    bias = Constant(reals(rng, 4)) if chance(rng) else None
    return contrib(op, [x, weight, bias], activation=name, activation_params=parameters)


@makes("FusedMatMul", "TransposeMatMul")
def fused_matmul(rng: Random, op: str) -> Case:
    batch, m, n, k = (int(i) for i in rng.integers(1, 5, 4))
    inputs, options = [], {"alpha": pick(rng, (None, 0.5))}
    for which, rows, columns in (("A", m, k), ("B", k, n)):
        down, inside = pick(rng, (0, 1)), pick(rng, (0, 1)) if op == "FusedMatMul" else 0
        pair = [columns, rows] if down else [rows, columns]
        inputs.append(reals(rng, *([pair[0], batch, pair[1]] if inside else [batch, *pair])))
        options |= {f"trans{which}": down} | ({f"transBatch{which}": inside} if op == "FusedMatMul" else {})
    return contrib(op, inputs, **options)


@makes("FusedGemm")
def fused_gemm(rng: Random, op: str) -> Case:
    m, n, k = some(rng, 1, 6, 3)
    name = pick(rng, ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "Softplus", "Elu"))
    alpha = 0.3 if name in ("LeakyRelu", "Elu") else None
    inputs = [reals(rng, m, k), reals(rng, k, n), reals(rng, n)]
    return contrib(op, inputs, activation=name, activation_alpha=alpha, alpha=0.5)


@makes("NhwcMaxPool")
def channels_last_pool(rng: Random, op: str) -> Case:
    x = whole(rng, [1, 6, 5, int(rng.integers(1, 4))], pick(rng, (U8, I8)))
    return contrib(op, [x], kernel_shape=some(rng, 1, 3, 2), strides=some(rng, 1, 2, 2), pads=[0, 0, 0, 0])


@makes("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def skip_norm(rng: Random, op: str) -> Case:
    shape = [*some(rng, 1, 4, 2), int(rng.integers(2, 9))]
    weights = [Constant(reals(rng, shape[-1])) for _ in range(3)]
    x, skip = reals(rng, *shape), reals(rng, *shape)
    if op == "SkipLayerNormalization":
        return contrib(op, [x, skip, *weights], tolerance=1e-4, epsilon=1e-5)
    return contrib(op, [x, skip, weights[0], weights[1]], tolerance=1e-4, epsilon=1e-5)


@makes("CDist")
def distances(rng: Random, op: str) -> Case:
    m, n, k = some(rng, 1, 6, 3)
    metric = pick(rng, ("euclidean", "sqeuclidean"))
    return contrib(op, [reals(rng, m, k), reals(rng, n, k)], tolerance=1e-3, metric=metric)


# --- texts and speech ---------------------------------------------------------------------------------------


@makes("DynamicTimeWarping")
def dynamic_time_warping(rng: Random, op: str) -> Case:
    costs = reals(rng, *some(rng, 1, 9, 2))
    return contrib(op, [costs[None] if chance(rng) else costs])


@makes("MurmurHash3")
def murmur_hash(rng: Random, op: str) -> Case:
    dtype = pick(rng, (I32, np.uint32, I64, np.uint64, F32, F64))
    shape = some(rng, 1, 5, int(rng.integers(1, 4)))
    x = reals(rng, *shape).astype(dtype) if np.dtype(dtype).kind == "f" else whole(rng, shape, dtype)
    return contrib(op, [x], positive=pick(rng, (None, 0, 1)), seed=pick(rng, (None, 42)))


@makes("NGramRepeatBlock")
def ngram_repeat_block(rng: Random, op: str) -> Case:
    rows, length, words = some(rng, 1, 9, 3)
    return contrib(
        op,
        [rng.integers(0, words, (rows, length)), reals(rng, rows, words)],
        ngram_size=int(rng.integers(1, 4)),
    )


@makes("SampleOp")
def sample(rng: Random, op: str) -> Case:
    return contrib(op, [reals(rng, *some(rng, 1, 4, 3))])


@makes("WordConvEmbedding")
def word_conv_embedding(rng: Random, op: str) -> Case:
    words, length, letters = some(rng, 2, 8, 3)
    filters, width = some(rng, 1, 5, 2)
    window = int(rng.integers(1, length + 1))
    ids = rng.integers(1, letters, (words, length)).astype(I32)
    for row in ids:
        row[int(rng.integers(1, length + 1)) :] = 0
    weights = [reals(rng, filters, 1, window, width), reals(rng, filters), reals(rng, letters, width)]
    return contrib(op, [ids, *map(Constant, weights)])
