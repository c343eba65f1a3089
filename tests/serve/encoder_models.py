"""Tiny graphs that tests of the server write, with a tokenizer: one gives vectors, and one ranks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
from serve_program import HEADRACE

WIDTH, WORDS = 16, ["hello", "world", "bread", "water", "mill", "river", "stone", "##s", "a", "the", "!"]
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]


def tokenizer_json() -> str:
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    special = [{"id": i, "content": token, **plain} for i, token in enumerate(TOKENS[:4])]
    vocabulary = {token: i for i, token in enumerate(TOKENS)}
    return json.dumps(
        {
            "added_tokens": special,
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "normalizer": {
                "type": "BertNormalizer",
                "clean_text": True,
                "handle_chinese_chars": True,
                "strip_accents": None,
                "lowercase": True,
            },
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
            "decoder": None,
            "model": {
                "type": "WordPiece",
                "unk_token": "[UNK]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
                "vocab": vocabulary,
            },
        }
    )


def weights() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(5)
    return {
        "words": generator.standard_normal((len(TOKENS), WIDTH)).astype(np.float32),
        "types": generator.standard_normal((2, WIDTH)).astype(np.float32),
        "head": generator.standard_normal((WIDTH, 1)).astype(np.float32),
    }


def write_onnx(path: Path, ranks: bool) -> None:
    """One layer of attention without weights; with `ranks`, logits of the first token."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def node(kind, inputs, output, **attributes):
        return helper.make_node(kind, inputs, [output], **attributes)

    known = weights()
    constants = [numpy_helper.from_array(value, name) for name, value in known.items()]
    for name, value in (("one", 1.0), ("far", -1e9), ("scale", WIDTH**-0.5)):
        constants.append(numpy_helper.from_array(np.array(value, np.float32), name))
    for name, value in (("middle", [1]), ("zero", 0)):
        constants.append(numpy_helper.from_array(np.array(value, np.int64), name))
    nodes = [
        node("Gather", ["words", "input_ids"], "w", axis=0),
        node("Gather", ["types", "token_type_ids"], "t", axis=0),
        node("Add", ["w", "t"], "x"),
        node("Transpose", ["x"], "turned", perm=[0, 2, 1]),
        node("MatMul", ["x", "turned"], "products"),
        node("Mul", ["products", "scale"], "scores"),
        node("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT),
        node("Sub", ["one", "mask"], "hidden"),
        node("Mul", ["hidden", "far"], "row"),
        node("Unsqueeze", ["row", "middle"], "bias"),
        node("Add", ["scores", "bias"], "biased"),
        node("Softmax", ["biased"], "shares", axis=-1),
        node("MatMul", ["shares", "x"], "last_hidden_state"),
    ]
    batch = ["batch", "sequence"]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*batch, WIDTH])
    if ranks:
        nodes += [
            node("Gather", ["last_hidden_state", "zero"], "first", axis=1),
            node("MatMul", ["first", "head"], "logits"),
        ]
        output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, batch)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    graph = helper.make_graph(nodes, "encoder", inputs, [output], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


def hidden(ids: list[int], types: list[int]) -> np.ndarray:
    """What the graph gives for one text: float [tokens, width]"""
    known = weights()
    x = (known["words"][ids] + known["types"][types]).astype(np.float64)
    scores = x @ x.T * WIDTH**-0.5
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True) @ x


def vector(ids: list[int]) -> np.ndarray:
    """Mean pooling, of length 1."""
    mean = hidden(ids, [0] * len(ids)).mean(axis=0)
    return mean / np.linalg.norm(mean)


def logit(ids: list[int], types: list[int]) -> float:
    return float(hidden(ids, types)[0] @ weights()["head"][:, 0])


def write_all(folder: Path) -> None:
    """vectors/model.hrg and ranker/model.hrg, each with its tokenizer.json."""
    for name in ("vectors", "ranker"):
        (folder / name).mkdir()
        write_onnx(folder / name / "model.onnx", ranks=name == "ranker")
        (folder / name / "tokenizer.json").write_text(tokenizer_json())
        subprocess.run(
            [HEADRACE, "convert", folder / name / "model.onnx", folder / name / "model.hrg"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
