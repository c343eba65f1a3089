"""Tensors that persist between dispatches: an extension of the specification."""

import numpy as np
import pytest


@pytest.fixture
def graph(context):
    builder = context.create_graph_builder()
    total = builder.state("total", [2, 2], "float32", initial=np.array([[1, 2], [3, 4]], np.float32))
    x = builder.input("x", [2], "float32")
    return builder.build({"y": builder.identity(builder.accumulate(total, x, offset=1))})


def test_a_state_accumulates_over_computes(context, graph):
    x = {"x": np.array([10, 100], np.float32)}
    context.compute(graph, x)
    y = context.compute(graph, x)["y"]
    np.testing.assert_array_equal(y, [[1, 22], [203, 4]])
    np.testing.assert_array_equal(graph.read_state("total"), y)


def test_a_state_can_be_written_and_reset(context, graph):
    assert graph.state_names == ["total"]
    graph.write_state("total", np.zeros((2, 2), np.float32))
    context.compute(graph, {"x": np.ones(2, np.float32)})
    np.testing.assert_array_equal(graph.read_state("total"), [[0, 1], [1, 0]])
    graph.reset_states()
    np.testing.assert_array_equal(graph.read_state("total"), [[1, 2], [3, 4]])


def test_a_state_takes_an_assigned_value(context):
    builder = context.create_graph_builder()
    last = builder.state("last", [3], "int64")
    x = builder.input("x", [3], "int64")
    graph = builder.build({"y": builder.assign(last, x)})
    context.compute(graph, {"x": np.array([5, 6, 7])})
    np.testing.assert_array_equal(graph.read_state("last"), [5, 6, 7])


def test_wrong_states_are_named(context, graph):
    with pytest.raises(ValueError, match="no state 'sum'; it has: total"):
        graph.read_state("sum")
    with pytest.raises(ValueError, match=r"Shape mismatch: the array has shape \[4\], the state \[2, 2\]"):
        graph.write_state("total", np.zeros(4, np.float32))
    builder = context.create_graph_builder()
    with pytest.raises(ValueError, match=r"state 's': 8 initial bytes, float32\[3\] needs 12"):
        builder.state("s", [3], "float32", initial=np.zeros(2, np.float32))
    state = builder.state("s", [3], "float32")
    with pytest.raises(ValueError, match=r"accumulate: offset 2 .* out of bounds"):
        builder.accumulate(state, builder.input("x", [2], "float32"), offset=2)
    with pytest.raises(ValueError, match="name 's' is already taken"):
        builder.state("s", [3], "float32")
