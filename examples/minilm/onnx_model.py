"""all-MiniLM-L6-v2 as an ONNX model, to be run by headrace.load, and by ONNX Runtime as an independent peer.

Beyond finding the files it shares no code with minilm.py, so that a mistake in one shows up as a
difference: the safetensors package reads the weights, and the graph has the form that exporters from
PyTorch give: dynamic shapes, int64 inputs, scores divided by √d, masks of the lowest float32.
Needs the packages onnx and onnxruntime.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import headrace
import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

from .model import model_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OPSET = 20  # the first with Gelu


class _OnnxGraph:
    """Collects nodes and initializers; every method returns the name of a value."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._known: set[str] = set()

    def op(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        output = name or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def tensor(self, name: str, value: np.ndarray) -> str:
        if name not in self._known:
            self._known.add(name)
            contiguous = np.ascontiguousarray(value).reshape(value.shape)
            self.initializers.append(numpy_helper.from_array(contiguous, name))
        return name

    def ints(self, *values: int) -> str:
        name = "ints_" + "_".join(str(value) for value in values)
        return self.tensor(name, np.array(values, np.int64))

    def scalar(self, name: str, value: float) -> str:
        return self.tensor(name, np.array(value, np.float32))


def _linear(g: _OnnxGraph, w: dict[str, np.ndarray], x: str, name: str) -> str:
    matrix = g.tensor(f"{name}.weight.T", w[f"{name}.weight"].T)
    return g.op("Add", g.op("MatMul", x, matrix), g.tensor(f"{name}.bias", w[f"{name}.bias"]))


def _normalize(g: _OnnxGraph, w: dict[str, np.ndarray], x: str, name: str, out: str = "") -> str:
    scale = g.tensor(f"{name}.weight", w[f"{name}.weight"])
    bias = g.tensor(f"{name}.bias", w[f"{name}.bias"])
    return g.op("LayerNormalization", x, scale, bias, name=out, axis=-1, epsilon=1e-12)


def _embeddings(g: _OnnxGraph, w: dict[str, np.ndarray], ids: str) -> str:
    def table(name: str) -> str:
        full = f"embeddings.{name}_embeddings.weight"
        return g.tensor(full, w[full])

    length = g.op("Gather", g.op("Shape", ids), g.ints(1), axis=0)
    positions = g.op("Slice", table("position"), g.ints(0), length, g.ints(0))
    types = g.op("Gather", table("token_type"), g.ints(0), axis=0)
    total = g.op("Add", g.op("Gather", table("word"), ids, axis=0), types)
    return _normalize(g, w, g.op("Add", total, positions), "embeddings.LayerNorm")


def _attention(g: _OnnxGraph, w: dict[str, np.ndarray], x: str, bias: str, name: str) -> str:
    def split(part: str, order: list[int]) -> str:
        projected = _linear(g, w, x, f"{name}.self.{part}")
        return g.op("Transpose", g.op("Reshape", projected, g.ints(0, 0, 12, 32)), perm=order)

    scores = g.op("MatMul", split("query", [0, 2, 1, 3]), split("key", [0, 2, 3, 1]))
    scores = g.op("Div", scores, g.scalar("sqrt_head_size", math.sqrt(32.0)))
    weights = g.op("Softmax", g.op("Add", scores, bias), axis=-1)
    mixed = g.op("MatMul", weights, split("value", [0, 2, 1, 3]))
    merged = g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]), g.ints(0, 0, 384))
    return _linear(g, w, merged, f"{name}.output.dense")


def _block(g: _OnnxGraph, w: dict[str, np.ndarray], x: str, bias: str, index: int, out: str) -> str:
    name = f"encoder.layer.{index}"
    sum_1 = g.op("Add", _attention(g, w, x, bias, f"{name}.attention"), x)
    x = _normalize(g, w, sum_1, f"{name}.attention.output.LayerNorm")
    inner = g.op("Gelu", _linear(g, w, x, f"{name}.intermediate.dense"), approximate="none")
    sum_2 = g.op("Add", _linear(g, w, inner, f"{name}.output.dense"), x)
    return _normalize(g, w, sum_2, f"{name}.output.LayerNorm", out)


def _pool(g: _OnnxGraph, hidden: str, mask: str) -> None:
    weights = g.op("Unsqueeze", mask, g.ints(-1))
    total = g.op("ReduceSum", g.op("Mul", hidden, weights), g.ints(1), keepdims=0)
    count = g.op("Max", g.op("ReduceSum", weights, g.ints(1), keepdims=0), g.scalar("one", 1.0))
    mean = g.op("Div", total, count)
    g.op("LpNormalization", mean, name="sentence_embedding", axis=-1, p=2)


def build_onnx(safetensors: Path) -> ModelProto:
    """The model with the weights of `safetensors`.

    Inputs int64 [batch, sequence]: `input_ids`, and `attention_mask`, which is 1 for a
    token and 0 for padding. Outputs float32: `sentence_embedding` [batch, 384] and
    `last_hidden_state` [batch, sequence, 384]. Both dimensions are dynamic; ONNX Runtime
    1.31 runs that no slower than fixed shapes or its own fused Attention.
    """
    w = load_file(safetensors)
    g = _OnnxGraph()
    mask = g.op("Cast", "attention_mask", to=TensorProto.FLOAT)
    padding = g.op("Sub", g.scalar("one", 1.0), g.op("Unsqueeze", mask, g.ints(1, 2)))
    bias = g.op("Mul", padding, g.scalar("lowest", float(np.finfo(np.float32).min)))

    x = _embeddings(g, w, "input_ids")
    for index in range(6):
        x = _block(g, w, x, bias, index, "last_hidden_state" if index == 5 else "")
    _pool(g, x, mask)

    tokens = ["batch", "sequence"]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, tokens)
        for name in ("input_ids", "attention_mask")
    ]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (
            ("sentence_embedding", ["batch", 384]),
            ("last_hidden_state", [*tokens, 384]),
        )
    ]
    graph = helper.make_graph(g.nodes, "all-MiniLM-L6-v2", inputs, outputs, g.initializers)
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(graph, opset_imports=[opset], ir_version=9)


class OnnxMiniLM:
    """The peer: embeds tokenized sentences with ONNX Runtime on the CPU."""

    def __init__(self, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(
            build_onnx(model_file("model.safetensors")).SerializeToString(),
            options,
            providers=["CPUExecutionProvider"],
        )

    def run(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Embedding, float32 [384], of `input_ids` and `attention_mask`, int [1, S]."""
        return self.session.run(["sentence_embedding"], _int64(inputs))[0][0]


class LoadedMiniLM:
    """The same ONNX model by headrace.load."""

    def __init__(self, threads: int) -> None:
        self.model = headrace.load(build_onnx(model_file("model.safetensors")), device="cpu", threads=threads)

    def run(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """As OnnxMiniLM.run."""
        return self.model(_int64(inputs))["sentence_embedding"][0]


def _int64(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: value.astype(np.int64) for name, value in inputs.items()}
