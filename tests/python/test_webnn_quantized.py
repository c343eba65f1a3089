"""Weights that graphs keep quantised."""

import subprocess
import sys

import headrace
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


def test_a_quantized_graph_is_saved_small_and_loads_to_the_same_values(tmp_path):
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


def test_dequantized_constants_are_read_as_blocks_without_loss(context):
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


def decoder_block(builder):
    """Products as exporters write them: matmul, transposed weights, gemm with a bias, a rank of 3."""
    x = builder.input("x", [2, 4, 256], "float32")
    w = {
        name: builder.constant((RNG.standard_normal(shape) / 16).astype(np.float32))
        for name, shape in {
            "up": (256, 512),
            "gate": (512, 256),
            "down": (512, 256),
            "head": (320, 256),
        }.items()
    }
    hidden = builder.mul(
        builder.matmul(x, w["up"]), builder.sigmoid(builder.matmul(x, builder.transpose(w["gate"])))
    )
    y = builder.add(x, builder.matmul(hidden, w["down"]))
    bias = builder.constant(RNG.standard_normal(320).astype(np.float32))
    last = builder.reshape(builder.slice(y, [0, 3, 0], [2, 1, 256]), [2, 256])
    return {"y": y, "logits": builder.gemm(last, w["head"], bias, b_transpose=True)}


def size_of(path):
    return sum(other.stat().st_size for other in path.parent.glob(path.stem + ".*"))


@pytest.mark.parametrize("extension", ["hrg", "webnn", "json"])
def test_saving_quantized_makes_the_file_small_and_changes_results_a_little(
    context, builder, tmp_path, extension
):
    graph = builder.build(decoder_block(builder))
    plain, small = tmp_path / f"plain.{extension}", tmp_path / f"small.{extension}"
    graph.save(str(plain))
    graph.save(str(small), quantized=True)
    assert size_of(small) < 0.31 * size_of(plain)
    feeds = {"x": np.random.default_rng(4).standard_normal((2, 4, 256)).astype(np.float32)}
    expected = context.compute(graph, feeds)
    for load in (webnn.MLGraph.load, context.load_graph):
        again = load(str(small))
        results = context.compute(again, feeds)
        for name in ("y", "logits"):
            error = np.linalg.norm(results[name] - expected[name]) / np.linalg.norm(expected[name])
            assert 1e-4 < error < 0.01, name
        assert str(again).count("q8_0") >= 4  # the products read blocks
    assert (context.compute(graph, feeds)["y"] == expected["y"]).all()  # the graph itself stays as it is


@pytest.mark.parametrize("extension", ["webnn", "json"])
def test_every_form_of_a_quantized_graph_holds_the_same_numbers(context, builder, tmp_path, extension):
    graph = builder.build(decoder_block(builder))
    feeds = {"x": np.random.default_rng(4).standard_normal((2, 4, 256)).astype(np.float32)}
    results = []
    for form in ("hrg", extension):
        graph.save(str(tmp_path / f"graph.{form}"), True)
        results.append(context.compute(context.load_graph(str(tmp_path / f"graph.{form}")), feeds))
    for name in ("y", "logits"):
        np.testing.assert_allclose(results[0][name], results[1][name], rtol=1e-4, atol=1e-4)


def test_the_text_of_a_quantized_graph_has_webnns_operators_only(builder, tmp_path):
    builder.build(decoder_block(builder)).save(str(tmp_path / "small.webnn"), quantized=True)
    text = (tmp_path / "small.webnn").read_text()
    assert text.startswith('webnn_graph "small" v2 @quantized {')
    assert text.count("dequantizeLinear(") == 4 and "fused" not in text


def test_blocks_of_a_loaded_graph_can_be_saved_as_text(context, builder, tmp_path):
    builder.build(decoder_block(builder)).save(tmp_path / "small.hrg", quantized=True)
    small = context.load_graph(tmp_path / "small.hrg")
    small.save(tmp_path / "text.webnn")
    feeds = {"x": np.random.default_rng(4).standard_normal((2, 4, 256)).astype(np.float32)}
    expected, result = (
        context.compute(g, feeds) for g in (small, context.load_graph(tmp_path / "text.webnn"))
    )
    np.testing.assert_allclose(result["logits"], expected["logits"], rtol=1e-4, atol=1e-4)


