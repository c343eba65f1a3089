"""The Python test of the guide for a ggml backend in pywebnn, as the guide gives it."""

import headrace
import numpy as np
import pytest
import webnn


def has_ggml_runtime():
    return any(device.type == "cpu" for device in headrace.devices())


@pytest.mark.skipif(not has_ggml_runtime(), reason="GGML runtime not available")
def test_ggml_add():
    ml = webnn.ML()
    context = ml.create_context(accelerated=False)  # Should select GGML
    builder = context.create_graph_builder()

    x = builder.input("x", [2, 3], "float32")
    y = builder.input("y", [2, 3], "float32")
    z = builder.add(x, y)

    graph = builder.build({"output": z})

    inputs = {
        "x": np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32),
        "y": np.array([[1, 1, 1], [2, 2, 2]], dtype=np.float32),
    }

    outputs = context.compute(graph, inputs)
    expected = np.array([[2, 3, 4], [6, 7, 8]], dtype=np.float32)
    np.testing.assert_allclose(outputs["output"], expected)
