"""What pywebnn offers besides the specification."""

import numpy as np
import pytest
import webnn


@pytest.fixture
def graph(builder):
    return builder.build({"y": builder.neg(builder.input("x", [2], "float32"))})


def test_backend_info_names_ggml(context):
    info = context.backend_info()
    assert info["backend"] == "ggml" and info["backend_available"] and info["compiled_features"]["ggml"]


def test_host_tensors_are_readable_and_writable(context, graph):
    x, y = (context.create_host_tensor([2], "float32") for _ in range(2))
    context.write_tensor(x, np.array([1, -2], np.float32))
    context.dispatch_with_host_tensors(graph, {"x": x}, {"y": y})
    assert context.read_tensor(y).tolist() == [-1, 2]


def test_device_tensors_read_write_and_say_where_they_are(context, graph):
    x, y = (context.create_device_tensor(graph, [2], "float32") for _ in range(2))
    x.write(np.array([3, 4], np.float32))
    context.dispatch_with_device_tensors(graph, {"x": x}, {"y": y})
    assert y.read().tolist() == [-3, -4]
    assert (y.device, y.backend, y.shape, y.size, y.data_type) == ("cpu", "ggml", [2], 2, "float32")
    y.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        y.read()


def test_device_tensors_of_other_devices_are_refused(context, graph):
    with pytest.raises(RuntimeError, match="'cuda' is not available"):
        context.create_device_tensor(graph, [2], "float32", "cuda")
    with pytest.raises(ValueError, match="unknown device 'abacus'"):
        context.create_device_tensor(graph, [2], "float32", device="abacus")


def test_graphs_load_without_a_context(context, graph, tmp_path):
    path = str(tmp_path / "graph.hrg")
    graph.save(path, quantized=False)
    loaded = webnn.MLGraph.load(path)
    assert context.compute(loaded, {"x": np.ones(2, np.float32)})["y"].tolist() == [-1, -1]


def test_constant_tensors_feed_graphs(context):
    tensor = context.create_constant_tensor(np.array([[1, 2], [3, 4]], np.int32))
    assert (tensor.data_type, tensor.shape, tensor.readable, tensor.writable) == (
        "int32",
        [2, 2],
        False,
        False,
    )
    builder = context.create_graph_builder()
    graph = builder.build({"y": builder.neg(builder.constant(tensor))})
    np.testing.assert_array_equal(context.compute(graph, {})["y"], [[-1, -2], [-3, -4]])
    with pytest.raises(ValueError, match="brings its own shape"):
        context.create_graph_builder().constant(tensor, [4])
    with pytest.raises(ValueError, match="the tensor may change"):
        context.create_graph_builder().constant(context.create_tensor([2], "int32"))


def test_a_destroyed_context_refuses_to_work():
    context = webnn.ML().create_context(accelerated=False)
    builder = context.create_graph_builder()
    graph = builder.build({"y": builder.relu(builder.input("x", [2], "float32"))})
    context.destroy()
    for call in (
        lambda: context.compute(graph, {"x": np.zeros(2, np.float32)}),
        lambda: context.create_graph_builder(),
        lambda: context.create_tensor([2], "float32"),
    ):
        with pytest.raises(RuntimeError, match="the context has been destroyed"):
            call()


def test_the_pool_shows_what_runs_with_and_without_reuse_allocate():
    context = webnn.ML().create_context(accelerated=False)
    builder = context.create_graph_builder()
    x = builder.input("x", [256, 256], "float32")
    graph = builder.build({"y": builder.softmax(builder.matmul(builder.softmax(x, 1), x), 1)})
    feeds = {"x": np.ones((256, 256), np.float32)}
    for _ in range(5):
        context.compute(graph, feeds)
    stats = context.buffer_stats
    assert (stats["requests"], stats["allocations"], stats["reuses"]) == (5, 1, 4)
    assert stats["idle_bytes"] >= graph.run_stats["arena_bytes"] > 0
    context.reset_buffers()
    assert context.buffer_stats["idle_bytes"] == 0
    for _ in range(5):
        context.compute(graph, feeds, reuse_buffers=False)
    assert context.buffer_stats["allocations"] == 6
    assert context.buffer_stats["idle_bytes"] == 0
    assert [p["name"] for p in graph.pass_stats if p["ran"]]
    assert {n["device"] for n in graph.run_stats["nodes"]} == {"CPU"}
