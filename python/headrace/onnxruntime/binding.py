"""IOBinding: where a session's inputs lie and where its outputs shall."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .element_types import dtype_given
from .feeds import check_type
from .values import OrtValue, check_device

if TYPE_CHECKING:
    from .session import InferenceSession


class IOBinding:
    """session.io_binding() makes it. Results are written into the arrays that outputs are bound to, or copied
    where the graph has them in another dtype.
    """

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | None] = {}
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
        check_device(device_type)
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
        check_device(device_type)
        if buffer_ptr is None:
            self._outputs[name] = None
            return
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
        return [value.numpy().copy() for value in self._results]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results.clear()

    def _arrays(self) -> dict[str, np.ndarray]:
        """That outputs are bound to."""
        bound = {name: value._value for name, value in self._outputs.items() if value is not None}
        return {name: array for name, array in bound.items() if isinstance(array, np.ndarray)}

    def _finish(self, results: list[Any]) -> None:
        """Gives a run's results, in the order of the outputs that are bound, their places."""
        made = []
        for (name, value), result in zip(self._outputs.items(), results, strict=True):
            if value is None:
                made.append(OrtValue(result, self._session._element_type(name)))
                continue
            array = value._tensor("bind_ortvalue_output")
            check_type(self._session._output(name), array, "output")
            if array.shape != result.shape:
                raise RuntimeError(
                    f"The output OrtValue provided for output '{name}' has shape {list(array.shape)} but the "
                    f"computed output shape for this run is {list(result.shape)}."
                )
            if result is not array:
                np.copyto(array, result)
            made.append(value)
        self._results = made


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
