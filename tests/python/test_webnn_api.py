"""The Python door: what users of pywebnn and of the specification rely on."""

import inspect
import threading

import headrace
import ml_dtypes
import numpy as np
import pytest
import webnn

DTYPES = ["float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8"]


def test_the_seed_guides_example_adds_two_matrices(context):
    builder = context.create_graph_builder()
    x = builder.input("x", [2, 3], "float32")
    y = builder.input("y", [2, 3], "float32")
    graph = builder.build({"output": builder.add(x, y)})
    inputs = {
        "x": np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32),
        "y": np.array([[1, 1, 1], [2, 2, 2]], dtype=np.float32),
    }
    outputs = context.compute(graph, inputs)
    np.testing.assert_allclose(outputs["output"], np.array([[2, 3, 4], [6, 7, 8]], dtype=np.float32))


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_carry_the_declared_dtype(context, builder, dtype):
    x = builder.input("x", [3], dtype)
    graph = builder.build({"y": builder.add(x, x)})
    result = context.compute(graph, {"x": np.array([1, 2, 3], dtype)})["y"]
    assert result.dtype == np.dtype(dtype)
    assert result.tolist() == [2, 4, 6]


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4])
def test_four_bit_tensors_travel_one_element_a_value(context, builder, dtype):
    name = np.dtype(dtype).name
    values = np.array([[1, 2, 3], [4, 5, 7]]).astype(dtype)
    x = builder.input("x", [2, 3], name)
    graph = builder.build({"y": builder.reshape(x, [3, 2])})
    result = context.compute(graph, {"x": values})["y"]
    assert result.dtype == np.dtype(dtype)
    assert result.astype(int).tolist() == [[1, 2], [3, 4], [5, 7]]


def test_sixty_four_bit_integers_are_exact(context, builder):
    x = builder.input("x", [2], "int64")
    graph = builder.build({"y": builder.add(x, builder.constant(np.array([1, -1], np.int64)))})
    values = np.array([2**53 + 1, -(2**62)], np.int64)
    assert context.compute(graph, {"x": values})["y"].tolist() == [2**53 + 2, -(2**62) - 1]


def test_inputs_of_other_dtypes_and_layouts_are_converted(context, builder):
    x = builder.input("x", [2, 3], "float32")
    graph = builder.build({"y": builder.identity(x)})
    for value in ([[1, 2, 3], [4, 5, 6]], np.array([[1, 4], [2, 5], [3, 6]], np.int64).T):
        assert context.compute(graph, {"x": value})["y"].tolist() == [[1, 2, 3], [4, 5, 6]]


def test_results_can_be_written_into_the_callers_arrays(context, builder):
    x = builder.input("x", [4], "float32")
    graph = builder.build({"y": builder.neg(x)})
    mine = np.zeros(4, np.float32)
    other = np.zeros(4, np.float64)
    assert context.compute(graph, {"x": np.ones(4, np.float32)}, {"y": mine})["y"] is mine
    assert mine.tolist() == [-1] * 4
    context.compute(graph, {"x": np.ones(4, np.float32)}, outputs={"y": other})
    assert other.tolist() == [-1] * 4


