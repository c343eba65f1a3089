"""ONNX Runtime's values and bindings on the device that HEADRACE_TEST_DEVICE names."""

from __future__ import annotations

import os

import numpy as np
import pytest

DEVICE = os.environ.get("HEADRACE_TEST_DEVICE")
if not DEVICE:
    pytest.skip("no device is named: make test-vulkan names one", allow_module_level=True)

import headrace  # noqa: E402
import headrace.onnxruntime as onnxruntime  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

KIND = DEVICE.rstrip("0123456789").lower()  # as ONNX Runtime's programs write "cuda"
NUMBER = int(DEVICE[len(KIND) :] or 0)
X = np.random.default_rng(2).standard_normal((3, 16), np.float32)


def layer(element_type: int = TensorProto.FLOAT) -> bytes:
    """y = tanh(x w) of [rows, 16], and how many elements of y are above 0."""
    w = np.random.default_rng(1).standard_normal((16, 16)).astype(np.float32) / 4
    w = w.astype(helper.tensor_dtype_to_np_dtype(element_type))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Tanh", ["h"], ["y"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "layer",
        [value("x", element_type, ["rows", 16])],
        [value("y", element_type, ["rows", 16])],
        [numpy_helper.from_array(w, "w")],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10
    ).SerializeToString()


def session(device: str = DEVICE, model: bytes | None = None) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("headrace.device", device)
    return onnxruntime.InferenceSession(model or layer(), options)


def copies(of: onnxruntime.InferenceSession) -> int:
    return of._program.model.session.stats["copies"]


def chained(times: int) -> np.ndarray:
    """What the layer makes of X, applied again and again on the CPU."""
    here, x = session("cpu"), X
    for _ in range(times):
        (x,) = here.run(None, {"x": x})
    return x


def test_a_chain_of_bound_runs_copies_nothing_after_its_first_input() -> None:
    there = session()
    value, found = onnxruntime.OrtValue.ortvalue_from_numpy(X, KIND, NUMBER), []
    for _ in range(10):
        binding = there.io_binding()
        binding.bind_ortvalue_input("x", value)
        binding.bind_output("y", KIND, NUMBER)
        there.run_with_iobinding(binding)
        found.append(copies(there))
        (value,) = binding.get_outputs()
        assert value.device_name() == KIND and value.shape() == [3, 16] and value._value.is_on_device
    assert found == [1] + [0] * 9
    np.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], chained(10), atol=1e-5)


def test_two_values_of_the_callers_take_turns_without_a_copy() -> None:
    there = session()
    values = [
        onnxruntime.OrtValue.ortvalue_from_numpy(X, KIND, NUMBER),
        onnxruntime.OrtValue.ortvalue_from_shape_and_type([3, 16], np.float32, KIND, NUMBER),
    ]
    binding, found = there.io_binding(), []
    for i in range(10):
        binding.bind_ortvalue_input("x", values[i % 2])
        binding.bind_ortvalue_output("y", values[1 - i % 2])
        there.run_with_iobinding(binding)
        found.append(copies(there))
    assert found == [1] + [0] * 9
    np.testing.assert_allclose(values[0].numpy(), chained(10), atol=1e-5)


def test_a_value_of_the_devices_may_be_read_and_written_from_here() -> None:
    there = session()
    value = onnxruntime.OrtValue.ortvalue_from_numpy(X, DEVICE)
    (first,) = there.run(None, {"x": value})
    value.update_inplace(2 * X)
    (second,) = there.run(None, {"x": value})
    here = session("cpu")
    np.testing.assert_allclose(first, here.run(None, {"x": X})[0], atol=1e-6)
    np.testing.assert_allclose(second, here.run(None, {"x": value})[0], atol=1e-6)
    np.testing.assert_array_equal(value.numpy(), 2 * X)


def test_one_value_as_input_and_output_is_right() -> None:
    there = session()
    value = onnxruntime.OrtValue.ortvalue_from_numpy(X, "gpu", 0)
    binding = there.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_ortvalue_output("y", value)
    for _ in range(3):
        there.run_with_iobinding(binding)
    np.testing.assert_allclose(value.numpy(), chained(3), atol=1e-5)


def test_element_types_that_the_graph_carries_in_others_come_back_as_they_are() -> None:
    there = session(model=layer(TensorProto.BFLOAT16))
    x = X.astype(helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16))
    binding = there.io_binding()
    binding.bind_ortvalue_input("x", onnxruntime.OrtValue.ortvalue_from_numpy(x, KIND, NUMBER))
    binding.bind_output("y", KIND, NUMBER)
    there.run_with_iobinding(binding)
    (y,) = binding.get_outputs()
    assert y.data_type() == "tensor(bfloat16)"
    (expected,) = session("cpu", layer(TensorProto.BFLOAT16)).run(None, {"x": x})
    np.testing.assert_allclose(y._value.numpy().astype(np.float32), expected.astype(np.float32), atol=1e-2)


def test_tensors_of_the_wrong_type_and_shape_are_refused() -> None:
    there = session()
    binding = there.io_binding()
    binding.bind_ortvalue_input("x", onnxruntime.OrtValue.ortvalue_from_numpy(X, KIND, NUMBER))
    wrong = onnxruntime.OrtValue.ortvalue_from_shape_and_type([4, 16], np.float32, KIND, NUMBER)
    binding.bind_ortvalue_output("y", wrong)
    with pytest.raises(RuntimeError, match=r"output 'y' is float32\[3, 16\].*\[4, 16\]"):
        there.run_with_iobinding(binding)
    with pytest.raises(RuntimeError, match="has no address; bind_ortvalue_output takes"):
        binding.bind_output("y", KIND, NUMBER, np.float32, [3, 16], 4096)
    with pytest.raises(RuntimeError, match="has no address; numpy"):
        wrong.data_ptr()


def test_model_and_session_take_tensors_too() -> None:
    model = headrace.load(layer(), device=DEVICE)
    x = headrace.Tensor(X)
    for _ in range(4):
        x = model.run({"x": x}, {"y": headrace.Tensor})["y"]
        assert x.is_on_device
    np.testing.assert_allclose(x.numpy(), chained(4), atol=1e-5)
