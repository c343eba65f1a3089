"""OrtValue: an array, or a list of arrays, with the element type that ONNX has for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace._core import Tensor, devices

from .element_types import STRING, dtype_given, element_dtype, element_number, tensor_type
from .errors import InvalidArgument

_FLOAT8 = 17  # float8e4m3fn, the one of its kind that ONNX Runtime gives out as an array: of bytes
_KINDS = ("cuda", "cann", "dml", "webgpu", "gpu", "npu", "vulkan")


def device_of(name: str, device_id: int = 0) -> str | None:
    """A device's name in headrace.devices(); None of the CPU's memory. name: "cpu", a kind of devices, of
    which device_id is the number, "gpu" for GPUs of every kind, or the name itself.

    Errors: Exception for what is no device, as in ONNX Runtime; RuntimeError for one that is not there.
    """
    if name.lower() == "cpu":
        return None
    others = [device for device in devices() if device.type != "cpu"]
    there = [device.name for device in others]
    wanted = name.lower()
    named = (wanted,) if device_id == 0 else ()
    for found in there:
        if found.lower() in (*named, f"{wanted}{device_id}"):
            return found
    gpus = [device.name for device in others if device.type in ("gpu", "igpu")]
    if wanted == "gpu" and 0 <= device_id < len(gpus):
        return gpus[device_id]
    if not wanted or (wanted not in _KINDS and not any(one.lower().startswith(wanted) for one in there)):
        raise Exception("Unsupported device type: " + name)  # ONNX Runtime's own, without a class
    raise RuntimeError(
        f"Can't allocate memory on the device '{name}' with the number {device_id}: Headrace has "
        f"{', '.join(there) or 'no device but the CPU'}; give one of these, 'gpu' or 'cpu'"
    )


class OrtDevice:
    """A place of values: the CPU's memory, or a device's."""

    def __init__(self, name: str = "cpu", device_id: int = 0) -> None:
        self._is_cpu = device_of(name, device_id) is None
        self._id = device_id

    @staticmethod
    def make(name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        return OrtDevice(name, device_id)

    def device_id(self) -> int:
        return self._id

    def device_type(self) -> int:
        return 0 if self._is_cpu else 1

    def device_vendor_id(self) -> int:
        return 0

    def device_mem_type(self) -> int:
        return 0


class OrtMemoryInfo:
    """Where a session's inputs and outputs lie."""

    name, device_id = "Cpu", 0


