"""Arrays of other libraries go in by DLPack, tensors come out by __array__ and DLPack."""

from __future__ import annotations

import ctypes
from typing import ClassVar

import ml_dtypes
import numpy as np
import pytest


class Foreign:
    """An array that shows nothing but DLPack, as a library without NumPy would."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.exports = 0

    def __dlpack__(self, **options: object) -> object:
        self.exports += 1
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class _Tensor(ctypes.Structure):
    """DLManagedTensor of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class ForeignBFloat16(Foreign):
    """What NumPy's own DLPack cannot say: bfloat16 elements, in any strides."""

    exported: ClassVar[list[object]] = []  # without a deleter, what was exported must live on

    def __dlpack__(self, **_: object) -> object:
        array = self.array
        integers = ctypes.c_int64 * max(array.ndim, 1)
        shape, strides = integers(*array.shape), integers(*(stride // 2 for stride in array.strides))
        bfloat = 4
        tensor = _Tensor(array.ctypes.data, 1, 0, array.ndim, bfloat, 16, 1)
        tensor.shape, tensor.strides = ctypes.addressof(shape), ctypes.addressof(strides)
        self.exported.append((array, shape, strides, tensor))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(tensor), b"dltensor", None)


@pytest.fixture
def negate(context, builder):
    graph = builder.build({"y": builder.neg(builder.input("x", [2, 3], "float32"))})
    return lambda x: context.compute(graph, {"x": x})["y"]


VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_compute_takes_arrays_by_dlpack(negate):
    foreign = Foreign(VALUES)
    np.testing.assert_array_equal(negate(foreign), -VALUES)
    assert foreign.exports == 1


def test_dense_arrays_are_read_where_they_are(context, builder):
    graph = builder.build({"y": builder.neg(builder.input("x", [2, 3], "float32"))})
    context.compute(graph, {"x": Foreign(VALUES)})
    assert (graph.run_stats["inputs_bound"], graph.run_stats["inputs_copied"]) == (1, 0)


@pytest.mark.parametrize("array", [VALUES.astype(np.float64), np.asfortranarray(VALUES), VALUES[:, ::1]])
def test_dtypes_and_layouts_of_foreign_arrays_are_converted(negate, array):
    np.testing.assert_array_equal(negate(Foreign(array)), -VALUES)


def test_bfloat16_arrays_are_converted(negate):
    brain = VALUES.astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(negate(ForeignBFloat16(brain)), -VALUES)
    turned = np.ascontiguousarray(brain.T).T
    np.testing.assert_array_equal(negate(ForeignBFloat16(turned)), -VALUES)


def test_results_go_into_foreign_arrays(context, builder):
    graph = builder.build({"y": builder.neg(builder.input("x", [2, 3], "float32"))})
    target = np.zeros((2, 3), np.float32)
    context.compute(graph, {"x": VALUES}, {"y": Foreign(target)})
    np.testing.assert_array_equal(target, -VALUES)


def test_constants_come_from_foreign_arrays(context, builder):
    whole = builder.constant(Foreign(np.array([1, 2, 3], np.int8)))
    brain = builder.constant(ForeignBFloat16(np.array([1.5, 2, 3]).astype(ml_dtypes.bfloat16)))
    assert (whole.data_type, whole.shape) == ("int8", [3])
    assert (brain.data_type, brain.shape) == ("float32", [3])
    graph = builder.build({"y": builder.add(builder.input("x", [3], "float32"), brain)})
    assert context.compute(graph, {"x": np.zeros(3, np.float32)})["y"].tolist() == [1.5, 2, 3]


def test_tensors_are_written_from_foreign_arrays(context):
    tensor = context.create_host_tensor([2, 3], "float32")
    context.write_tensor(tensor, Foreign(VALUES))
    np.testing.assert_array_equal(context.read_tensor(tensor), VALUES)


@pytest.mark.parametrize("convert", [np.asarray, np.array, np.from_dlpack])
def test_readable_tensors_become_arrays(context, convert):
    tensor = context.create_host_tensor([2, 3], "float32")
    context.write_tensor(tensor, VALUES)
    array = convert(tensor)
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, VALUES)
    context.write_tensor(tensor, -VALUES)
    np.testing.assert_array_equal(array, VALUES)  # a copy


def test_tensors_convert_on_the_way(context):
    tensor = context.create_host_tensor([2, 3], "float32")
    context.write_tensor(tensor, VALUES)
    assert np.asarray(tensor, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="can only be copied"):
        np.array(tensor, copy=False)


def test_device_tensors_become_arrays(context, builder):
    graph = builder.build({"y": builder.neg(builder.input("x", [2, 3], "float32"))})
    tensor = context.create_device_tensor(graph, [2, 3], "float32")
    tensor.write(VALUES)
    np.testing.assert_array_equal(np.asarray(tensor), VALUES)
    np.testing.assert_array_equal(np.from_dlpack(tensor), VALUES)


def test_tensors_that_are_not_readable_say_so(context):
    with pytest.raises(RuntimeError, match="not readable"):
        np.asarray(context.create_tensor([1], "float32"))


def test_a_tensor_can_be_an_input_of_compute(context, negate):
    tensor = context.create_host_tensor([2, 3], "float32")
    context.write_tensor(tensor, VALUES)
    np.testing.assert_array_equal(negate(tensor), -VALUES)
