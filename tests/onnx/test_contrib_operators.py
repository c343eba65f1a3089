"""Operators of ONNX Runtime's optimisers for which its CPU has no kernel, and packed forms of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from operator_cases_base import LARGEST_I8, MICROSOFT, Case, Constant
from peers import on_headrace, on_onnx_runtime
from random_cases_contrib import reals, scalar

RNG = np.random.default_rng(0)


def y_of(op: str, *inputs: np.ndarray, outputs: int = 1, **attributes: object) -> np.ndarray:
    case = Case(op, list(inputs), 18, outputs, MICROSOFT, attributes)
    results = on_headrace(case.model(), case.feeds)
    return results["y0"] if outputs == 1 else list(results.values())


def in_onnx(op: str, *inputs: np.ndarray, **attributes: object) -> np.ndarray:
    """ONNX's own operator on ONNX Runtime."""
    case = Case(op, list(inputs), 21, 1, "", attributes)
    return on_onnx_runtime(case.model(), case.feeds)["y0"]


def first(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(x, -1, 1)


def last(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(x, 1, -1)


def near(actual: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_biases_are_added() -> None:
    x, bias, skip = reals(RNG, 2, 3, 4), reals(RNG, 4), reals(RNG, 2, 3, 4)
    near(y_of("BiasAdd", x, bias, skip), x + bias + skip)
    wide = reals(RNG, 2, 3, 8)
    left, right = np.split(wide + 1, 2, axis=2)
    near(y_of("BiasSplitGelu", wide, np.ones(8, np.float32)), left * in_onnx("Gelu", right))


@pytest.mark.parametrize(("op", "opset"), [("SimplifiedLayerNormalization", 17), ("LayerNormalization", 12)])
def test_what_the_optimizer_writes_into_onnxs_own_domain(op: str, opset: int) -> None:
    case = Case(op, [reals(RNG, 2, 3, 8), reals(RNG, 8)], opset, 1, "", {"axis": -1, "epsilon": 1e-5})
    near(on_headrace(case.model(), case.feeds)["y0"], on_onnx_runtime(case.model(), case.feeds)["y0"])


@pytest.mark.parametrize("inner", [0, 1])
def test_biases_of_softmax_lack_outer_or_inner_axes(inner: int) -> None:
    x = reals(RNG, 2, 3, 4, 5)
    bias = reals(RNG, 2, 4, 5) if inner else reals(RNG, 3, 4, 5)
    whole = x + (bias[:, None] if inner else bias)
    y = y_of("BiasSoftmax", x, bias, axis=3 if not inner else 2, is_inner_broadcast=inner)
    if inner:
        near(y, in_onnx("Softmax", whole.reshape(2, 3, 20), axis=2).reshape(x.shape))
    else:
        near(y, in_onnx("Softmax", whole, axis=3))


@pytest.mark.parametrize("channels_last", [0, 1])
def test_groups_of_channels_are_normalized(channels_last: int) -> None:
    x, scale, bias = reals(RNG, 2, 4, 3, 5), reals(RNG, 4), reals(RNG, 4)
    skip = reals(RNG, *x.shape)
    options = {"groups": 2, "channels_last": channels_last, "activation": 1, "epsilon": 1e-5}
    turn = last if channels_last else np.asarray

    def expected(x: np.ndarray) -> np.ndarray:
        y = in_onnx("GroupNormalization", x, scale, bias, num_groups=2)
        return turn(y / (1 + np.exp(-y)))

    near(y_of("GroupNorm", turn(x), scale, bias, **options), expected(x))
    y, total = y_of("SkipGroupNorm", turn(x), scale, bias, turn(skip), scale, outputs=2, **options)
    near(total, turn(x + skip + scale.reshape(1, 4, 1, 1)))
    near(y, expected(x + skip + scale.reshape(1, 4, 1, 1)))


def test_convolutions_of_channels_that_lie_last() -> None:
    x, weight, bias = reals(RNG, 1, 3, 6, 5), reals(RNG, 4, 3, 3, 3), reals(RNG, 4)
    plain = in_onnx("Conv", x, weight, bias, pads=[1, 1, 1, 1])
    near(y_of("NhwcConv", last(x), last(weight), bias, pads=[1, 1, 1, 1]), last(plain))
    more = reals(RNG, *plain.shape)
    fused = y_of("NhwcFusedConv", last(x), weight, bias, last(more), pads=[1, 1, 1, 1], activation="Relu")
    near(fused, last(np.maximum(plain + more, 0)))


def test_products_with_an_activation_of_parameters() -> None:
    a, b = reals(RNG, 2, 3, 4), reals(RNG, 2, 5, 4)
    y = y_of("FusedMatMulActivation", a, b, transB=1, activation="LeakyRelu", activation_alpha=0.3)
    product = a @ b.transpose(0, 2, 1)
    near(y, np.where(product > 0, product, 0.3 * product))


def test_means_of_whole_numbers() -> None:
    x = np.array([[10, 20], [30, 50]], np.uint8)
    inputs = [x, scalar(0.5), scalar(10, np.uint8), scalar(0.25), scalar(3, np.uint8)]
    assert y_of("QLinearReduceMean", *inputs, axes=[1], keepdims=0).tolist() == [13, 63]


def test_real_scaled_silu() -> None:
    x, scale = reals(RNG, 3, 4), reals(RNG, 4)
    near(y_of("ScaledSiLU", x, scale, alpha=1.5), x / (1 + np.exp(-1.5 * x)) * scale)


def test_lstms_with_quantized_weights() -> None:
    """To what the rounding of its operands leaves of it on ONNX Runtime."""
    hidden = 4
    w = RNG.integers(-LARGEST_I8, LARGEST_I8 + 1, [1, 3, 4 * hidden]).astype(np.int8)
    r = RNG.integers(-LARGEST_I8, LARGEST_I8 + 1, [1, hidden, 4 * hidden]).astype(np.int8)
    scale, zero = Constant(np.array([0.02], np.float32)), Constant(np.zeros(1, np.int8))
    inputs = [
        reals(RNG, 5, 2, 3),
        Constant(w),
        Constant(r),
        None,
        None,
        None,
        None,
        None,
        scale,
        zero,
        scale,
        zero,
    ]
    case = Case("DynamicQuantizeLSTM", inputs, 18, 3, MICROSOFT, {"hidden_size": hidden})
    expected, actual = on_onnx_runtime(case.model(), case.feeds), on_headrace(case.model(), case.feeds)
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, atol=0.03)


def test_quantized_embeddings() -> None:
    width, rng = 4, np.random.default_rng(1)
    tables = [rng.integers(0, 256, shape).astype(np.uint8) for shape in ([9, width], [8, width], [2, width])]
    weights = [rng.integers(0, 256, width).astype(np.uint8) for _ in range(2)]
    ids, segments = rng.integers(0, 9, [2, 5]).astype(np.int32), rng.integers(0, 2, [2, 5]).astype(np.int32)
    inputs = [ids, segments, *map(Constant, tables + weights), None]
    inputs += [scalar(0.02)] * 5 + [scalar(100, np.uint8)] * 5
    case = Case("QEmbedLayerNormalization", inputs, 18, 2, MICROSOFT, {"epsilon": 1e-5})
    expected, actual = on_onnx_runtime(case.model(), case.feeds), on_headrace(case.model(), case.feeds)
    near(actual["y0"], expected["y0"])
    assert np.array_equal(actual["y1"], expected["y1"])


def test_whole_numbers_of_two_bits_are_tables_and_matrices() -> None:
    packed = RNG.integers(0, 256, [3, 1, 4]).astype(np.uint8)
    whole = np.stack([packed >> shift & 3 for shift in (0, 2, 4, 6)], axis=-1).reshape(3, 16)
    matrix = (whole - 2.0) * 0.5
    x, scales = reals(RNG, 2, 16), Constant(np.full(3, 0.5, np.float32))
    near(y_of("MatMulNBits", x, Constant(packed), scales, K=16, N=3, bits=2, block_size=16), x @ matrix.T)
    table = Constant(packed.reshape(3, 4))
    columns = Constant(np.full([3, 1], 0.5, np.float32))
    taken = y_of(
        "GatherBlockQuantized", table, np.array([2, 0]), columns, bits=2, block_size=16, quantize_axis=1
    )
    near(taken, matrix[[2, 0]])


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", ["none", "bytes", "real"])
@pytest.mark.parametrize("is_ordered", [False, True])
def test_matrices_of_few_bits_have_zero_points_of_all_forms_and_scales_in_any_order(
    bits: int, zeros: str, is_ordered: bool
) -> None:
    """In NumPy: ONNX Runtime lacks some of these."""
    rng = np.random.default_rng(3)
    n, blocks, block = 5, 4, 16
    k, most = blocks * block, 2**bits - 1
    whole = rng.integers(0, most + 1, [n, k])
    scales = rng.uniform(0.01, 0.1, [n, blocks]).astype(np.float32)
    middle = np.full([n, blocks], 2.0 ** (bits - 1))
    if zeros == "bytes":
        middle = rng.integers(0, most + 1, [n, blocks]).astype(np.float64)
    elif zeros == "real":
        middle = rng.uniform(0, most, [n, blocks]).astype(np.float32).astype(np.float64)
    order = rng.permutation(k) // block if is_ordered else np.arange(k) // block
    matrix = (whole - middle[:, order]) * scales[:, order]

    def packed(numbers: np.ndarray) -> np.ndarray:
        parts = numbers.astype(np.uint8).reshape(*numbers.shape[:-1], -1, 8 // bits)
        return sum(parts[..., i] << (bits * i) for i in range(8 // bits)).astype(np.uint8)

    stored = {"none": None, "bytes": packed(middle).ravel(), "real": middle.astype(np.float32).ravel()}[zeros]
    x = reals(rng, 3, k)
    y = y_of(
        "MatMulNBits",
        x,
        Constant(packed(whole).reshape(n, blocks, -1)),
        Constant(scales.ravel()),
        None if stored is None else Constant(stored),
        Constant(order.astype(np.int32)) if is_ordered else None,
        K=k,
        N=n,
        bits=bits,
        block_size=block,
    )
    near(y, x @ matrix.T)


def test_operators_of_onnxs_own_kind() -> None:
    x = reals(RNG, 3, 3)
    near(y_of("Trilu", x), np.triu(x))
    assert y_of("ExpandDims", x, Constant(np.array([1], np.int32))).shape == (3, 1, 3)
    near(y_of("GatherND", x, np.array([[1, 2]])), x[1:2, 2])
    near(
        y_of("MatMulInteger16", *(np.full([2, 2], 300, np.int16) for _ in range(2))), np.full([2, 2], 180000)
    )
    start, limit, step = (Constant(np.array(n, np.int32)) for n in (1, 9, 3))
    assert y_of("Range", start, limit, step).tolist() == [1, 4, 7]
    near(y_of("Pad", x, Constant(np.array([0, 1, 0, 0])), mode="constant"), np.pad(x, [(0, 0), (1, 0)]))
    grid = RNG.uniform(-1, 1, [1, 2, 2, 2]).astype(np.float32)
    image = reals(RNG, 1, 1, 4, 4)
    near(y_of("GridSample", image, grid), in_onnx("GridSample", image, grid))
    near(
        y_of("QLinearConv", *_quantized_image()),
        on_onnx_runtime(Case("QLinearConv", _quantized_image(), 10).model(), {"x0": _quantized_image()[0]})[
            "y0"
        ],
    )


def _quantized_image() -> list:
    rng = np.random.default_rng(2)
    x = rng.integers(0, 256, [1, 2, 4, 4]).astype(np.uint8)
    w = Constant(rng.integers(0, 256, [3, 2, 2, 2]).astype(np.uint8))
    zero = scalar(120, np.uint8)
    return [x, scalar(0.02), zero, w, scalar(0.02), zero, scalar(0.05), zero]


def test_packed_operands_are_those_of_heads() -> None:
    batch, steps, heads, width = 2, 3, 2, 4
    parts = [reals(RNG, batch, steps, heads, width) for _ in range(3)]
    flat = [x.reshape(batch, steps, heads * width) for x in parts]
    expected = y_of("MultiHeadAttention", *flat, num_heads=heads)
    near(y_of("MultiHeadAttention", np.stack(parts, axis=3), num_heads=heads), expected)
    near(y_of("MultiHeadAttention", flat[0], np.stack(parts[1:], axis=3), num_heads=heads), expected)
    apart = [x.transpose(0, 2, 1, 3).copy() for x in parts[1:]]
    near(y_of("MultiHeadAttention", flat[0], *apart, num_heads=heads), expected)


def test_packed_operands_of_groups_are_those_apart() -> None:
    query, key, value = reals(RNG, 2, 3, 8), reals(RNG, 2, 3, 4), reals(RNG, 2, 3, 4)
    rest = [None, None, np.array([2, 2], np.int32), scalar(3, np.int32)]
    options = {"num_heads": 2, "kv_num_heads": 1, "outputs": 3}
    expected = y_of("GroupQueryAttention", query, key, value, *rest, **options)
    packed = np.concatenate([query, key, value], axis=2)
    actual = y_of("GroupQueryAttention", packed, None, None, *rest, **options)
    for a, e in zip(actual, expected, strict=True):
        near(a, e)


def test_new_keys_of_groups_go_behind_each_sequences_own() -> None:
    """Two sequences, of which the second one's cache has fewer rows that count."""
    past = [reals(RNG, 2, 1, 4, 4) for _ in range(2)]
    new = [reals(RNG, 2, 1, 4) for _ in range(3)]
    lengths = np.array([4, 2], np.int32)
    options = {"num_heads": 1, "kv_num_heads": 1, "outputs": 3}
    y, keys, _ = y_of("GroupQueryAttention", *new, *past, lengths, scalar(5, np.int32), **options)
    near(keys[0, 0, 4], new[1][0, 0])
    near(keys[1, 0, 2], new[1][1, 0])
    alone = [new[0][1:], new[1][1:], new[2][1:], *(x[1:, :, :2] for x in past)]
    one = y_of("GroupQueryAttention", *alone, lengths[1:], scalar(3, np.int32), **options)
    near(y[1:], one[0])


# --- experts: what ONNX Runtime has kernels for on other devices only


def _experts(*shapes: tuple[int, ...]) -> list[Constant]:
    return [Constant(reals(RNG, *shape)) for shape in shapes]


def _silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def _of_two_experts(rows: np.ndarray, scores: np.ndarray, result_of: Any) -> np.ndarray:
    """The best two of each row, weighted by the softmax of their scores; result_of(expert, row)."""
    y = []
    for row, given in zip(rows, scores, strict=True):
        best = np.argsort(-given)[:2]
        weights = np.exp(given[best]) / np.exp(given[best]).sum()
        y.append(sum(w * result_of(e, row) for w, e in zip(weights, best, strict=True)))
    return np.array(y)


@pytest.mark.parametrize("activation", ["silu", "swiglu"])
def test_experts_with_a_third_matrix_that_gates(activation: str) -> None:
    x, scores = reals(RNG, 5, 8), reals(RNG, 5, 4)
    first, second, third = _experts((4, 6, 8), (4, 8, 6), (4, 6, 8))
    options = {"k": 2, "normalize_routing_weights": 1, "activation_type": activation}
    y = y_of("MoE", x, scores, first, None, second, None, third, **options)

    def result(e: int, row: np.ndarray) -> np.ndarray:
        return second.value[e] @ (_silu(first.value[e] @ row) * (third.value[e] @ row))

    near(y, _of_two_experts(x, scores, result))


@pytest.mark.parametrize("bits", [2, 8])
def test_experts_of_few_bits_are_not_rounded_further(bits: int) -> None:
    """ONNX Runtime rounds what such blocks are multiplied with to 8 bits."""
    block, x, scores = 16, reals(RNG, 3, 32), reals(RNG, 3, 4)
    layers, matrices = [], []
    for shape in ((4, 48, 32), (4, 32, 48)):
        codes = RNG.integers(0, 1 << bits, shape)
        scales = (RNG.uniform(0.1, 0.5, (*shape[:2], shape[2] // block)) / (1 << bits)).astype(np.float32)
        matrices.append((codes - (1 << (bits - 1))) * np.repeat(scales, block, 2))
        each = 8 // bits
        packed = (codes.reshape(*shape[:2], -1, each) << (bits * np.arange(each))).sum(-1)
        layers += [Constant(packed.astype(np.uint8)), Constant(scales), None]
    options = {"k": 2, "expert_weight_bits": bits, "block_size": block, "activation_type": "silu"}
    first, second = matrices
    expected = _of_two_experts(x, scores, lambda e, row: second[e] @ _silu(first[e] @ row))
    near(y_of("QMoE", x, scores, *layers[:-1], **options), expected)


def test_halves_of_swiglu_lie_beside_one_another_or_by_turns() -> None:
    x, scores = reals(RNG, 2, 3, 8), reals(RNG, 6, 4)
    (first, second), bias = _experts((4, 12, 8), (4, 8, 6)), Constant(reals(RNG, 4, 12))
    options = {"k": 2, "activation_type": "swiglu", "activation_alpha": 1.7, "swiglu_limit": 2.0}
    by_turns = y_of("MoE", x, scores, first, bias, second, swiglu_fusion=1, **options)
    order = [*range(0, 12, 2), *range(1, 12, 2)]
    beside = [Constant(c.value[:, order].copy()) for c in (first, bias)]
    np.testing.assert_allclose(
        y_of("MoE", x, scores, *beside, second, swiglu_fusion=2, **options), by_turns, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("op", "inputs", "options", "message"),
    [
        ("MoE", ["x", "scores", "fc1", None, "fc2"], {"use_sparse_mixer": 1}, "use_sparse_mixer is 1"),
        ("MoE", ["x", "scores", "fc1", None, "fc2"], {"k": 5}, "k is 5; there are 4 experts"),
        ("MoE", ["x", "scores", "fc2", None, "fc1"], {}, "the input is .*; the experts are of 6 values"),
        (
            "MoE",
            ["x", "scores", "fc1", None, "fc2"],
            {"activation_type": "tanh"},
            "activation_type is 'tanh'",
        ),
        (
            "QMoE",
            ["x", "scores", "bytes", "scales", None, "bytes", "scales"],
            {"quant_type": "fp4"},
            "quant_type is 'fp4' .* Quantise the experts to integers of 2, 4 or 8 bits",
        ),
        (
            "QMoE",
            ["x", "scores", "bytes", "scales", None, "bytes", "scales"],
            {"expert_weight_bits": 3},
            "expert_weight_bits is 3; 2, 4 and 8 are read",
        ),
        (
            "QMoE",
            ["x", "scores", "bytes", "scales", None, "bytes", "scales"],
            {"expert_weight_bits": 8, "block_size": 16},
            "block_size is 16, and a row has 8 numbers",
        ),
        (
            "MatMulBnb4",
            ["x", "bytes", "scales"],
            {"N": 8, "K": 8, "block_size": 16, "quant_type": 2},
            "quant_type is 2; it is 0",
        ),
        (
            "MatMulBnb4",
            ["x", "bytes", "scales"],
            {"N": 80, "K": 80, "block_size": 16, "quant_type": 1},
            "the weights .* numbers of 3200",
        ),
        ("CausalConvWithState", ["image", "taps"], {"state_window": 2}, "state_window is 2; only 0 is read"),
        ("CausalConvWithState", ["image", "taps"], {"dilation": 0}, "dilation is 0; at least 1"),
        (
            "MRotaryEmbedding",
            ["heads", "places", "angles", "angles"],
            {"mrope_section": [1, 2]},
            r"mrope_section is \[1, 2\]; it must be three numbers of which 2 are the sum",
        ),
        ("UnfoldTensor", ["image"], {"dim": 2, "size": 9}, "size is 9 and step 1"),
    ],
)
def test_what_is_not_computed_is_refused(
    op: str, inputs: list[str | None], options: dict, message: str
) -> None:
    known = {
        "x": reals(RNG, 3, 8),
        "scores": reals(RNG, 3, 4),
        "fc1": Constant(reals(RNG, 4, 6, 8)),
        "fc2": Constant(reals(RNG, 4, 8, 6)),
        "bytes": Constant(np.zeros((4, 8, 8), np.uint8)),
        "scales": Constant(np.ones((4, 8), np.float32)),
        "image": reals(RNG, 2, 3, 5),
        "taps": Constant(reals(RNG, 3, 1, 2)),
        "heads": reals(RNG, 1, 2, 3, 4),
        "places": np.zeros((3, 1, 3), np.int64),
        "angles": Constant(reals(RNG, 5, 2)),
    }
    with pytest.raises(ValueError, match=rf"\({op}, com.microsoft .*{message}"):
        given = (known.get(name) if name else None for name in inputs)
        y_of(op, *given, outputs=2 if op == "CausalConvWithState" else 1, **options)


def with_names(op: str, inputs: list, **attributes: object) -> tuple:
    """A model whose dimensions all have names of their own, and its feeds. Constants keep their shapes."""
    given = Case(op, inputs, 18, 1, MICROSOFT, attributes)
    model = given.model()
    for value in model.graph.input:
        for i, d in enumerate(value.type.tensor_type.shape.dim):
            d.dim_param = f"{value.name}_{i}"
    return model, given.feeds


def test_biases_of_projections_have_queries_of_an_open_width() -> None:
    flat = [reals(RNG, 2, 5, 16), reals(RNG, 2, 7, 16), reals(RNG, 2, 7, 16)]
    model, feeds = with_names("MultiHeadAttention", [*flat, Constant(reals(RNG, 48))], num_heads=4)
    near(on_headrace(model, feeds)["y0"], on_onnx_runtime(model, feeds)["y0"])


def test_lengths_may_have_a_name_of_their_own() -> None:
    weights = [Constant(reals(RNG, 16, 48)), Constant(reals(RNG, 48))]
    inputs = [reals(RNG, 2, 5, 16), *weights, np.array([5, 3], np.int32)]
    model, feeds = with_names("Attention", inputs, num_heads=4)
    near(on_headrace(model, feeds)["y0"], on_onnx_runtime(model, feeds)["y0"])
    feeds["x3"] = np.array([5, 3, 1], np.int32)
    with pytest.raises(ValueError, match=r"[Aa]ttention"):
        on_headrace(model, feeds)
