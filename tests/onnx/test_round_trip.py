"""What our own exporter writes is read again, and computes the same."""

from __future__ import annotations

from collections import Counter

import cases
import ml_dtypes
import numpy as np
import onnx
import webnn
from headrace import _onnx_export
from headrace._core import view
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from peers import on_headrace
from test_random_graphs import CONTEXT, STEPS, Value, assert_close, unary

TOLERANCE = {"float32": 2e-5, "float16": 2e-3}


def exported(graph: webnn.MLGraph) -> onnx.ModelProto:
    model, weights = _onnx_export.export(view(graph))
    for tensor, data in weights:
        tensor.raw_data = data.tobytes()
        model.graph.initializer.append(tensor)
    return model


def _same(actual: np.ndarray, expected: np.ndarray, exact: bool) -> None:
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    name = expected.dtype.name
    if expected.dtype in (ml_dtypes.int4, ml_dtypes.uint4):
        actual, expected = actual.astype(np.int8), expected.astype(np.int8)
    if exact or name not in TOLERANCE:
        np.testing.assert_array_equal(actual, expected)
    else:
        np.testing.assert_allclose(actual, expected, rtol=TOLERANCE[name], atol=TOLERANCE[name])


def test_every_variant_of_every_operator_is_read_again() -> None:
    outcomes, failures = Counter(), []
    context = webnn.ML().create_context(accelerated=False)
    for case in cases.CASES:
        graph = case.build(context.create_graph_builder())
        model = exported(graph)
        try:
            actual = on_headrace(model, case.inputs)
            for name, value in context.compute(graph, case.inputs).items():
                _same(actual[name], value, case.exact)
            outcomes["same"] += 1
        except Exception as error:
            failures.append(
                f"{case.op} {case.options}: {type(error).__name__}: {' '.join(str(error).split())[:600]}"
            )
    assert not failures, f"{len(failures)} of {outcomes}:\n" + "\n".join(failures[:12])
    assert outcomes["same"] >= 2396


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_random_graphs_are_read_again(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["float32", "float32", "int32", "int64", "int8"]))
    shape = data.draw(st.lists(st.integers(1, 4), max_size=4))
    array = np.asarray(np.random.default_rng(data.draw(st.integers(0, 99))).integers(-8, 9, shape)) / 4
    array = np.asarray(array.astype(dtype))
    builder = CONTEXT.create_graph_builder()
    x = Value(builder.input("x", shape, dtype), array.astype(np.float64) if dtype == "float32" else array)
    last = unary(builder, x, data)
    with np.errstate(all="ignore"):
        for step in data.draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=6)):
            if last.array.size > 500 or np.abs(last.array.astype(np.float64)).max(initial=0) > 1e6:
                break
            last = step(builder, last, data)
    graph = builder.build({"y": last.operand})
    model = exported(graph)
    expected = CONTEXT.compute(graph, {"x": array})["y"]
    assert_close(on_headrace(model, {"x": array})["y"], expected)
