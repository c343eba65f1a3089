"""Generations of models with an encoder, like a small T5 or Whisper with random weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from generations import END, HEADS, HIDDEN, LAYERS, PAD, VOCABULARY, Nodes
from onnx import TensorProto, helper, numpy_helper
from operator_cases_base import F32

WIDTH = HIDDEN // HEADS
FEATURES = 5  # of a frame of sound
value, I32_TYPE, F32_TYPE = helper.make_tensor_value_info, TensorProto.INT32, TensorProto.FLOAT


class Shared(Nodes):
    """A graph with the weights of a model that several graphs have."""

    def __init__(self, weights: dict[str, np.ndarray], rng: np.random.Generator) -> None:
        super().__init__(rng)
        self.weights, self.known = weights, set()

    def weight(self, name: str, *shape: int, scale: float = 0.6) -> str:
        if name not in self.weights:
            self.weights[name] = (self.rng.standard_normal(shape) * scale).astype(F32)
        return self.constant(name, self.weights[name])

    def constant(self, name: str, x: np.ndarray) -> str:
        if name not in self.known:
            self.constants.append(numpy_helper.from_array(x, name))
            self.known.add(name)
        return name

    def __call__(self, op: str, inputs: list[str], *outputs: str, **attributes: Any) -> str:
        return super().__call__(op, inputs, *(outputs or (f"of_{len(self.nodes)}",)), **attributes)

    def heads(self, x: str, weight: str, output: str = "") -> str:
        """[batch, length, HIDDEN] as [batch, heads, length, WIDTH]."""
        made = self("MatMul", [x, self.weight(weight, HIDDEN, HIDDEN)])
        parts = self("Reshape", [made, self.constant("parts", np.array([0, 0, HEADS, WIDTH]))])
        return self("Transpose", [parts], *([output] if output else []), perm=[0, 2, 1, 3])

    def attended(self, query: str, key: str, values: str, bias: str | None) -> str:
        scores = self("MatMul", [query, self("Transpose", [key], perm=[0, 1, 3, 2])])
        if bias:
            scores = self("Add", [scores, bias])
        seen = self("MatMul", [self("Softmax", [scores], axis=-1), values])
        seen = self("Transpose", [seen], perm=[0, 2, 1, 3])
        return self("Reshape", [seen, self.constant("whole", np.array([0, 0, HIDDEN]))])

    def bias_of(self, mask: str) -> str:
        """-1e4 at the encoder's tokens that do not count, [batch, 1, 1, length]."""
        real = self("Unsqueeze", [self("Cast", [mask], to=F32_TYPE), self.constant("two", np.array([1, 2]))])
        away = self("Sub", [real, self.constant("one", np.array(1, F32))])
        return self("Mul", [away, self.constant("far", np.array(1e4, F32))])

    def encoded(self, x: str, bias: str | None) -> str:
        for i in range(LAYERS):
            parts = [self.heads(x, f"encoder_{part}{i}") for part in "qkv"]
            seen = self.attended(*parts, bias)
            x = self("Add", [x, seen], *(["encoder_hidden_states"] if i == LAYERS - 1 else []))
        return x

    def crossed(self, hidden: str) -> list[tuple[str, str]]:
        return [
            tuple(
                self.heads(hidden, f"cross_{part}{i}", f"present_{part}_cross_{i}")
                for part in ("key", "value")
            )
            for i in range(LAYERS)
        ]

    def decoded(self, cross: list[tuple[str, str]], bias: str | None, is_first: bool, ids: str) -> None:
        """Makes logits and the caches of what is decoded."""
        x = self("Gather", [self.weight("decoder_words", VOCABULARY, HIDDEN, scale=1), ids])
        for i in range(LAYERS):
            caches = []
            for part in ("key", "value"):
                present = f"present_{part}_self_{i}"
                new = self.heads(x, f"own_{part}{i}", present if is_first else "")
                caches.append(
                    present if is_first else self("Concat", [f"past_{part}_self_{i}", new], present, axis=2)
                )
            x = self("Add", [x, self.attended(self.heads(x, f"own_query{i}"), *caches, None)])
            x = self("Add", [x, self.attended(self.heads(x, f"cross_query{i}"), *cross[i], bias)])
        scores = self("MatMul", [x, self.weight("head", HIDDEN, VOCABULARY)])
        never = np.where(np.arange(VOCABULARY) == PAD, -1e4, 0).astype(F32)
        self("Add", [scores, self.constant("never", never)], "logits")


