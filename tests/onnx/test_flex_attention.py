"""FlexAttention, whose scores and weights graphs of the node change, beside ONNX's reference evaluator."""

from __future__ import annotations

from typing import Any

import headrace
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

DOMAIN = "ai.onnx.preview"


def _graph(nodes: list[onnx.NodeProto], element: int, inner: int | None = None) -> onnx.GraphProto:
    value = helper.make_tensor_value_info
    return helper.make_graph(
        nodes, "modifier", [value("s", element, None)], [value("m", inner or element, None)]
    )


def _model(element: int, groups: int, **attributes: Any) -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    inputs = [
        value("q", element, ["batch", 4, "queries", 8]),
        value("k", element, ["batch", groups, "keys", 8]),
        value("v", element, ["batch", groups, "keys", 6]),
    ]
    node = helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], "flex", domain=DOMAIN, **attributes)
    bias = numpy_helper.from_array(np.float32(0.5), "bias")
    graph = helper.make_graph([node], "flex", inputs, [value("y", element, None)], [bias])
    sets = [helper.make_opsetid("", 24), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=12)


def _feeds(dtype: Any, groups: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(5)
    shapes = {"q": (2, 4, 5, 8), "k": (2, groups, 7, 8), "v": (2, groups, 7, 6)}
    return {name: draw.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


HALF = helper.make_node("Constant", [], ["half"], value_float=0.5)
ADDED = [HALF, helper.make_node("Add", ["s", "half"], ["t"]), helper.make_node("Tanh", ["t"], ["m"])]
HALVED = [HALF, helper.make_node("Mul", ["s", "half"], ["m"])]
F32, F16, F64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE


@pytest.mark.parametrize(
    ("element", "groups", "attributes", "tolerance"),
    [
        (F32, 4, {}, 1e-5),
        (F32, 2, {"scale": 0.3, "score_mod": _graph(ADDED, F32)}, 1e-5),
        (F32, 1, {"prob_mod": _graph(HALVED, F32)}, 1e-5),
        (F32, 2, {"score_mod": _graph(ADDED, F32), "prob_mod": _graph(HALVED, F32)}, 1e-5),
        (F16, 2, {"score_mod": _graph(ADDED, F32)}, 2e-3),
        (F64, 4, {}, 1e-7),
        (F64, 2, {"softmax_precision": F32, "prob_mod": _graph(HALVED, F32)}, 1e-5),
    ],
)
def test_it_computes_what_onnx_defines(
    element: int, groups: int, attributes: dict[str, Any], tolerance: float
) -> None:
    model = _model(element, groups, **attributes)
    feeds = _feeds(helper.tensor_dtype_to_np_dtype(element), groups)
    expected = ReferenceEvaluator(model).run(None, feeds)[0]
    actual = headrace.load(model, device="cpu")(feeds)["y"]
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, tolerance, tolerance)


def test_modifiers_see_the_graph_around_them() -> None:
    outer = _graph([helper.make_node("Mul", ["s", "bias"], ["m"])], F32)
    feeds = _feeds(np.float32, 2)
    seen, own = (
        headrace.load(_model(F32, 2, prob_mod=graph), device="cpu")(feeds)["y"]
        for graph in (outer, _graph(HALVED, F32))
    )
    np.testing.assert_array_equal(seen, own)


def test_a_modifier_that_changes_the_type_is_refused() -> None:
    changed = _graph([helper.make_node("Cast", ["s"], ["m"], to=F16)], F32, F16)
    with pytest.raises(ValueError, match=r"'flex' \(FlexAttention.*'score_mod' makes f16\[.*it keeps both"):
        headrace.load(_model(F32, 4, score_mod=changed), device="cpu")
