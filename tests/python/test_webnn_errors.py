"""Bad input gets an exception that names the operator, the values and what would be right; nothing aborts."""

import contextlib
import inspect
import threading

import numpy as np
import pytest
import webnn

F32 = "float32"


def inputs(builder, *shapes, dtype=F32):
    return [builder.input(f"x{i}", shape, dtype) for i, shape in enumerate(shapes)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: b.add(*inputs(b, [2, 3], [2, 4])), r"add: Incompatible shapes \[2, 3\] and \[2, 4\]"),
        (lambda b: b.matmul(*inputs(b, [2, 3], [4, 5])), "matmul: Incompatible shapes for matmul"),
        (lambda b: b.reshape(*inputs(b, [2, 3]), [7]), "Reshape requires same number of elements"),
        (lambda b: b.softmax(*inputs(b, [2, 3]), axis=2), "Axis 2 out of bounds for rank 2"),
        (lambda b: b.reduce_sum(*inputs(b, [2, 3]), axes=[1, 1]), "Duplicate axis"),
        (lambda b: b.conv2d(*inputs(b, [2, 3], [1, 1, 1, 1])), "Conv2d input must be 4D"),
        (lambda b: b.conv2d(*inputs(b, [1, 3, 4, 4], [2, 2, 1, 1]), groups=2), "must be divisible by groups"),
        (
            lambda b: b.conv2d(*inputs(b, [1, 1, 4, 4], [1, 1, 1, 1]), input_layout="nhcw"),
            "Invalid input_layout",
        ),
        (lambda b: b.max_pool2d(*inputs(b, [2, 3])), "Pool2d input must be 4D"),
        (lambda b: b.global_average_pool(*inputs(b, [2, 3])), "Global pooling input must be 4D"),
        (lambda b: b.average_pool2d(*inputs(b, [1, 1, 2, 2]), layout="chwn"), "Invalid layout"),
        (
            lambda b: b.sigmoid(*inputs(b, [2], dtype="int32")),
            "sigmoid: operand input is int32.*allowed data types: float32, float16$",
        ),
        (lambda b: b.gather(*inputs(b, [2, 2], [1])), "gather: operand indices is float32"),
        (
            lambda b: b.gather_elements(*inputs(b, [2, 3]), b.input("i", [1, 2], "int32"), axis=1),
            r"gather_elements: indices int32\[1, 2\] must have the extents of input .* but along axis 1$",
        ),
        (
            lambda b: b.max_pool2d(*inputs(b, [1, 1, 6, 6]), [3, 3], strides=[2, 2], output_sizes=[2, 3]),
            r"it must be \[1, 1, 2, 2\], rounded down, or \[1, 1, 3, 3\], rounded up$",
        ),
        (
            lambda b: b.quantize_linear(*inputs(b, [4, 2], [2]), b.input("z", [2], "uint8")),
            r"quantize_linear: scale float32\[2\] must have the rank of input float32\[4, 2\], 2$",
        ),
        (
            lambda b: b.resample2d(*inputs(b, [1, 1, 2, 2]), sizes=[3, 3], scales=[0, 1]),
            r"resample2d: scales\[0\] is 0; it must be greater than 0",
        ),
        (lambda b: b.concat([], 0), "concat: inputs is empty; give an operand at least"),
        (lambda b: b.logical_not(*inputs(b, [2])), "logical_not: operand"),
        (lambda b: b.squeeze(*inputs(b, [2, 3]), [0]), "the extent of axis 0 is 2"),
        (lambda b: b.split(*inputs(b, [5]), 2), "does not divide into 2 equal parts"),
        (lambda b: b.concat(inputs(b, [2, 3], [3, 3]), axis=1), "concat: "),
        (lambda b: b.expand(*inputs(b, [2, 3]), [2, 4]), "expand: "),
        (lambda b: b.transpose(*inputs(b, [2, 3]), [0, 0]), "transpose: "),
        (lambda b: b.clamp(*inputs(b, [2]), 3, 1), "clamp: "),
        (
            lambda b: b.relu(*inputs(b, [2]), label="stem") and b.matmul(*inputs(b, [2]), label="q"),
            "already taken",
        ),
    ],
)
def test_operators_reject_what_does_not_fit(builder, call, message):
    with pytest.raises(ValueError, match=message):
        call(builder)


