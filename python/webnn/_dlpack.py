"""Tensors as arrays of other libraries: NumPy's __array__ and DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np
from headrace._core import MLDeviceTensor, MLTensor, read


def _array(self: MLTensor | MLDeviceTensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """A copy of the content: later runs do not change it. RuntimeError unless the tensor is readable."""
    if copy is False:
        raise ValueError("the content of a tensor can only be copied")
    content = read(self)
    return content if dtype is None else content.astype(dtype)


def _dlpack(self: MLTensor | MLDeviceTensor, **options: Any) -> Any:
    """A DLPack capsule with a copy of the content."""
    if options.get("copy") is False:
        raise BufferError("the content of a tensor can only be copied")
    return _array(self).__dlpack__(**options)


def _dlpack_device(self: MLTensor | MLDeviceTensor) -> tuple[int, int]:
    """The CPU."""
    return (1, 0)


def install() -> None:
    """Adds the protocols to MLTensor and MLDeviceTensor."""
    for tensor in (MLTensor, MLDeviceTensor):
        tensor.__array__ = _array
        tensor.__dlpack__ = _dlpack
        tensor.__dlpack_device__ = _dlpack_device