def test_half_floats_are_quantized_too(context, builder, tmp_path):
    x = builder.input("x", list(X.shape), "float16")
    graph = builder.build({"y": builder.matmul(x, builder.constant(W.astype(np.float16)))})
    feeds = {"x": X.astype(np.float16)}
    expected = context.compute(graph, feeds)["y"].astype(np.float64)
    for extension in ("hrg", "webnn"):
        path = tmp_path / f"half_{extension}.{extension}"
        graph.save(str(path), quantized=True)
        assert size_of(path) < 0.65 * 2 * W.size
        result = context.compute(context.load_graph(str(path)), feeds)["y"]
        assert result.dtype == np.float16
        assert np.linalg.norm(result - expected) < 0.01 * np.linalg.norm(expected)


def test_what_is_no_large_matrix_of_a_product_is_saved_as_it_is(context, builder, tmp_path):
    table = builder.constant(W)
    rows = builder.gather(table, builder.input("i", [4], "int32"))
    graph = builder.build({"y": builder.matmul(rows, builder.constant(W[:128, :32]))})
    feeds = {"i": np.array([0, 5, 9, 200], np.int32)}
    for extension in ("hrg", "webnn", "json"):
        graph.save(str(tmp_path / f"graph.{extension}"), quantized=True)
        again = context.load_graph(str(tmp_path / f"graph.{extension}"))
        np.testing.assert_array_equal(context.compute(again, feeds)["y"], context.compute(graph, feeds)["y"])


def test_quantized_files_open_everywhere(context, builder, tmp_path):
    """As functions of arrays, in the command-line program and as ONNX."""
    graph = builder.build(decoder_block(builder))
    graph.save(str(tmp_path / "small.hrg"), quantized=True)
    x = np.random.default_rng(4).standard_normal((2, 4, 256)).astype(np.float32)
    expected = context.compute(context.load_graph(str(tmp_path / "small.hrg")), {"x": x})
    np.testing.assert_allclose(
        headrace.load(tmp_path / "small.hrg")(x)["y"], expected["y"], rtol=1e-5, atol=1e-5
    )
    shown = subprocess.run(
        [sys.executable, "-m", "headrace", "inspect", str(tmp_path / "small.hrg")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "as q8_0" in shown.stdout


def test_states_and_dynamic_shapes_survive_saving_quantized(context, builder, tmp_path):
    x = builder.input("x", [{"name": "n", "maxSize": 8}, 256], "float32")
    total = builder.state("total", [128], "float32")
    y = builder.matmul(x, builder.constant(W))
    graph = builder.build(
        {"y": y, "sum": builder.assign(total, builder.add(total, builder.reduce_sum(y, [0])))}
    )
    graph.save(str(tmp_path / "graph.hrg"), quantized=True)
    again = context.load_graph(str(tmp_path / "graph.hrg"))
    for n in (3, 5):
        expected, result = (context.compute(g, {"x": X[:n]}) for g in (graph, again))
        for name in ("y", "sum"):
            error = np.linalg.norm(result[name] - expected[name]) / np.linalg.norm(expected[name])
            assert error < 0.02


@pytest.mark.parametrize("extension", ["hrg", "webnn"])
def test_embeddings_that_are_the_last_layer_are_saved_once(context, builder, tmp_path, extension):
    table = builder.constant(np.random.default_rng(5).standard_normal((512, 256)).astype(np.float32))
    rows = builder.gather(table, builder.input("i", [2, 3], "int64"))
    graph = builder.build({"y": builder.matmul(rows, builder.transpose(table))})
    graph.save(str(tmp_path / f"graph.{extension}"), quantized=True)
    assert size_of(tmp_path / f"graph.{extension}") < 0.31 * 4 * 512 * 256
    feeds = {"i": np.array([[0, 5, 9], [511, 3, 3]])}
    again = context.load_graph(str(tmp_path / f"graph.{extension}"))
    expected, result = (context.compute(g, feeds)["y"] for g in (graph, again))
    assert 1e-4 < np.linalg.norm(result - expected) / np.linalg.norm(expected) < 0.01


def test_a_graph_that_is_quantized_already_is_saved_as_it_is(tmp_path):
    context = webnn.ML().create_context(accelerated=False, weights="q4_0")
    graph = build(context)
    graph.save(str(tmp_path / "a.hrg"))
    graph.save(str(tmp_path / "b.hrg"), quantized=True)
    assert (tmp_path / "b.hrg").stat().st_size <= (tmp_path / "a.hrg").stat().st_size
    loaded = context.load_graph(str(tmp_path / "b.hrg"))
    np.testing.assert_array_equal(
        context.compute(loaded, {"x": X})["y"], context.compute(graph, {"x": X})["y"]
    )


def test_a_folder_that_is_not_there_is_an_os_error(context, tmp_path):
    for extension in ("hrg", "webnn"):
        with pytest.raises(OSError, match="absent"):
            build(context).save(str(tmp_path / "absent" / f"graph.{extension}"), quantized=True)
