"""A WebNN context on a remote device: the same results, and errors in place of a dead process."""

import sys
import threading
import time
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


@pytest.fixture
def two_hosts():
    with rpc_hosts.hosts(2, in_namespaces=False) as hosts:
        for host in hosts:
            host.serve()
        yield hosts


@pytest.mark.parametrize("comma", [",", ", "])
def test_a_context_on_several_hosts_computes_as_the_local_one_and_needs_them_all(two_hosts, comma):
    x = np.random.default_rng(1).standard_normal((4, 32)).astype(np.float32)
    local = webnn.ML().create_context(accelerated=False)
    context = webnn.ML().create_context(device=comma.join(host.device for host in two_hosts))
    graph = dense_layer(context)
    expected = local.compute(dense_layer(local), {"x": x})["y"]
    np.testing.assert_allclose(context.compute(graph, {"x": x})["y"], expected, rtol=1e-5, atol=1e-5)
    for host in two_hosts:
        host.fail()
        # A run whose nodes are on the other host may end before the link has noticed the loss.
        end = time.monotonic() + 10
        with pytest.raises(RuntimeError, match=host.device):
            while time.monotonic() < end:
                np.testing.assert_allclose(
                    context.compute(graph, {"x": x})["y"], expected, rtol=1e-5, atol=1e-5
                )
        host.serve()
        np.testing.assert_allclose(context.compute(graph, {"x": x})["y"], expected, rtol=1e-5, atol=1e-5)


def test_each_context_waits_for_its_host_as_long_as_it_says(host):
    x = np.ones((4, 32), np.float32)
    patient = webnn.ML().create_context(device=host.device)
    hasty = webnn.ML().create_context(device=host.device, host_timeout_ms=300)
    graphs = [(context, dense_layer(context)) for context in (patient, hasty)]
    expected = [context.compute(graph, {"x": x})["y"] for context, graph in graphs]
    host.freeze()
    outcomes = []
    waiting = threading.Thread(target=lambda: outcomes.append(patient.compute(graphs[0][1], {"x": x})["y"]))
    waiting.start()
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"was lost: no answer for 0\.3 s"):
        hasty.compute(graphs[1][1], {"x": x})
    assert time.monotonic() - start < 30
    assert not outcomes, "the patient one waits on"
    host.thaw()
    waiting.join()
    np.testing.assert_array_equal(outcomes[0], expected[0])
    np.testing.assert_array_equal(hasty.compute(graphs[1][1], {"x": x})["y"], expected[1])


@pytest.mark.parametrize("milliseconds", [99, -1, 2**30 + 1])
def test_a_time_for_hosts_that_makes_no_sense_is_refused(milliseconds):
    with pytest.raises(ValueError, match=f"host_timeout_ms is {milliseconds}; it must be 100 to 1073741824"):
        webnn.ML().create_context(device="rpc://127.0.0.1:1", host_timeout_ms=milliseconds)


def test_a_host_that_does_not_answer_is_an_error_of_the_context():
    with pytest.raises(RuntimeError, match=r"rpc://127\.0\.0\.1:1.*serve-rpc"):
        webnn.ML().create_context(device="rpc://127.0.0.1:1")
