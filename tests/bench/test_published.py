"""The benchmark of published architectures on a model of one product."""

from __future__ import annotations

import numpy as np
import onnx
import published
import pytest


def _write_product(folder, weight):
    folder.mkdir(parents=True)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 2])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 3])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    np.savez(folder / "inputs.npz", np.ones((1, 2), np.float32))
    (folder / "facts.json").write_text('{"weights": null}')


def test_exact_and_fast_products_are_compared_with_each_peer_that_is_there(tmp_path, monkeypatch):
    _write_product(tmp_path / "published" / "product", np.arange(6, dtype=np.float32).reshape(2, 3))
    monkeypatch.setattr(published, "OUT", tmp_path)
    row = published.compare("product", 1, rounds=2, seconds=0.001)
    assert {published.EXACT, published.FAST, "ONNX Runtime"} <= row["median_ms"].keys()
    assert row["ratio"].keys() == row["median_ms"].keys() - {published.EXACT, published.FAST}
    assert row["cosine"]["ONNX Runtime"] == pytest.approx(1)


def test_a_network_that_gives_nothing_is_not_compared(tmp_path, monkeypatch):
    _write_product(tmp_path / "published" / "product", np.zeros((2, 3), np.float32))
    monkeypatch.setattr(published, "OUT", tmp_path)
    with pytest.raises(SystemExit, match="gives next to nothing"):
        published.compare("product", 1, rounds=2, seconds=0.001)
