"""The exceptions and fragments of messages that programs written for pywebnn match."""

from __future__ import annotations

import numpy as np
import pytest
import webnn

F32 = "float32"


def x(builder, *shape, dtype=F32):
    return builder.input(f"x{np.random.default_rng().integers(2**62)}", list(shape), dtype)


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("Incompatible shapes", lambda b: b.add(x(b, 2, 3), x(b, 2, 4))),
        ("Incompatible shapes for matmul", lambda b: b.matmul(x(b, 2, 3), x(b, 4, 5))),
        ("Reshape requires same number of elements", lambda b: b.reshape(x(b, 2, 3), [7])),
        ("Axis 2 out of bounds for rank 2", lambda b: b.reduce_sum(x(b, 2, 3), [2])),
        ("out of bounds", lambda b: b.gather(x(b, 2, 3), x(b, 1, dtype="int32"), axis=5)),
        ("out of bounds", lambda b: b.split(x(b, 4), [2, 2], axis=3)),
        ("out of bounds", lambda b: b.squeeze(x(b, 1, 2), [4])),
        ("out of bounds", lambda b: b.concat([x(b, 2), x(b, 2)], 1)),
        ("Duplicate axis", lambda b: b.reduce_mean(x(b, 2, 3), [0, 0])),
        ("Duplicate axis", lambda b: b.squeeze(x(b, 1, 2), [0, 0])),
        ("Shape mismatch", lambda b: b.gather_elements(x(b, 2, 3), x(b, 2, dtype="int32"))),
        ("Invalid layout", lambda b: b.max_pool2d(x(b, 1, 1, 4, 4), layout="abcd")),
        ("Invalid layout", lambda b: b.global_max_pool(x(b, 1, 1, 4, 4), layout="abcd")),
        ("Invalid layout", lambda b: b.instance_normalization(x(b, 1, 1, 4, 4), layout="abcd")),
        ("Invalid input_layout", lambda b: b.conv2d(x(b, 1, 1, 4, 4), x(b, 1, 1, 2, 2), input_layout="a")),
        (
            "Invalid input_layout",
            lambda b: b.conv_transpose2d(x(b, 1, 1, 4, 4), x(b, 1, 1, 2, 2), input_layout="a"),
        ),
        ("Pool2d input must be 4D", lambda b: b.average_pool2d(x(b, 4, 4))),
        ("Pool2d input must be 4D", lambda b: b.l2_pool2d(x(b, 4, 4))),
        ("Global pooling input must be 4D", lambda b: b.global_max_pool(x(b, 4, 4))),
        ("Conv2d input must be 4D", lambda b: b.conv2d(x(b, 4, 4), x(b, 1, 1, 2, 2))),
        ("ConvTranspose2d input must be 4D", lambda b: b.conv_transpose2d(x(b, 4), x(b, 1, 1, 2, 2))),
        (
            "Conv2d input channels.*must be divisible by groups",
            lambda b: b.conv2d(x(b, 1, 3, 4, 4), x(b, 2, 1, 2, 2), groups=2),
        ),
    ],
)
def test_builders_raise_value_errors(builder, message, call):
    with pytest.raises(ValueError, match=message):
        call(builder)


def test_unknown_data_types_are_value_errors(context, builder):
    for call in (
        lambda: builder.input("x", [1], "float99"),
        lambda: builder.cast(x(builder, 1), "float99"),
        lambda: context.create_tensor([1], "float99"),
        lambda: context.create_host_tensor([1], "float99"),
    ):
        with pytest.raises(ValueError, match="float99"):
            call()


def test_operands_that_are_none_are_type_errors(builder):
    for wrong in (1.5, "x", np.ones(2, np.float32)):
        with pytest.raises(TypeError, match="not an MLOperand"):
            builder.relu(wrong)


def test_missing_and_unknown_inputs_are_value_errors(context, builder):
    graph = builder.build({"y": builder.relu(builder.input("x", [1], F32))})
    with pytest.raises(ValueError, match="Missing input: x"):
        context.compute(graph, {"other": np.ones(1, np.float32)})
    with pytest.raises(ValueError, match="no input 'other'"):
        context.compute(graph, {"x": np.ones(1, np.float32), "other": 3})


def test_inputs_of_another_shape_are_value_errors(context, builder):
    graph = builder.build({"y": builder.relu(builder.input("x", [2], F32))})
    with pytest.raises(ValueError, match="shape"):
        context.compute(graph, {"x": np.ones((2, 2), np.float32)})


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("not readable", lambda c, t: c.read_tensor(t)),
        ("not writable", lambda c, t: c.write_tensor(t, np.ones(1, np.float32))),
        ("already destroyed", lambda c, t: (t.destroy(), t.destroy())),
        ("destroyed", lambda c, t: (t.destroy(), c.read_tensor(t))),
        ("destroyed", lambda c, t: (t.destroy(), c.write_tensor(t, np.ones(1, np.float32)))),
    ],
)
def test_misused_tensors_raise_runtime_errors(context, message, call):
    with pytest.raises(RuntimeError, match=message):
        call(context, context.create_tensor([1], F32))


def test_tensors_take_data_of_their_shape_only(context):
    tensor = context.create_tensor([2], F32, writable=True)
    with pytest.raises(ValueError, match="Shape mismatch"):
        context.write_tensor(tensor, np.ones(3, np.float32))


def test_files_that_are_not_there_are_os_errors(tmp_path, builder):
    with pytest.raises(OSError, match="absent"):
        webnn.MLGraph.load(str(tmp_path / "absent.webnn"))
    graph = builder.build({"y": builder.relu(builder.input("x", [1], F32))})
    with pytest.raises(OSError, match="folder"):
        graph.save(str(tmp_path / "folder" / "graph.webnn"))


def test_contexts_take_pywebnns_positional_order():
    context = webnn.ML().create_context("high-performance", False, "cpu")
    assert (context.power_preference, context.accelerated) == ("high-performance", False)
    assert webnn.ML().create_context(device_type="npu").power_preference == "default"
    assert webnn.ML().create_context(device_type="npu") is not None
