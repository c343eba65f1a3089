"""A model on ONNX Runtime and on Headrace, and whether they agree."""

from __future__ import annotations

from typing import Any

import headrace
import numpy as np
import onnx
import onnxruntime

onnxruntime.set_default_logger_severity(4)


def on_onnx_runtime(model: onnx.ModelProto | str, feeds: dict[str, Any]) -> dict[str, np.ndarray]:
    """Without its optimiser, whose fusions round in other places."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    content = model if isinstance(model, str) else model.SerializeToString()
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds), strict=True))


def on_headrace(model: Any, feeds: dict[str, Any], **options: Any) -> dict[str, np.ndarray]:
    return headrace.load(model, device="cpu", **options)(feeds)


def assert_same(actual: np.ndarray, expected: np.ndarray, tolerance: float = 1e-5, ulps: int = 0) -> None:
    """Floats up to a tolerance of their size, f16 up to its last bits; integers exactly or up to steps."""
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if expected.dtype.kind == "f":
        if expected.dtype == np.float16:
            tolerance = max(tolerance, 2e-3)
        finite = expected[np.isfinite(expected)].astype(np.float64)
        scale = max(1.0, float(np.abs(finite).max(initial=0)))
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale)
    elif ulps:
        assert np.abs(actual.astype(np.int64) - expected.astype(np.int64)).max(initial=0) <= ulps
    else:
        np.testing.assert_array_equal(actual, expected)
