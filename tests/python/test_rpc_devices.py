"""A WebNN context on a remote device: the same results, and errors in place of a dead process."""

import sys
from pathlib import Path

import numpy as np
import pytest
import webnn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import rpc_hosts


@pytest.fixture
def host():
    with rpc_hosts.hosts(1, in_namespaces=False) as hosts:
        hosts[0].serve()
        yield hosts[0]


def dense_layer(context):
    builder = context.create_graph_builder()
    x = builder.input("x", [4, 32], "float32")
    w = builder.constant(np.random.default_rng(0).standard_normal((32, 8)).astype(np.float32))
    return builder.build({"y": builder.gelu(builder.matmul(x, w))})


def test_a_context_on_a_remote_device_computes_as_the_local_one(host):
    x = np.random.default_rng(1).standard_normal((4, 32)).astype(np.float32)
    local, remote = (
        webnn.ML().create_context(accelerated=False),
        webnn.ML().create_context(device=host.device),
    )
    assert remote.accelerated
    expected = local.compute(dense_layer(local), {"x": x})["y"]
    np.testing.assert_allclose(
        remote.compute(dense_layer(remote), {"x": x})["y"], expected, rtol=1e-5, atol=1e-5
    )


def test_a_graph_whose_host_is_lost_raises_until_it_is_back(host):
    x = np.ones((4, 32), np.float32)
    context = webnn.ML().create_context(device=host.device)
    graph = dense_layer(context)
    expected = context.compute(graph, {"x": x})["y"]
    host.fail()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=host.device):
            context.compute(graph, {"x": x})
    host.serve()
    np.testing.assert_array_equal(context.compute(graph, {"x": x})["y"], expected)


def test_a_host_that_does_not_answer_is_an_error_of_the_context():
    with pytest.raises(RuntimeError, match=r"rpc://127\.0\.0\.1:1.*serve-rpc"):
        webnn.ML().create_context(device="rpc://127.0.0.1:1")
