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
    with pytest.raises(ValueError, match="quantized=True is not supported"):
        graph.save(path, quantized=True)
