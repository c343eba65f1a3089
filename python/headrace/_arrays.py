"""NumPy side of the native module: conversions that its fast path does not do itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._core import bfloat16_bits

_NUMPY_NAMES = {
    "f32": "float32",
    "f16": "float16",
    "f64": "float64",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "u16": "uint16",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "u64": "uint64",
    "bool": "bool",
}
_ML_NAMES = {  # types that are ml_dtypes'
    "bf16": "bfloat16",
    "i4": "int4",
    "u4": "uint4",
    "i2": "int2",
    "u2": "uint2",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0": "float8_e8m0fnu",
    "f4e2m1": "float4_e2m1fn",
}
_SHORT_NAMES = {name: short for short, name in (_NUMPY_NAMES | _ML_NAMES).items()}
_ML_LIMITS = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}


def dtype_of(name: str) -> np.dtype:
    """The NumPy dtype of one of our dtype names, those that only ONNX models have included."""
    if name in _NUMPY_NAMES:
        return np.dtype(_NUMPY_NAMES[name])
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, _ML_NAMES[name]))


def short_name(data_type: str) -> str:
    """Our name of a dtype that NumPy or the WebNN specification names; others stay as they are."""
    return _SHORT_NAMES.get(data_type, data_type)


def as_array(value: Any) -> np.ndarray:
    """What np.asarray gives, and arrays of other libraries through DLPack, without a copy where it can."""
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    bits = bfloat16_bits(value)
    if bits is not None:
        return bits.view(dtype_of("bf16"))
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError):  # memory of a GPU, or that counts gradients
        return np.asarray(value)


def coerce(value: object, name: str, what: str) -> tuple[np.ndarray, tuple[int, ...]]:
    """A dense array of dtype `name` and its shape, converted by NumPy where elements keep their meaning.

    4-bit elements come packed, the low nibble first, and bfloat16 as int16 of the same bits.
    """
    try:
        array = as_array(value)
        wanted = dtype_of(name)
        check_meaning(array, wanted, what)
        dense = np.ascontiguousarray(array, dtype=wanted).reshape(array.shape)
    except ChangedMeaningError as error:
        raise ValueError(str(error)) from None
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"{what}: a {type(value).__name__} does not convert to {dtype_of(name).name}: {error}"
        ) from None
    if name in ("i4", "u4"):
        dense = pack_nibbles(dense)
    return (dense.view(np.int16) if name == "bf16" else dense), array.shape


class ChangedMeaningError(ValueError):
    """Elements of an array are no elements of the dtype that is wanted."""


def check_meaning(array: np.ndarray, wanted: np.dtype, what: str) -> None:
    """Errors: ChangedMeaningError for what is no number, and for numbers that an integer dtype or bool does
    not hold: fractions, NaN and what is out of its range. Floats take any number, rounded as NumPy rounds.
    """
    if array.dtype in (wanted, bool):
        return
    if array.dtype.kind not in "fiuV":
        raise ChangedMeaningError(f"{what} is {array.dtype.name}; it must be {wanted.name}")
    limits = _limits(wanted)
    if limits is None or array.size == 0:
        return
    # A type of ml_dtypes: float64 holds all its numbers.
    numbers = array.astype(np.float64) if array.dtype.kind == "V" else array
    low, high = limits
    # One beyond the highest is a power of two, which every float has; the highest itself may round to it.
    is_held = (numbers >= low) & (numbers < high + 1 if numbers.dtype.kind == "f" else numbers <= high)
    if numbers.dtype.kind == "f":
        is_held &= numbers == np.trunc(numbers)
    if not is_held.all():
        raise ChangedMeaningError(
            f"{what} is {array.dtype.name} and has {numbers[~is_held].reshape(-1)[0]}, which {wanted.name} "
            f"does not hold; convert it first (array.astype({wanted.name!r}) cuts fractions off and wraps "
            "around)"
        )


def _limits(dtype: np.dtype) -> tuple[int, int] | None:
    """The lowest and highest number of a dtype without fractions; None of others."""
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind in "iu":
        found = np.iinfo(dtype)
        return int(found.min), int(found.max)
    return _ML_LIMITS.get(dtype.name)


def pack_nibbles(array: np.ndarray) -> np.ndarray:
    """Two 4-bit elements to a byte, row-major, the low nibble first."""
    flat = array.reshape(-1).astype(np.int8).view(np.uint8) & 0xF
    if flat.size % 2:
        flat = np.append(flat, np.uint8(0))
    return flat[0::2] | (flat[1::2] << 4)


def unpack_nibbles(packed: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    """The inverse of pack_nibbles, as an array of ml_dtypes.int4 or uint4."""
    flat = np.stack([packed & 0xF, packed >> 4], axis=-1).reshape(-1)[: int(np.prod(shape, dtype=np.int64))]
    if name == "i4":
        flat = ((flat ^ 8).astype(np.int8) - 8).astype(np.int8)
    return flat.astype(dtype_of(name)).reshape(shape)


def target(value: object, name: str, shape: tuple[int, ...], output: str) -> np.ndarray:
    """The array that a result of dtype `name` is copied to; ValueError when it cannot be."""
    title = f"output '{output}'"
    try:
        array = value if isinstance(value, np.ndarray) else np.from_dlpack(value)
    except (AttributeError, BufferError, RuntimeError, TypeError):
        raise ValueError(f"{title} cannot take the result: a {type(value).__name__} is no array") from None
    if array.shape != shape:
        raise ValueError(f"{title}: the array has shape {list(array.shape)}, the graph gives {list(shape)}")
    if not np.can_cast(dtype_of(name), array.dtype, "same_kind"):
        raise ValueError(
            f"{title} cannot take the result: the array is {array.dtype}, the graph gives {dtype_of(name)}"
        )
    if not array.flags.writeable:
        raise ValueError(f"{title} cannot take the result: the array is read-only")
    return array


def shares_memory(a: object, b: object) -> bool:
    """Whether an element of the one array is one of the other; arrays of other libraries count as apart."""
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.shares_memory(a, b)