def test_the_label_stands_in_the_message(builder):
    x, y = inputs(builder, [2, 3], [4, 5])
    with pytest.raises(ValueError, match=r"matmul \(scores\): Incompatible"):
        builder.matmul(x, y, label="scores")


def test_operands_of_one_call_have_one_dtype(builder):
    x = builder.input("x", [2], F32)
    y = builder.input("y", [2], "int32")
    with pytest.raises(
        ValueError, match="operand b is int32 but a is float32; they must have the same dtype"
    ):
        builder.add(x, y)


def test_operands_belong_to_their_builder(context, builder):
    x = builder.input("x", [2], F32)
    other = context.create_graph_builder()
    with pytest.raises(ValueError, match="belongs to another builder"):
        other.relu(x)
    with pytest.raises(ValueError, match="belongs to another builder"):
        other.build({"y": builder.relu(x)})


def test_what_is_no_operand_is_a_type_error(builder):
    with pytest.raises(TypeError, match="not an MLOperand"):
        builder.relu(np.zeros(2, np.float32))
    with pytest.raises(TypeError, match="missing a required argument"):
        builder.add(builder.input("x", [2], F32))
    with pytest.raises(TypeError, match="unexpected keyword"):
        builder.relu(builder.input("y", [2], F32), alpha=1)


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ([2, 0], F32, "extent 0 is not positive"),
        ([-1], F32, "extent -1 is not positive"),
        ([2**32], F32, "exceeds 4294967295"),
        ([2**31] * 3, F32, "larger than the address space"),
        ([1] * 9, F32, "rank 9"),
        ([1], "float64", "unknown data type 'float64'"),
        ([{"maxSize": 2}], F32, "needs a 'name'"),
    ],
)
def test_inputs_have_sensible_types(builder, shape, dtype, message):
    with pytest.raises(ValueError, match=message):
        builder.input("x", shape, dtype)


def test_names_are_given_once_and_not_empty(builder):
    x = builder.input("x", [1], F32)
    with pytest.raises(ValueError, match="'x' is already taken"):
        builder.input("x", [1], F32)
    with pytest.raises(ValueError, match="name is empty"):
        builder.input("", [1], F32)
    with pytest.raises(ValueError, match="name is empty"):
        builder.build({"": builder.relu(x)})


def test_build_wants_results(builder):
    x = builder.input("x", [1], F32)
    with pytest.raises(ValueError, match="no outputs"):
        builder.build({})
    with pytest.raises(ValueError, match="is an input or a constant"):
        builder.build({"x": x})


def test_constants_have_as_many_elements_as_their_shape(builder):
    with pytest.raises(ValueError, match="16 bytes given, float32\\[3, 3\\] needs 36"):
        builder.constant(np.zeros((2, 2), np.float32), [3, 3])
    with pytest.raises(ValueError, match="which WebNN does not have"):
        builder.constant(np.zeros(2, np.float64))


def test_compute_names_what_is_missing_or_wrong(context, builder):
    x = builder.input("x", [2, 2], F32)
    graph = builder.build({"y": builder.relu(x)})
    with pytest.raises(ValueError, match="compute: Missing input: x; the graph's input is x"):
        context.compute(graph, {})
    with pytest.raises(ValueError, match="the graph has no input 'z'"):
        context.compute(graph, {"x": np.zeros((2, 2), np.float32), "z": np.zeros(2, np.float32)})
    with pytest.raises(ValueError, match=r"input 'x' has shape \[3\], the graph declares \[2, 2\]"):
        context.compute(graph, {"x": np.zeros(3, np.float32)})
    with pytest.raises(ValueError, match="input 'x' is str128; it must be float32"):
        context.compute(graph, {"x": "text"})
    with pytest.raises(ValueError, match="input 'x': a list does not convert to float32"):
        context.compute(graph, {"x": [[1], [2, 3]]})
    with pytest.raises(
        ValueError, match=r"output 'y': the array has shape \[2, 3\], the graph gives \[2, 2\]"
    ):
        context.compute(graph, {"x": np.zeros((2, 2), np.float32)}, {"y": np.zeros((2, 3), np.float32)})


