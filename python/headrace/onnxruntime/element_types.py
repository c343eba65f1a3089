"""ONNX's element types as ONNX Runtime spells them and as NumPy has them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .declared import Declared

# TensorProto.DataType: the name within "tensor(...)", and NumPy's or ml_dtypes' dtype; None: no array has it.
_TYPES: dict[int, tuple[str, str | None]] = {
    1: ("float", "float32"),
    2: ("uint8", "uint8"),
    3: ("int8", "int8"),
    4: ("uint16", "uint16"),
    5: ("int16", "int16"),
    6: ("int32", "int32"),
    7: ("int64", "int64"),
    8: ("string", None),
    9: ("bool", "bool"),
    10: ("float16", "float16"),
    11: ("double", "float64"),
    12: ("uint32", "uint32"),
    13: ("uint64", "uint64"),
    14: ("complex64", "complex64"),
    15: ("complex128", "complex128"),
    16: ("bfloat16", "bfloat16"),
    17: ("float8e4m3fn", "float8_e4m3fn"),
    18: ("float8e4m3fnuz", "float8_e4m3fnuz"),
    19: ("float8e5m2", "float8_e5m2"),
    20: ("float8e5m2fnuz", "float8_e5m2fnuz"),
    21: ("uint4", "uint4"),
    22: ("int4", "int4"),
    23: ("float4e2m1", "float4_e2m1fn"),
    24: ("float8e8m0", "float8_e8m0fnu"),
    25: ("uint2", "uint2"),
    26: ("int2", "int2"),
}
_BY_DTYPE = {dtype: number for number, (_, dtype) in _TYPES.items() if dtype}
STRING = 8


def element_dtype(number: int) -> np.dtype | None:
    """None where arrays have no such elements."""
    name = _TYPES.get(number, ("", None))[1]
    if name is None:
        return None
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))


@lru_cache(64)  # dtype.name is slow, and asked for each input of each run
def element_number(dtype: Any) -> int | None:
    """The ONNX type of what np.dtype takes; None where ONNX has none."""
    dtype = np.dtype(dtype)
    if dtype.kind in "OUST":
        return STRING
    return _BY_DTYPE.get(dtype.name)


def dtype_given(element_type: Any) -> np.dtype | None:
    """The dtype for ONNX's number, or for what np.dtype takes; None where arrays have no such elements."""
    return element_dtype(element_type) if isinstance(element_type, int) else np.dtype(element_type)


def tensor_type(number: int) -> str:
    return f"tensor({_TYPES.get(number, ('undefined', None))[0]})"


def type_string(declared: Declared) -> str:
    """'tensor(float)', 'seq(tensor(int64))', 'optional(tensor(float))'"""
    text = tensor_type(declared.element_type) if declared.kinds[-1] == "tensor" else declared.kinds[-1]
    for kind in reversed(declared.kinds[:-1]):
        text = f"{kind}({text})"
    return text
