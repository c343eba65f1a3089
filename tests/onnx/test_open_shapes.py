"""What follows from shapes is computed when they are known: the same as ONNX Runtime at every shape."""

from __future__ import annotations

import headrace
import open_shape_networks  # noqa: F401  (adds cases)
import pytest
from open_shape_cases import CASES, Case
from peers import assert_same, on_onnx_runtime


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operands_follow_from_open_shapes(case: Case) -> None:
    model = case.model()
    loaded = headrace.load(model, device="cpu")
    assert any(isinstance(d, str) for tensor in loaded.inputs for d in tensor.shape)
    for i in range(len(case.shapes)):
        feeds = case.feeds(i)
        actual = loaded(feeds)
        for name, expected in on_onnx_runtime(model, feeds).items():
            assert_same(actual[name], expected, case.tolerance)