def test_dispatch_names_what_is_missing_or_wrong(context, builder):
    graph = builder.build({"y": builder.relu(builder.input("x", [2], F32))})
    good = context.create_tensor([2], F32)
    for given, results, message in [
        ({}, {"y": good}, "Missing input: x"),
        ({"x": good}, {}, "dispatch: Missing output: y; the graph's output is y"),
        ({"x": good, "z": good}, {"y": good}, "no input 'z'"),
        ({"x": context.create_tensor([2], "int32")}, {"y": good}, "is int32, the graph declares float32"),
        ({"x": context.create_tensor([3], F32)}, {"y": good}, r"shape \[3\]"),
        ({"x": good}, {"y": context.create_tensor([1, 2], F32)}, r"shape \[1, 2\], the graph declares \[2\]"),
    ]:
        with pytest.raises(ValueError, match=message):
            context.dispatch(graph, given, results)


def test_tensors_reject_data_of_another_size(context):
    tensor = context.create_tensor([2, 2], F32, writable=True)
    with pytest.raises(ValueError, match="Shape mismatch"):
        context.write_tensor(tensor, np.zeros((2, 3), np.float32))


def test_huge_tensors_are_refused_not_fatal(context):
    with pytest.raises(MemoryError, match="cannot allocate"):
        context.create_tensor([2**31, 2**20], F32)


def test_unknown_power_preferences_and_devices_are_named(context):
    with pytest.raises(ValueError, match="power preference 'max'"):
        webnn.ML().create_context(power_preference="max")
    with pytest.raises(ValueError, match="there is no device 'TPU9'; known: cpu"):
        webnn.ML().create_context(device="TPU9")
    with pytest.raises(ValueError, match="device type 'tpu' is none of auto, cpu, gpu, npu"):
        webnn.ML().create_context(device_type="tpu")
    for known in ("auto", "cpu", "gpu", "npu"):
        assert webnn.ML().create_context(device_type=known).device


def test_graph_files_that_are_none_say_so(context, tmp_path):
    with pytest.raises(OSError, match=r"absent\.hrg"):
        context.load_graph(str(tmp_path / "absent.hrg"))
    path = tmp_path / "bad.hrg"
    path.write_bytes(b"not a graph at all")
    with pytest.raises(ValueError, match=r"bad\.hrg"):
        context.load_graph(str(path))


def test_outputs_do_not_alias_each_other(context, builder):
    x = builder.input("x", [4], F32)
    graph = builder.build({"y": builder.relu(x), "z": builder.neg(x)})
    mine = np.ones(4, np.float32)
    with pytest.raises(ValueError, match="output 'z' overlaps the memory of output 'y'"):
        context.compute(graph, {"x": np.ones(4, np.float32)}, {"y": mine, "z": mine})
    with pytest.raises(ValueError, match="no output 'w'"):
        context.compute(graph, {"x": mine}, {"w": np.ones(4, np.float32)})
    with pytest.raises(TypeError, match="must be a dict"):
        context.compute(graph, {"x": mine}, [1])


def test_results_without_elements_are_refused(builder):
    x = builder.input("x", [4], F32)
    with pytest.raises(ValueError, match="would be empty"):
        builder.slice(x, [0], [0])


def test_integers_beyond_64_bits_are_value_errors(builder):
    x = builder.input("x", [4], F32)
    with pytest.raises(ValueError, match="64-bit range"):
        builder.slice(x, [2**63], [1])


def test_shorthands_name_the_label(builder):
    x = builder.input("x", [2, 3], F32)
    for call in (
        lambda: builder.squeeze(x, [0], label="L"),
        lambda: builder.unsqueeze(x, [9], label="L"),
        lambda: builder.split(x, 2, 1, label="L"),
        lambda: builder.global_max_pool(x, label="L"),
        lambda: builder.pad(x, label="L"),
    ):
        with pytest.raises(ValueError, match=r"\(L\): "):
            call()


