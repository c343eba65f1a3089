"""Indices out of range are errors with the operator's name, whether the model or the caller has them."""

from __future__ import annotations

import headrace
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from peers import on_headrace

X = np.arange(12, dtype=np.float32).reshape(3, 4)
FORMS = [
    ("Gather", [[2, -3]], [[0, 3]], {}),
    ("Gather", [[3, -4]], [[1, -5]], {"axis": 1}),
    ("GatherElements", [[0, -3, 2, 1]], [[0, 0, 3, 0]], {"axis": 0}),
    ("GatherND", [[2, 3], [-3, -4]], [[0, 0], [2, 4]], {}),
    ("GatherND", [[3], [0], [-4]], [[4], [0], [0]], {"batch_dims": 1}),
    ("ScatterElements", [[0, -3, 2, 1]], [[0, 0, -4, 0]], {"axis": 0}),
    ("ScatterElements", [[0, -3, 2, 1]], [[0, 0, 3, 0]], {"axis": 0, "reduction": "add"}),
    ("ScatterND", [[2], [-3]], [[3], [0]], {}),
    ("ScatterND", [[2], [-3]], [[3], [0]], {"reduction": "max"}),
]


def model(
    op: str, shape: list[int], constant: np.ndarray | None, rows: int | str, **attributes: object
) -> onnx.ModelProto:
    updates = np.ones([shape[0], 4] if op == "ScatterND" else shape, np.float32)
    names = ["x", "indices"] + (["updates"] if op.startswith("Scatter") else [])
    given = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [rows, 4])]
    known = [numpy_helper.from_array(updates, "updates")]
    if constant is None:
        given.append(helper.make_tensor_value_info("indices", onnx.TensorProto.INT64, shape))
    else:
        known.append(numpy_helper.from_array(constant, "indices"))
    node = helper.make_node(op, names, ["y"], "table", **attributes)
    graph = helper.make_graph([node], "case", given, [helper.make_empty_tensor_value_info("y")], known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.parametrize(("op", "good", "bad", "attributes"), FORMS)
@pytest.mark.parametrize("rows", [3, "n"])
def test_indices_out_of_range_are_errors(
    op: str, good: list, bad: list, attributes: dict, rows: int | str
) -> None:
    if rows == "n" and ((op == "ScatterND" and "reduction" in attributes) or "batch_dims" in attributes):
        pytest.skip(f"{op} with {attributes} needs known extents")
    good, bad = np.array(good), np.array(bad)
    loaded = headrace.load(model(op, list(good.shape), None, rows, **attributes), device="cpu")
    expected = loaded({"x": X, "indices": good})["y"]
    with pytest.raises(ValueError, match=rf"{op} 'table'\): index -?\d+ is outside the extent [34]"):
        loaded({"x": X, "indices": bad})
    np.testing.assert_array_equal(loaded({"x": X, "indices": good})["y"], expected)
    np.testing.assert_array_equal(
        on_headrace(model(op, list(good.shape), good, rows, **attributes), {"x": X})["y"], expected
    )
    with pytest.raises(ValueError, match=rf"{op}.* outside the extent [34]"):
        on_headrace(model(op, list(bad.shape), bad, rows, **attributes), {"x": X})


def test_webnn_files_clamp_as_webnn_does(tmp_path) -> None:
    loaded = headrace.load(model("Gather", [1, 2], None, 3), device="cpu")
    for name in ("model.hrg", "model.webnn"):
        loaded.save(tmp_path / name)
    bad = {"x": X, "indices": np.array([[0, 9]])}
    assert np.array_equal(headrace.load(tmp_path / "model.webnn", device="cpu")(bad)["y"][0], X[[0, 2]])
    with pytest.raises(ValueError, match="outside the extent 3"):
        headrace.load(tmp_path / "model.hrg", device="cpu")(bad)
