"""What a caller feeds, checked as ONNX Runtime checks it."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace._core import Tensor

from .declared import Declared
from .element_types import element_dtype, element_number, tensor_type, type_string
from .errors import Fail, InvalidArgument
from .values import OrtValue


def fed(info: Declared, value: Any) -> Any:
    """An array, a tensor, a list of arrays or None. Errors: RuntimeError for others; InvalidArgument."""
    if isinstance(value, OrtValue):
        value = value._value
    if value is None:
        if info.is_optional:
            return None
        raise Fail.of(f"Missing Input: {info.name}")
    if info.is_sequence:
        return [_element(info, part) for part in _list(info, value)]
    if isinstance(value, list):
        value = _array_of(info, value)
    if not isinstance(value, (np.ndarray, Tensor)):
        raise RuntimeError(
            "Input must be a list of dictionaries or a single numpy array for input "
            f"'{info.name}'. Unable to handle object of type {type(value)}"
        )
    check_type(info, value)
    _check_shape(info, value.shape)
    return value


def check_type(info: Declared, array: np.ndarray | Tensor, what: str = "input") -> None:
    number = element_number(array.dtype)
    if number is None or array.dtype.kind == "c":
        raise RuntimeError(f"Numpy type {array.dtype} can't be converted to an element type of ONNX.")
    if number != info.element_type:
        raise InvalidArgument.of(
            f"Unexpected {what} data type. Actual: ({tensor_type(number)}) , expected: "
            f"({tensor_type(info.element_type)})"
        )


def _list(info: Declared, value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, np.ndarray):
        raise InvalidArgument.of(
            f"input with name: '{info.name}' expected to be of type: {type_string(info)}"
            " but received a tensor"
        )
    raise RuntimeError(f"Unable to handle object of type {type(value)} for input '{info.name}'.")


def _element(info: Declared, value: Any) -> np.ndarray:
    array = np.asarray(value)
    if element_number(array.dtype) != info.element_type:
        raise RuntimeError(
            f"input '{info.name}': a tensor of the sequence is {array.dtype}; {type_string(info)} is expected"
        )
    return array


def _array_of(info: Declared, value: list[Any]) -> np.ndarray:
    try:
        return np.asarray(value, dtype=element_dtype(info.element_type))
    except (TypeError, ValueError) as error:
        raise RuntimeError(f"input '{info.name}': the list is no array: {error}") from None


def _check_shape(info: Declared, shape: tuple[int, ...]) -> None:
    wanted = info.shape
    if wanted is None:
        return
    remedy = "Please fix either the inputs/outputs or the model."
    if len(wanted) != len(shape):
        raise InvalidArgument.of(
            f"Invalid rank for input: {info.name} Got: {len(shape)} Expected: {len(wanted)} {remedy}"
        )
    wrong = [
        f" index: {axis} Got: {got} Expected: {due}\n"
        for axis, (got, due) in enumerate(zip(shape, wanted, strict=True))
        if isinstance(due, int) and got != due
    ]
    if wrong:
        raise InvalidArgument.of(
            f"Got invalid dimensions for input: {info.name} for the following indices\n"
            f"{''.join(wrong)} {remedy}"
        )
