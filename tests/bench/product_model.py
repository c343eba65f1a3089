"""A benchmark's case that is one product: as bench/zoo_models.py writes it, as far as programs read it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx


def write_product(folder: Path, weight: np.ndarray | None = None) -> None:
    """[[1, 2]] times the weight, 2 x 3 of f32: 0 to 5 where none is given."""
    if weight is None:
        weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 2])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 3])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=9), folder / "model.onnx")
    np.savez(folder / "inputs.npz", np.array([[1, 2]], np.float32))
    (folder / "facts.json").write_text('{"weights": null}')
