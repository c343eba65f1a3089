"""headrace.Tensor on the CPU; on devices: tests/device."""

from __future__ import annotations

import headrace
import ml_dtypes
import numpy as np
import pytest
import webnn

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def session(tmp_path) -> headrace.Session:
    """y = -x, n = x < 2 of [2, 3]."""
    builder = webnn.ML().create_context(device="cpu").create_graph_builder()
    x = builder.input("x", [2, 3], "float32")
    two = builder.constant(np.float32(2), [], "float32")
    graph = builder.build({"y": builder.neg(x), "n": builder.lesser(x, two)})
    graph.save(tmp_path / "graph.hrg")
    return headrace.Session(headrace.compile(headrace.load_graph(tmp_path / "graph.hrg")))


@pytest.mark.parametrize(
    "array", [X, X.T, np.array(3), X > 2, X.astype(np.float16), X.astype(ml_dtypes.bfloat16), X[:0]]
)
def test_a_tensor_is_a_copy_of_an_array(array) -> None:
    tensor = headrace.Tensor(array)
    assert (tensor.dtype, tensor.shape, tensor.nbytes) == (array.dtype, array.shape, array.nbytes)
    np.testing.assert_array_equal(tensor.numpy(), array)
    np.testing.assert_array_equal(np.asarray(tensor), array)
    assert not tensor.is_on_device


def test_a_tensor_that_init_did_not_make_is_refused(session) -> None:
    with pytest.raises((TypeError, ValueError)):
        session.run({"x": headrace.Tensor.__new__(headrace.Tensor)})


def test_a_tensor_is_written_anew() -> None:
    tensor = headrace.Tensor(X)
    tensor.write(3 * X)
    np.testing.assert_array_equal(tensor.numpy(), 3 * X)
    with pytest.raises(ValueError, match=r"the array has shape \[3\], the tensor \[2, 3\]"):
        tensor.write(X[0])


def test_runs_read_and_write_tensors_beside_arrays(session) -> None:
    x, y = headrace.Tensor(X), headrace.Tensor(np.zeros((2, 3), np.float32))
    results = session.run({"x": x}, {"y": y})
    assert results["y"] is y and sorted(results) == ["n", "y"]
    np.testing.assert_array_equal(y.numpy(), -X)
    np.testing.assert_array_equal(results["n"], X < 2)
    made = session.run({"x": y}, {"n": headrace.Tensor})
    assert isinstance(made["n"], headrace.Tensor)
    np.testing.assert_array_equal(made["n"].numpy(), -X < 2)
    np.testing.assert_array_equal(made["y"], X)


def test_a_tensor_may_be_input_and_output(session) -> None:
    x = headrace.Tensor(X)
    for _ in range(3):
        session.run({"x": x}, {"y": x})
    np.testing.assert_array_equal(x.numpy(), -X)


def test_a_tensor_of_another_dtype_is_converted_as_an_array_is(session) -> None:
    given = headrace.Tensor(X.astype(np.int32))
    np.testing.assert_array_equal(session.run({"x": given})["y"], -X)
    with pytest.raises(ValueError, match=r"output 'y' is float32\[2, 3\], the tensor for it int32\[2, 3\]"):
        session.run({"x": X}, {"y": given})


def test_one_tensor_for_two_outputs_is_refused(tmp_path) -> None:
    builder = webnn.ML().create_context(device="cpu").create_graph_builder()
    x = builder.input("x", [2, 3], "float32")
    builder.build({"y": builder.neg(x), "z": builder.exp(x)}).save(tmp_path / "two.hrg")
    two = headrace.Session(headrace.compile(headrace.load_graph(tmp_path / "two.hrg")))
    y = headrace.Tensor(X)
    with pytest.raises(ValueError, match="output 'z' overlaps the memory of output 'y'"):
        two.run({"x": X}, {"y": y, "z": y})
    with pytest.raises(ValueError, match="Tensor"):
        headrace.Tensor(np.array(["a"]))