def test_a_tensor_destroyed_during_a_dispatch_stays_alive_until_its_end(context, builder):
    x = builder.input("x", [256, 256], F32)
    y = x
    for _ in range(10):
        y = builder.matmul(y, x)
    graph = builder.build({"y": y})
    for _ in range(5):
        source = context.create_tensor([256, 256], F32)
        target = context.create_tensor([256, 256], F32)

        def dispatch(source=source, target=target):
            with contextlib.suppress(RuntimeError):  # destroyed before the dispatch began
                context.dispatch(graph, {"x": source}, {"y": target})

        thread = threading.Thread(target=dispatch)
        thread.start()
        source.destroy()
        target.destroy()
        thread.join()


def test_graphs_and_tensors_stay_with_their_context(context):
    other = webnn.ML().create_context(accelerated=False)
    builder = other.create_graph_builder()
    graph = builder.build({"y": builder.relu(builder.input("x", [2], F32))})
    feeds = {"x": np.zeros(2, np.float32)}
    with pytest.raises(ValueError, match="compute: the graph belongs to another context"):
        context.compute(graph, feeds)
    mine, theirs = context.create_tensor([2], F32, True, True), other.create_tensor([2], F32, True, True)
    with pytest.raises(ValueError, match="read_tensor: the tensor belongs to another context"):
        other.read_tensor(mine)
    with pytest.raises(ValueError, match="write_tensor: the tensor belongs to another context"):
        context.write_tensor(theirs, np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="dispatch: input 'x': the tensor belongs to another context"):
        other.dispatch(graph, {"x": mine}, {"y": theirs})


def test_any_context_runs_a_graph_that_mlgraph_load_made(context, builder, tmp_path):
    path = str(tmp_path / "graph.hrg")
    builder.build({"y": builder.relu(builder.input("x", [2], F32))}).save(path)
    graph = webnn.MLGraph.load(path)
    feeds = {"x": np.array([-1, 2], np.float32)}
    for any_context in (context, webnn.ML().create_context(accelerated=False)):
        assert any_context.compute(graph, feeds)["y"].tolist() == [0, 2]


def test_extents_that_no_integer_holds_and_unknown_keys_are_named(builder):
    with pytest.raises(ValueError, match=f"an extent is {2**63}, outside the 64-bit range"):
        builder.input("x", [2**63], F32)
    with pytest.raises(ValueError, match="dimension 'n' has the unknown key 'max_size'"):
        builder.input("x", [{"name": "n", "max_size": 3}], F32)
    with pytest.raises(TypeError, match="integer"):
        builder.input("x", [{"name": "n", "maxSize": "3"}], F32)


def test_an_output_that_cannot_take_the_result_is_named(context, builder):
    graph = builder.build({"y": builder.relu(builder.input("x", [2], F32))})
    frozen = np.zeros(2, np.float32)
    frozen.flags.writeable = False
    for into in (frozen, np.zeros(2, np.int32)):
        with pytest.raises(ValueError, match="output 'y' cannot take the result"):
            context.compute(graph, {"x": np.ones(2, np.float32)}, {"y": into})


def test_options_go_by_the_specifications_names_too(builder):
    x = builder.input("x", [1, 2, 4, 4], F32)
    assert builder.max_pool2d(x, window_dimensions=[2, 2], padding=[1, 1, 1, 1]).shape == [1, 2, 5, 5]
    assert builder.max_pool2d(x, window_dimensions=[2, 2], pads=[1, 1, 1, 1]).shape == [1, 2, 5, 5]
    w = builder.constant(np.zeros((3, 2, 3, 3), np.float32))
    assert builder.conv2d(x, w, padding=[1, 1, 1, 1]).shape == [1, 3, 4, 4]
    defaults = inspect.signature(builder.elu).parameters
    assert defaults["alpha"].default == 1.0
