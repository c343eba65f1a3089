"""Wrong calls raise the class of error that ONNX Runtime raises for them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import headrace.onnxruntime as ours
import numpy as np
import onnxruntime
import pytest
from both_sides import outcome, same
from small_models import ADD, FLOAT, made, node, tensor

X = np.ones((2, 3), np.float32)
FEEDS = {"x": X, "y": X}


def session(o: ModuleType) -> Any:
    return o.InferenceSession(ADD, providers=["CPUExecutionProvider"])


def override(name: Any, size: Any) -> Callable[[ModuleType], Any]:
    return lambda o: o.SessionOptions().add_free_dimension_override_by_name(name, size)


CALLS: dict[str, Callable[[ModuleType], Any]] = {
    "a provider that nobody knows": lambda o: session(o).set_providers(["NoSuch"]),
    "a provider that is a number": lambda o: session(o).set_providers([3]),
    "an override of a text": override("n", "x"),
    "an override of a fraction": override("n", 2.5),
    "an override without a name": override(3, 2),
    "a callback that cannot be called": lambda o: session(o).run_async(None, FEEDS, 3, None),
    "a run that is not waited for, without an input": lambda o: session(o).run_async(
        ["z"], {"x": X}, lambda *_: None, None
    ),
    "a value of a negative extent": lambda o: o.OrtValue.ortvalue_from_shape_and_type([-2, 3], np.float32),
    "a value of no element type": lambda o: o.OrtValue.ortvalue_from_shape_and_type([2], "float99"),
    "an entry without a key": lambda o: o.SessionOptions().add_session_config_entry("", "1"),
    "an entry with a long key": lambda o: o.SessionOptions().add_session_config_entry("k" * 1025, "1"),
    "an entry with a long value": lambda o: o.SessionOptions().add_session_config_entry("k", "v" * 8193),
    "a run's entry without a key": lambda o: o.RunOptions().add_run_config_entry("", "1"),
    "a flag that is a text": lambda o: setattr(o.SessionOptions(), "enable_profiling", "yes"),
    "an attribute that the operator does not have": lambda o: o.InferenceSession(
        made([node("Relu", ["x"], ["z"], wrong=1)], [tensor("x", FLOAT, [1])], [tensor("z", FLOAT, [1])])
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_raises_what_it_raises_there(name: str) -> None:
    assert outcome(CALLS[name], onnxruntime)[0] == "error"
    same(CALLS[name])


def test_overrides_take_what_is_an_integer_to_numpy() -> None:
    options = ours.SessionOptions()
    options.add_free_dimension_override_by_name("n", np.int64(2))
    assert ours.InferenceSession(made_with_open_rows(), options).get_inputs()[0].shape == [2, 3]


def made_with_open_rows() -> bytes:
    return made([node("Relu", ["x"], ["z"])], [tensor("x", FLOAT, ["n", 3])], [tensor("z", FLOAT, ["n", 3])])
