"""Several graphs from one builder."""

import threading

import numpy as np
import pytest
import webnn

F32 = "float32"
X = np.array([1, -2, 3], np.float32)
Y = np.array([10, 20, 30], np.float32)


def test_operands_of_before_and_after_serve_later_graphs(context, builder):
    x = builder.input("x", [3], F32)
    hidden = builder.relu(x)
    first = builder.build({"h": hidden})
    y = builder.input("y", [3], F32)
    total = builder.add(hidden, builder.mul(y, builder.constant(np.float32(2))))
    second = builder.build({"h": hidden, "total": total})
    third = builder.build({"total": builder.neg(total)})
    assert context.compute(first, {"x": X})["h"].tolist() == [1, 0, 3]
    results = context.compute(second, {"x": X, "y": Y})
    assert results["h"].tolist() == [1, 0, 3] and results["total"].tolist() == [21, 40, 63]
    assert context.compute(third, {"x": X, "y": Y})["total"].tolist() == [-21, -40, -63]
    assert context.compute(first, {"x": -X})["h"].tolist() == [0, 2, 0]


def test_the_same_outputs_can_be_built_twice(context, builder):
    y = builder.neg(builder.input("x", [3], F32))
    graphs = [builder.build({"y": y}) for _ in range(2)]
    assert all(context.compute(graph, {"x": X})["y"].tolist() == (-X).tolist() for graph in graphs)


def test_a_graph_has_what_its_outputs_need_and_no_more(context, builder, tmp_path):
    x, y = builder.input("x", [256, 256], F32), builder.input("y", [256, 256], F32)
    product = builder.matmul(x, builder.constant(np.ones((256, 256), np.float32)))
    small, large = builder.build({"r": builder.neg(y)}), builder.build({"r": product})
    assert (small.get_input_names(), large.get_input_names()) == (["y"], ["x"])
    assert (small.operation_count, large.operation_count) == (1, 1)
    small.save(str(tmp_path / "small.hrg"))
    assert (tmp_path / "small.hrg").stat().st_size < 10_000
    ones = np.ones((256, 256), np.float32)
    assert (context.compute(large, {"x": ones})["r"] == 256).all()


def test_an_input_that_only_tells_a_dynamic_extent_stays(context, builder):
    rows = {"name": "rows", "maxSize": 8}
    x = builder.input("x", [rows, 2], F32)
    builder.input("y", [rows], F32)
    one = builder.constant(np.ones((1, 3), np.float32))
    graph = builder.build({"ones": builder.expand(one, [rows, 3])})
    assert graph.get_input_names() == ["x"]
    for n in (2, 5):
        assert context.compute(graph, {"x": np.zeros((n, 2))})["ones"].shape == (n, 3)
    doubled = builder.build({"d": builder.add(x, x)})
    assert doubled.get_input_names() == ["x"]


@pytest.mark.parametrize("call", ["compute", "dispatch"])
def test_inputs_that_a_graph_does_not_read_may_be_given(context, builder, call):
    x, y = builder.input("x", [3], F32), builder.input("y", [3], F32)
    builder.build({"r": builder.add(x, y)})
    graph = builder.build({"r": builder.neg(x)})
    for given in ({"x": X}, {"x": X, "y": Y}):
        r = np.zeros(3, np.float32)
        getattr(context, call)(graph, given, {"r": r})
        assert r.tolist() == (-X).tolist()
    with pytest.raises(ValueError, match=f"{call}: the graph has no input 'z'"):
        getattr(context, call)(graph, {"x": X, "z": Y}, {"r": np.zeros(3, np.float32)})


def test_a_build_that_fails_leaves_the_builder_as_it_was(context, builder):
    x = builder.input("x", [3], F32)
    y = builder.neg(x)
    for outputs in ({}, {"x": x}, {"": y}, {"y": context.create_graph_builder().input("x", [3], F32)}):
        with pytest.raises(ValueError):
            builder.build(outputs)
    assert context.compute(builder.build({"y": y}), {"x": X})["y"].tolist() == (-X).tolist()


def test_graphs_have_states_of_their_own(context, builder):
    total = builder.state("total", [3], F32)
    x = builder.input("x", [3], F32)
    summed = builder.assign(total, builder.add(total, x))
    adding = builder.build({"total": summed})
    doubled = builder.assign(total, builder.mul(builder.add(total, x), builder.constant(np.float32(2))))
    doubling = builder.build({"total": doubled})
    plain = builder.build({"y": builder.neg(x)})
    assert (adding.state_names, doubling.state_names, plain.state_names) == (["total"], ["total"], [])
    for _ in range(2):
        sums, doubles = (context.compute(graph, {"x": X})["total"] for graph in (adding, doubling))
    assert sums.tolist() == (2 * X).tolist() and doubles.tolist() == (6 * X).tolist()


def test_a_write_to_a_state_is_part_of_the_next_graph_only(context, builder):
    count = builder.state("count", [3], F32)
    x = builder.input("x", [3], F32)
    builder.assign(count, builder.add(count, x))
    counting = builder.build({"y": builder.neg(x)})
    reading = builder.build({"y": builder.add(count, x)})
    for _ in range(2):
        context.compute(counting, {"x": X})
        assert context.compute(reading, {"x": X})["y"].tolist() == X.tolist()
    assert counting.read_state("count").tolist() == (2 * X).tolist()


def test_building_in_one_thread_while_another_adds_operators(context, builder):
    """Each thread's graphs are whole."""
    x = builder.input("x", [3], F32)
    right = []

    def work(factor):
        for _ in range(50):
            y = builder.mul(x, builder.constant(np.float32(factor)))
            graph = builder.build({"y": y})
            right.append(context.compute(graph, {"x": X})["y"].tolist() == (X * factor).tolist())

    threads = [threading.Thread(target=work, args=(factor,)) for factor in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(right) == 100 and all(right)


def test_the_builder_outlives_its_graphs_and_they_it(context):
    builder = context.create_graph_builder()
    y = builder.relu(builder.input("x", [3], F32))
    graph = builder.build({"y": y})
    graph.destroy()
    again = builder.build({"y": y})
    del builder, y
    assert isinstance(again, webnn.MLGraph)
    assert context.compute(again, {"x": X})["y"].tolist() == [1, 0, 3]