def caches(kind: str, of: str, length: str | int) -> list[onnx.ValueInfoProto]:
    return [
        value(f"{kind}_{part}_{of}_{i}", F32_TYPE, ["batch", HEADS, length, WIDTH])
        for i in range(LAYERS)
        for part in ("key", "value")
    ]


def model_graphs(
    rng: np.random.Generator,
    whisper: bool = False,
    decodes_first: bool = False,
    sees_states: bool = False,
    ids_width: str | int = 1,
) -> dict[str, onnx.GraphProto]:
    """The attributes encoder and decoder of a node.

    decodes_first: the encoder's graph has the decoder's first step, too. sees_states: the decoder has what
    the encoder made as an input.
    """
    weights: dict[str, np.ndarray] = {}
    e = Shared(weights, rng)
    if whisper:
        inputs = [value("encoder_input_ids", F32_TYPE, ["batch", FEATURES, "frames"])]
        turned = e("Transpose", ["encoder_input_ids"], perm=[0, 2, 1])
        hidden = e.encoded(e("MatMul", [turned, e.weight("features", FEATURES, HIDDEN)]), None)
    else:
        inputs = [
            value(f"encoder_{x}", I32_TYPE, ["batch", "tokens"]) for x in ("input_ids", "attention_mask")
        ]
        words = e("Gather", [e.weight("words", VOCABULARY, HIDDEN, scale=1), "encoder_input_ids"])
        hidden = e.encoded(words, e.bias_of("encoder_attention_mask"))
    cross = e.crossed(hidden)
    outputs = caches("present", "cross", "tokens")
    if decodes_first:
        bias = None if whisper else e.bias_of("encoder_attention_mask")
        e.decoded(cross, bias, True, "decoder_input_ids")
        inputs.append(value("decoder_input_ids", I32_TYPE, ["batch", "new" if whisper else 1]))
        outputs = [
            value("logits", F32_TYPE, ["batch", "new" if whisper else 1, VOCABULARY]),
            value("encoder_hidden_states", F32_TYPE, ["batch", "tokens", HIDDEN]),
            *caches("present", "self", "new" if whisper else 1),
            *outputs,
        ]
    encoder = helper.make_graph(e.nodes, "encoder", inputs, outputs, e.constants)
    d = Shared(weights, rng)
    given = [value("input_ids", I32_TYPE, ["batch", ids_width])]
    if not whisper:
        given.append(value("encoder_attention_mask", I32_TYPE, ["batch", "tokens"]))
    if sees_states or whisper:
        given.append(value("encoder_hidden_states", F32_TYPE, ["batch", "tokens", HIDDEN]))
    given += caches("past", "self", "past") + caches("past", "cross", "tokens")
    past_cross = [(f"past_key_cross_{i}", f"past_value_cross_{i}") for i in range(LAYERS)]
    d.decoded(past_cross, None if whisper else d.bias_of("encoder_attention_mask"), False, "input_ids")
    made = [value("logits", F32_TYPE, ["batch", ids_width, VOCABULARY]), *caches("present", "self", "all")]
    decoder = helper.make_graph(d.nodes, "decoder", given, made, d.constants)
    return {"encoder": encoder, "decoder": decoder}


def text_prompts(rng: np.random.Generator, rows: int, length: int) -> np.ndarray:
    """The first one ends with padding, and the last one begins with it."""
    ids = rng.integers(END + 1, VOCABULARY, (rows, length)).astype(np.int32)
    ids[0, length - length // 3 :] = PAD
    ids[-1, : length // 3] = PAD
    return ids
