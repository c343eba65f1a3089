"""Whole generations in one operator, of a decoder like a small GPT-2 with random weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from operator_cases_base import F32, I32, MICROSOFT

VOCABULARY, HIDDEN, HEADS, LAYERS, PLACES = 17, 8, 2, 2, 48
END, PAD = 3, 0
INPUTS = {
    "GreedySearch": "input_ids max_length min_length repetition_penalty vocab_mask prefix_vocab_mask "
    "attention_mask",
    "BeamSearch": "input_ids max_length min_length num_beams num_return_sequences length_penalty "
    "repetition_penalty vocab_mask prefix_vocab_mask attention_mask",
    "WhisperBeamSearch": "input_features max_length min_length num_beams num_return_sequences length_penalty "
    "repetition_penalty vocab_mask prefix_vocab_mask attention_mask decoder_input_ids logits_processor "
    "cross_qk_layer_head extra_decoding_ids temperature",
}
OPEN = ("input_ids", "attention_mask", "input_features", "decoder_input_ids")


class Nodes:
    """A graph in the making."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.nodes, self.constants = rng, [], []

    def weight(self, name: str, *shape: int, scale: float = 0.6) -> str:
        x = (self.rng.standard_normal(shape) * scale).astype(F32)
        self.constants.append(numpy_helper.from_array(x, name))
        return name

    def __call__(self, op: str, inputs: list[str], *outputs: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, list(outputs), **attributes))
        return outputs[0]


def decoder(rng: np.random.Generator) -> onnx.GraphProto:
    """As onnxruntime.transformers writes it, its attention fused."""
    n = Nodes(rng)
    words = n("Gather", [n.weight("words", VOCABULARY, HIDDEN, scale=1), "input_ids"], "of_words")
    places = n("Gather", [n.weight("places", PLACES, HIDDEN), "position_ids"], "of_places")
    x = n("Add", [words, places], "x")
    for i in range(LAYERS):
        own = n(
            "LayerNormalization", [x, n.weight(f"scale{i}", HIDDEN), n.weight(f"bias{i}", HIDDEN)], f"n{i}"
        )
        weights = [n.weight(f"qkv{i}", HIDDEN, 3 * HIDDEN), n.weight(f"qkv_bias{i}", 3 * HIDDEN)]
        seen = n(
            "Attention",
            [own, *weights, "attention_mask", f"past_{i}"],
            f"seen{i}",
            f"present_{i}",
            domain=MICROSOFT,
            num_heads=HEADS,
            unidirectional=1,
        )
        mixed = n("MatMul", [seen, n.weight(f"mix{i}", HIDDEN, HIDDEN)], f"mixed{i}")
        x = n("Add", [x, mixed], f"x{i}")
    scores = n("MatMul", [x, n.weight("head", HIDDEN, VOCABULARY)], "scores")
    never = np.where(np.arange(VOCABULARY) == PAD, -1e4, 0).astype(F32)  # padding is what has ended
    n.constants.append(numpy_helper.from_array(never, "never"))
    n("Add", [scores, "never"], "logits")
    return decoder_graph(n, LAYERS, HEADS, HIDDEN // HEADS, VOCABULARY)


def for_prompts(rng: np.random.Generator) -> onnx.GraphProto:
    """The same decoder as it is exported for the first step: logits of the last token alone."""
    graph = decoder(rng)
    graph.node[-1].output[0] = "all_logits"
    graph.initializer.append(numpy_helper.from_array(np.array([-1]), "last"))
    graph.node.append(helper.make_node("Gather", ["all_logits", "last"], ["logits"], axis=1))
    graph.output[0].type.tensor_type.shape.dim[1].dim_value = 1
    return graph


def scripted(scores: np.ndarray) -> onnx.GraphProto:
    """A decoder whose logits are those of the token before, rows of scores."""
    n = Nodes(np.random.default_rng(0))
    n.constants += [
        numpy_helper.from_array(scores.astype(F32), "scores"),
        *(numpy_helper.from_array(np.array([i]), f"at{i}") for i in (0, 1, 2)),
    ]
    n("Gather", ["scores", "input_ids"], "logits", axis=0)
    n("Shape", ["input_ids"], "shape")
    batch, length = (
        n("Slice", ["shape", "at0", "at1"], "batch"),
        n("Slice", ["shape", "at1", "at2"], "length"),
    )
    new = n("ConstantOfShape", [n("Concat", ["at2", batch, "at1", length, "at1"], "sizes", axis=0)], "new")
    n("Concat", ["past_0", new], "present_0", axis=3)
    return decoder_graph(n, 1, 1, 1, len(scores))


def decoder_graph(n: Nodes, layers: int, heads: int, width: int, vocabulary: int) -> onnx.GraphProto:
    value, i32, f32 = helper.make_tensor_value_info, TensorProto.INT32, TensorProto.FLOAT
    inputs = [
        value("input_ids", i32, ["batch", "new"]),
        value("position_ids", i32, ["batch", "new"]),
        value("attention_mask", i32, ["batch", "all"]),
        *(value(f"past_{i}", f32, [2, "batch", heads, "past", width]) for i in range(layers)),
    ]
    outputs = [
        value("logits", f32, ["batch", "new", vocabulary]),
        *(value(f"present_{i}", f32, [2, "batch", heads, "all", width]) for i in range(layers)),
    ]
    return helper.make_graph(n.nodes, "decoder", inputs, outputs, n.constants)


def generation(
    op: str,
    graph: onnx.GraphProto,
    feeds: dict[str, np.ndarray],
    outputs: int = 1,
    told: bool = False,
    **attributes: Any,
) -> onnx.ModelProto:
    """Prompts and their mask are inputs of open dimensions. told: all else is fed, too, and not constant."""
    given = {key: x for key, x in feeds.items() if told or key in OPEN}
    inputs = [
        helper.make_tensor_value_info(
            key,
            helper.np_dtype_to_tensor_dtype(x.dtype),
            [f"{key}_{axis}" if key in OPEN else extent for axis, extent in enumerate(x.shape)],
        )
        for key, x in given.items()
    ]
    constants = [numpy_helper.from_array(x, key) for key, x in feeds.items() if key not in given]
    names = " ".join(key if key in feeds else "-" for key in INPUTS[op].split()).rstrip(" -").split()
    names = ["" if name == "-" else name for name in names]
    results = [
        helper.make_tensor_value_info("sequences", TensorProto.INT32, None),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, None),
        helper.make_tensor_value_info("token_scores", TensorProto.FLOAT, None),
    ][:outputs]
    attributes = {"eos_token_id": END, "pad_token_id": PAD, "decoder": graph} | attributes
    node = helper.make_node(
        op, names, [result.name for result in results], name="generate", domain=MICROSOFT, **attributes
    )
    sets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_graph([node], "generation", inputs, results, constants)
    return helper.make_model(model, opset_imports=sets, ir_version=9)


def fed(feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {key: x for key, x in feeds.items() if key in OPEN}


def one(value: float, dtype: Any = I32) -> np.ndarray:
    return np.array([value], dtype)


def prompts(rng: np.random.Generator, rows: int, length: int) -> np.ndarray:
    """Some begin with tokens that count for nothing."""
    ids = rng.integers(END + 1, VOCABULARY, (rows, length)).astype(I32)
    ids[0, : length // 3] = PAD
    return ids