class OrtValue:
    """The factories make one; OrtValue(array) does, too, of a headrace.Tensor, a list of arrays or None.

    A value of a device's lies there from the first run on that device that reads or writes it.
    """

    def __init__(self, value: Any, element_type: int = 0, device: str = "cpu") -> None:
        """element_type: ONNX's number, where the array's dtype does not say it. device: its type."""
        self._value, self._device = value, device
        first = value if isinstance(value, (np.ndarray, Tensor)) else next(iter(value or ()), None)
        self._element_type = element_type or (element_number(first.dtype) if first is not None else 0) or 0

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: np.ndarray, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """Shows the array's memory, where that is dense; a device's value is a copy."""
        device = device_of(device_type, device_id)
        if not isinstance(numpy_obj, np.ndarray) or element_number(numpy_obj.dtype) == STRING:
            raise RuntimeError(
                "Creation of OrtValues is currently only supported from non-string numpy arrays"
            )
        if element_number(numpy_obj.dtype) is None:
            raise RuntimeError(f"Numpy type {numpy_obj.dtype} can't be converted to an element type of ONNX.")
        return cls._on(device_type, device, np.ascontiguousarray(numpy_obj).reshape(numpy_obj.shape))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, /, onnx_element_type: int) -> OrtValue:
        """Shows the array's memory as elements of another type of the same size."""
        dtype = element_dtype(onnx_element_type)
        if dtype is None or dtype.itemsize != data.dtype.itemsize:
            raise RuntimeError(
                f"elements of {data.dtype.itemsize} bytes are no {tensor_type(onnx_element_type)}"
            )
        return cls(np.ascontiguousarray(data).view(dtype), onnx_element_type)

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: Any = None,
    ) -> OrtValue:
        """element_type: NumPy's, or ONNX's number. The elements are zeros."""
        device = device_of(device_type, device_id)
        try:
            dtype = dtype_given(element_type)
        except TypeError:
            dtype = None
        if dtype is None or element_number(dtype) in (None, STRING):
            raise RuntimeError(f"an OrtValue of {element_type} cannot be made")
        if min(shape, default=0) < 0:
            raise RuntimeError(f"an OrtValue of the shape {list(shape)} cannot be made")
        return cls._on(device_type, device, np.zeros(tuple(shape), dtype))

    @classmethod
    def _on(cls, device_type: str, device: str | None, array: np.ndarray) -> OrtValue:
        """device: device_of's."""
        return cls(array) if device is None else cls(Tensor(array), device=device_type.lower())

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        return cls(np.from_dlpack(data))

    def _get_c_value(self) -> OrtValue:
        return self

    def _tensor(self, call: str) -> np.ndarray | Tensor:
        if not self.is_tensor():
            raise RuntimeError(f"{call}: Only OrtValues that are Tensors are supported")
        return self._value

    def _array(self, call: str) -> np.ndarray:
        tensor = self._tensor(call)
        return tensor.numpy() if isinstance(tensor, Tensor) else tensor

    def numpy(self) -> np.ndarray:
        """The array; of a device's value a copy."""
        array = self._array("numpy")
        if self._element_type == _FLOAT8:
            return array.view(np.uint8)
        if array.dtype.kind == "V" or array.dtype.name in ("int4", "uint4", "int2", "uint2"):
            raise RuntimeError(f"No corresponding Numpy type for Tensor Type. {array.dtype}")
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array("__dlpack__").__dlpack__(**{k: v for k, v in options.items() if k != "stream"})

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def data_ptr(self) -> int:
        tensor = self._tensor("data_ptr")
        if isinstance(tensor, Tensor):
            raise RuntimeError(
                f"data_ptr: memory of the device '{self._device}' has no address; numpy() copies the value, "
                "and bind_ortvalue_input and bind_ortvalue_output bind it where it lies"
            )
        return tensor.ctypes.data

    def device_name(self) -> str:
        return self._device

    def shape(self) -> list[int]:
        return list(self._tensor("shape").shape)

    def data_type(self) -> str:
        text = tensor_type(self._element_type)
        return f"seq({text})" if self.is_tensor_sequence() else text

    def element_type(self) -> int:
        return self._element_type

    def tensor_size_in_bytes(self) -> int:
        return self._tensor("tensor_size_in_bytes").nbytes

    def has_value(self) -> bool:
        return self._value is not None

    def is_tensor(self) -> bool:
        return isinstance(self._value, (np.ndarray, Tensor))

    def is_sparse_tensor(self) -> bool:
        return False

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list)

    def update_inplace(self, data: Any) -> None:
        """Copies an array of as many elements, or another value, over this one's."""
        target = self._tensor("update_inplace")
        source = data.numpy() if isinstance(data, OrtValue) else data
        if not isinstance(source, np.ndarray):
            raise TypeError("data must be a numpy.ndarray or an OrtValue.")
        if source.size != int(np.prod(target.shape)):
            raise RuntimeError("The input size of numpy arrays does not match the size of the OrtValue.")
        if source.dtype != target.dtype:
            raise InvalidArgument.of(f"the array is {source.dtype}, the OrtValue {target.dtype}")
        source = source.reshape(target.shape)
        if isinstance(target, Tensor):
            target.write(source)
        else:
            target[...] = source


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    for source, target in zip(src, dst, strict=True):
        target.update_inplace(source)
