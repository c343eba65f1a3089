"""One call on ONNX Runtime and on headrace.onnxruntime: values, exceptions' classes and warnings agree."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import headrace.onnxruntime as ours
import numpy as np
import onnxruntime as theirs

theirs.set_default_logger_severity(4)
SIDES = {"headrace": ours, "ONNX Runtime": theirs}


def outcome(call: Callable[[ModuleType], Any], side: ModuleType) -> tuple[str, Any, list[str]]:
    """("value", what it gives) or ("error", the class), and the warnings' first words."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            kind, value = "value", call(side)
        except Exception as error:
            name = type(error).__module__.removeprefix("onnxruntime.capi.")
            kind, value = "error", f"{name}.{type(error).__qualname__}"
    return kind, value, [f"{w.category.__name__}: {str(w.message).split('.Available')[0]}" for w in said]


def same(call: Callable[[ModuleType], Any]) -> Any:
    """What both give: a value, or the exception's class. Raises AssertionError where they differ."""
    (kind, value, said), other = (outcome(call, side) for side in SIDES.values())
    assert (kind, said) == (other[0], other[2]), f"headrace: {value}; ONNX Runtime: {other[1]}"
    assert_alike(value, other[1])
    return value


def assert_alike(a: Any, b: Any) -> None:
    if isinstance(b, np.ndarray):
        assert isinstance(a, np.ndarray) and (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    elif isinstance(b, (list, tuple)):
        assert type(a) is type(b) and len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_alike(x, y)
    else:
        assert a == b
