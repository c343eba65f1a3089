"""IOBinding: where a session's inputs lie and where its outputs shall."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core import Tensor

from .element_types import dtype_given, element_dtype
from .feeds import check_type
from .values import OrtValue, device_of

if TYPE_CHECKING:
    from .session import InferenceSession


class IOBinding:
    """session.io_binding() makes it. Results are written into the arrays and the devices' values that outputs
    are bound to, or copied where the graph has them in another dtype.
    """

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | str] = {}  # a device's name for a value that each run makes
        self._results: list[OrtValue] = []

    def _bind_input(self, name: str, value: OrtValue) -> None:
        if not self._session._is_input(name):
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")
        self._inputs[name] = value

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        if not isinstance(arr_on_cpu, np.ndarray):
            raise RuntimeError("Unable to create OrtValue from the given python object")
        self._bind_input(name, OrtValue(arr_on_cpu))

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        _refuse_address(device_type, device_id, "bind_input", "bind_ortvalue_input")
        self._bind_input(name, OrtValue(_array_at(buffer_ptr, element_type, shape)))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._bind_input(name, ortvalue)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        if buffer_ptr is None:
            device_of(device_type, device_id)
            self._outputs[name] = device_type.lower()
            return
        _refuse_address(device_type, device_id, "bind_output", "bind_ortvalue_output")
        if element_type is None or shape is None:
            raise ValueError(
                "`element_type` and `shape` are to be provided if pre-allocated memory is provided"
            )
        self._outputs[name] = OrtValue(_array_at(buffer_ptr, element_type, shape))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Nothing is on its way: values lie in the CPU's memory."""

    synchronize_outputs = synchronize_inputs

    def get_outputs(self) -> list[OrtValue]:
        """The values of the last run."""
        return list(self._results)

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        return [np.array(value.numpy()) for value in self._results]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results.clear()

    def _places(self) -> dict[str, Any]:
        """What outputs go into: arrays, tensors, and dtypes of tensors that are to be made."""
        places: dict[str, Any] = {}
        for name, value in self._outputs.items():
            if isinstance(value, OrtValue):
                places[name] = value._value if value.is_tensor() else None
            elif value != "cpu":
                places[name] = element_dtype(self._session._element_type(name))
        return {name: place for name, place in places.items() if place is not None}

    def _finish(self, results: list[Any]) -> None:
        """Gives a run's results, in the order of the outputs that are bound, their places."""
        made = []
        for (name, value), result in zip(self._outputs.items(), results, strict=True):
            if isinstance(value, str):
                if value != "cpu" and isinstance(result, np.ndarray):
                    result = Tensor(result)  # of elements that the graph carries in others
                made.append(OrtValue(result, self._session._element_type(name), value))
                continue
            place = value._tensor("bind_ortvalue_output")
            check_type(self._session._output(name), place, "output")
            if place.shape != result.shape:
                raise RuntimeError(
                    f"The output OrtValue provided for output '{name}' has shape {list(place.shape)} but the "
                    f"computed output shape for this run is {list(result.shape)}."
                )
            if isinstance(place, Tensor) and result is not place:
                place.write(result)
            elif result is not place:
                np.copyto(place, result)
            made.append(value)
        self._results = made


def _refuse_address(device_type: str, device_id: int, call: str, instead: str) -> None:
    """Addresses are of the CPU's memory."""
    if device_of(device_type, device_id) is not None:
        raise RuntimeError(
            f"{call}: memory of the device '{device_type}' has no address; {instead} takes an OrtValue of "
            "OrtValue.ortvalue_from_numpy or ortvalue_from_shape_and_type"
        )


def _array_at(pointer: int, element_type: Any, shape: Sequence[int]) -> np.ndarray:
    """Memory of the caller's as an array, which does not keep it alive."""
    dtype = dtype_given(element_type)
    if dtype is None:
        raise RuntimeError(f"arrays have no elements of type {element_type}")
    count = int(np.prod(shape, dtype=np.int64))
    if count == 0:
        return np.zeros(tuple(shape), dtype)
    memory = (ctypes.c_byte * (count * dtype.itemsize)).from_address(pointer)
    return np.frombuffer(memory, dtype).reshape(tuple(shape))