def test_a_graph_with_a_dynamic_dimension_takes_every_length_up_to_its_maximum(context, builder):
    x = builder.input("x", [{"name": "seq", "maxSize": 8}, 2], "float32")
    w = builder.constant(np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    graph = builder.build({"y": builder.matmul(x, w)})
    for length in (1, 5, 8):
        value = np.random.default_rng(length).standard_normal((length, 2)).astype(np.float32)
        expected = value @ np.array([[1, 2, 3], [4, 5, 6]], np.float32)
        np.testing.assert_allclose(context.compute(graph, {"x": value})["y"], expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"seq \(dimension 0\) is 9; at most 8 is possible"):
        context.compute(graph, {"x": np.zeros((9, 2), np.float32)})


def test_operands_know_their_type_shape_and_name(builder):
    x = builder.input("x", [2, 3], "float16")
    y = builder.relu(x)
    assert (x.data_type, x.shape, x.name) == ("float16", [2, 3], "x")
    assert (y.data_type, y.shape, y.name) == ("float16", [2, 3], None)


def test_graphs_know_their_operands_and_operations(builder):
    x = builder.input("x", [2], "float32")
    graph = builder.build({"b": builder.relu(x), "a": builder.abs(x)})
    assert graph.get_input_names() == ["x"]
    assert graph.get_output_names() == ["a", "b"]
    assert (graph.operand_count, graph.operation_count) == (3, 2)


def test_methods_have_both_spellings_and_signatures(builder):
    x = builder.input("x", [1, 1, 4, 4], "float32")
    snake = builder.average_pool2d(x, window_dimensions=[2, 2], strides=[2, 2])
    camel = builder.averagePool2d(x, windowDimensions=[2, 2], strides=[2, 2])
    assert snake.shape == camel.shape == [1, 1, 2, 2]
    parameters = list(inspect.signature(webnn.MLGraphBuilder.conv2d).parameters)
    assert parameters[:5] == ["self", "input", "filter", "strides", "dilations"]
    assert "conv" in inspect.getdoc(webnn.MLGraphBuilder.conv2d).lower()


def test_constants_copy_what_may_change_and_share_what_may_not(context, builder):
    changing = np.ones(4, np.float32)
    fixed = np.full(4, 2, np.float32)
    fixed.flags.writeable = False
    x = builder.input("x", [4], "float32")
    y = builder.add(builder.add(x, builder.constant(changing)), builder.constant(fixed))
    changing[:] = 100
    graph = builder.build({"y": y})
    del fixed
    assert context.compute(graph, {"x": np.zeros(4, np.float32)})["y"].tolist() == [3] * 4


def test_constants_come_from_arrays_lists_and_numbers(builder):
    assert builder.constant([[1, 2]]).data_type == "float32"
    assert builder.constant(np.array([1, 2], np.int8)).data_type == "int8"
    assert builder.constant(5, [], "int32").shape == []
    assert builder.constant([1, 2, 3, 4], [2, 2], "uint8").shape == [2, 2]


def test_tensors_dispatch_and_read_back(context, builder):
    x = builder.input("x", [2, 2], "float32")
    graph = builder.build({"y": builder.relu(x)})
    source = context.create_tensor([2, 2], "float32", writable=True)
    target = context.create_tensor([2, 2], "float32", readable=True)
    context.write_tensor(source, np.array([[-1, 2], [3, -4]], np.float32))
    context.dispatch(graph, {"x": source}, {"y": target})
    assert context.read_tensor(target).tolist() == [[0, 2], [3, 0]]
    assert (source.readable, source.writable, source.size, source.shape) == (False, True, 4, [2, 2])


def test_tensors_are_neither_readable_nor_writable_by_default(context):
    tensor = context.create_tensor([1], "float32")
    assert not tensor.readable and not tensor.writable and not tensor.exportable_to_gpu
    with pytest.raises(RuntimeError, match="not readable"):
        context.read_tensor(tensor)
    with pytest.raises(RuntimeError, match="not writable"):
        context.write_tensor(tensor, np.zeros(1, np.float32))


def test_destroyed_tensors_say_so(context, builder):
    tensor = context.create_tensor([1], "float32", readable=True, writable=True)
    tensor.destroy()
    with pytest.raises(RuntimeError, match="already destroyed"):
        tensor.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        context.read_tensor(tensor)
    with pytest.raises(RuntimeError, match="destroyed"):
        context.write_tensor(tensor, np.zeros(1, np.float32))
    graph = builder.build({"y": builder.relu(builder.input("x", [1], "float32"))})
    with pytest.raises(RuntimeError, match="destroyed"):
        context.dispatch(graph, {"x": tensor}, {"y": context.create_tensor([1], "float32")})


def test_a_saved_graph_computes_the_same_after_loading(context, builder, tmp_path):
    x = builder.input("x", [2, 3], "float32")
    w = builder.constant(np.arange(12, dtype=np.float32).reshape(3, 4))
    graph = builder.build({"y": builder.softmax(builder.matmul(x, w), 1)})
    path = tmp_path / "graph.hrg"
    graph.save(str(path))
    value = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    loaded = context.load_graph(str(path))
    expected = context.compute(graph, {"x": value})["y"]
    np.testing.assert_array_equal(context.compute(loaded, {"x": value})["y"], expected)


def test_one_graph_computes_in_several_threads(context, builder):
    x = builder.input("x", [64, 64], "float32")
    w = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
    graph = builder.build({"y": builder.matmul(x, builder.constant(w))})
    failures = []

    def work(seed):
        value = np.random.default_rng(seed).standard_normal((64, 64)).astype(np.float32)
        for _ in range(20):
            if not np.allclose(context.compute(graph, {"x": value})["y"], value @ w, atol=1e-4):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_support_limits_follow_the_catalog(context):
    limits = context.op_support_limits()
    assert set(limits["add"]) == {"a", "b", "output"}
    assert set(limits["add"]["a"]["dataTypes"]) >= set(DTYPES)
    assert limits["sigmoid"]["input"]["dataTypes"] == ["float32", "float16"]
    assert limits["conv2d"]["input"]["rankRange"] == {"min": 4, "max": 4}
    assert set(limits["conv2d"]) == {"input", "filter", "bias", "output"}
    assert limits["greater"]["output"]["dataTypes"] == ["uint8"]
    assert limits["preferredInputLayout"] == "nchw"


def test_contexts_say_what_they_run_on():
    assert not webnn.ML().create_context(accelerated=False).accelerated
    gpu = webnn.ML().create_context(device_type="gpu")
    assert gpu.accelerated == any(d.type in ("gpu", "igpu") for d in webnn.devices())
    assert webnn.ML().create_context("low-power").power_preference == "low-power"
    assert any(d.type == "cpu" for d in webnn.devices())


def test_the_number_of_threads_is_the_processs_default():
    before = headrace.num_threads()
    headrace.set_num_threads(1)
    assert headrace.num_threads() == 1
    headrace.set_num_threads(before)
    with pytest.raises(ValueError, match="at least 1"):
        headrace.set_num_threads(0)


def test_options_have_both_spellings_whatever_the_operators_name(builder):
    x = builder.input("x", [2, 2], "float32")
    assert builder.gemm(x, x, aTranspose=True).shape == [2, 2]
    assert builder.cast(x, dataType="int32").data_type == "int32"
    assert builder.clamp(x, minValue=0, max_value=1).shape == [2, 2]


def test_pad_takes_its_arguments_in_any_form(context, builder):
    x = builder.input("x", [2], "float32")
    forms = {
        "positional": builder.pad(x, [1, 1], "edge"),
        "keyword": builder.pad(x, padding=[1, 1], mode="edge"),
        "mixed": builder.pad(x, "edge", padding=[1, 1]),
        "two_lists": builder.pad(x, [1], [1], mode="edge"),
    }
    results = context.compute(builder.build(forms), {"x": np.array([3, 4], np.float32)})
    assert {name: value.tolist() for name, value in results.items()} == {name: [3, 3, 4, 4] for name in forms}


def test_a_dynamic_shape_can_be_given_back(builder):
    x = builder.input("x", [{"name": "seq", "maxSize": 8}, 2], "float32")
    assert x.shape == [{"name": "seq", "maxSize": 8}, 2]
    assert builder.reshape(x, x.shape).shape == x.shape


def test_a_read_only_view_of_a_changing_array_is_copied(context, builder):
    base = np.ones(4, np.float32)
    view = base.view()
    view.flags.writeable = False
    x = builder.input("x", [4], "float32")
    graph = builder.build({"y": builder.add(x, builder.constant(view))})
    base[:] = 100
    assert context.compute(graph, {"x": np.zeros(4, np.float32)})["y"].tolist() == [1] * 4


def test_names_may_hold_any_character(context, builder):
    x = builder.input("a\0b", [1], "float32")
    graph = builder.build({"ü\0": builder.neg(x)})
    assert context.compute(graph, {"a\0b": np.ones(1, np.float32)})["ü\0"].tolist() == [-1]
