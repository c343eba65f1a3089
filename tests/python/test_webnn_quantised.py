"""Weights that graphs keep quantised."""

import numpy as np
import pytest
import webnn

RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 256)).astype(np.float32)
W = RNG.standard_normal((256, 128)).astype(np.float32)


def build(context):
    builder = context.create_graph_builder()
    x = builder.input("x", list(X.shape), "float32")
    return builder.build({"y": builder.relu(builder.matmul(x, builder.constant(W)))})


def relative_error(context, graph):
    expected = np.maximum(X.astype(np.float64) @ W, 0)
    y = context.compute(graph, {"x": X})["y"]
    return np.linalg.norm(y - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize(
    ("options", "low", "high"),
    [
        ({}, 0, 1e-6),
        ({"power_preference": "high-performance"}, 0, 1e-6),
        ({"power_preference": "low-power"}, 1e-4, 0.01),
        ({"power_preference": "low-power", "weights": "as-given"}, 0, 1e-6),
        ({"weights": "q8_0"}, 1e-4, 0.01),
        ({"weights": "q4_0"}, 0.01, 0.15),
    ],
)
def test_products_are_as_accurate_as_their_weights(options, low, high):
    context = webnn.ML().create_context(accelerated=False, **options)
    assert low <= relative_error(context, build(context)) <= high


def test_products_round_their_inputs_too_where_the_format_was_asked_for():
    by_name = webnn.ML().create_context(accelerated=False, weights="q8_0")
    low_power = webnn.ML().create_context("low-power", False)
    graphs = [build(by_name), build(low_power)]
    assert ["round_a=true" in str(graph) for graph in graphs] == [True, False]
    rounded, exact = (c.compute(g, {"x": X})["y"] for c, g in zip([by_name, low_power], graphs, strict=True))
    assert np.linalg.norm(rounded - exact) <= 0.01 * np.linalg.norm(exact)


def test_a_quantised_graph_is_saved_small_and_loads_to_the_same_values(tmp_path):
    context = webnn.ML().create_context("low-power", False)
    graph = build(context)
    assert "q8_0" in str(graph)
    assert (graph.operation_count, graph.operand_count) == (2, 4)
    graph.save(str(tmp_path / "small.hrg"))
    assert (tmp_path / "small.hrg").stat().st_size < 1.2 * W.size * 34 / 32
    plain = webnn.ML().create_context(accelerated=False)
    again = plain.load_graph(str(tmp_path / "small.hrg"))
    feeds = {"x": X}
    np.testing.assert_array_equal(plain.compute(again, feeds)["y"], context.compute(graph, feeds)["y"])


def test_small_weights_stay_as_they_are(context):
    low_power = webnn.ML().create_context("low-power", False)
    builder = low_power.create_graph_builder()
    x = builder.input("x", [8, 256], "float32")
    graph = builder.build({"y": builder.matmul(x, builder.constant(W[:, :32]))})
    assert "q8_0" not in str(graph)


def test_dequantised_constants_are_read_as_blocks_without_loss(context):
    builder = context.create_graph_builder()
    x = builder.input("x", list(X.shape), "float32")
    whole = RNG.integers(-128, 128, (256, 128)).astype(np.int8)
    scale = np.float32(2.0) ** RNG.integers(-6, -2, (8, 128)).astype(np.float32)
    matrix = builder.dequantize_linear(
        builder.constant(whole), builder.constant(scale), builder.constant(np.zeros((8, 128), np.int8))
    )
    graph = builder.build({"y": builder.matmul(x, matrix)})
    assert "q8_0" in str(graph)
    expected = X.astype(np.float64) @ (whole * np.repeat(scale, 32, axis=0)).astype(np.float64)
    np.testing.assert_allclose(context.compute(graph, {"x": X})["y"], expected, rtol=1e-5, atol=1e-3)


def test_unknown_formats_are_named():
    with pytest.raises(ValueError, match="weights 'q2' is none of as-given, q8_0, q4_0"):
        webnn.ML().create_context(weights="q2")
