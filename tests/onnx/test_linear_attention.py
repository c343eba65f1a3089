"""LinearAttention as ONNX's reference computes it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from peers import on_headrace


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("steps", [1, 5])
@pytest.mark.parametrize("has_past", [False, True])
def test_steps_are_those_of_onnxs_definition(rule: str, steps: int, has_past: bool) -> None:
    rng = np.random.default_rng(steps)
    batch, heads, groups, width, inner = 2, 4, 2, 3, 5
    feeds = {
        "q": rng.standard_normal([batch, steps, heads * width]),
        "k": rng.standard_normal([batch, steps, groups * width]) / 2,
        "v": rng.standard_normal([batch, steps, groups * inner]),
        "past": rng.standard_normal([batch, groups, width, inner]) if has_past else None,
        "decay": -rng.uniform(0, 1, [batch, steps, groups * width]) if rule.startswith("gated") else None,
        "beta": rng.uniform(0, 1, [batch, steps, groups]) if rule.endswith("delta") else None,
    }
    names = [name if x is not None else "" for name, x in feeds.items()]
    feeds = {name: x.astype(np.float32) for name, x in feeds.items() if x is not None}
    options = {"q_num_heads": heads, "kv_num_heads": groups, "update_rule": rule}
    node = helper.make_node("LinearAttention", names, ["y", "state"], **options)
    given = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, x.shape) for n, x in feeds.items()]
    results = [helper.make_empty_tensor_value_info(name) for name in ("y", "state")]
    graph = helper.make_graph([node], "case", given, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 27)], ir_version=13)
    actual = on_headrace(model, feeds)
    for value, expected in zip(actual.values(), ReferenceEvaluator(model).run(None, feeds), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)
