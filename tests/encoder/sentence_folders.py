"""Folders of tiny models of sentences, and what NumPy makes of their tokens."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WORDS = ["mill", "stone", "water", "wheel", "bread", "winter", "light", "house", "road", "music"]
WIDTH = 6
TABLE = np.random.default_rng(5).normal(size=(4 + len(WORDS), WIDTH)).astype(np.float32)


def tokenizer() -> Tokenizer:
    vocabulary = {token: i for i, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    return made


def model(scale: float = 1.0, positions: int = 0) -> bytes:
    """A row of TABLE for each token and, in the last number, how many tokens the mask leaves.

    positions: that it has a table of, all zeros, which it cuts to the length of a text as BERT does.
    """
    ids, mask = (
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
        for name in ("input_ids", "attention_mask")
    )
    output = helper.make_tensor_value_info(
        "last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", WIDTH + 1]
    )
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("ReduceSum", ["attention_mask", "last"], ["count"], keepdims=1),
        helper.make_node("Cast", ["count"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["number", "last"], ["column"]),
        helper.make_node("Shape", ["input_ids"], ["sizes"]),
        helper.make_node("Concat", ["sizes", "one"], ["whole"], axis=0),
        helper.make_node("Expand", ["column", "whole"], ["columns"]),
        helper.make_node("Concat", ["rows", "columns"], ["last_hidden_state"], axis=2),
    ]
    constants = [
        numpy_helper.from_array(TABLE * np.float32(scale), "table"),
        numpy_helper.from_array(np.array([-1]), "last"),
        numpy_helper.from_array(np.array([1]), "one"),
    ]
    if positions:
        nodes[0].output[0] = "words"
        nodes[5:5] = [
            helper.make_node("Gather", ["sizes", "one"], ["length"], axis=0),
            helper.make_node("Slice", ["places", "zero", "length", "one"], ["own"]),
            helper.make_node("Add", ["words", "own"], ["rows"]),
        ]
        constants += [
            numpy_helper.from_array(np.zeros((1, positions, WIDTH), np.float32), "places"),
            numpy_helper.from_array(np.array([0]), "zero"),
        ]
    graph = helper.make_graph(nodes, "sentences", [ids, mask], [output], constants)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9
    ).SerializeToString()


def write_folder(
    folder: Path,
    pooling: dict | None = None,
    modules: list[str] | None = None,
    most_tokens: int | None = None,
    **files: dict,
) -> Path:
    """files: JSON by their stems."""
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    (folder / "onnx/model.onnx").write_bytes(model())
    tokenizer().save(str(folder / "tokenizer.json"))
    if pooling is not None:
        (folder / "1_Pooling").mkdir(exist_ok=True)
        (folder / "1_Pooling/config.json").write_text(json.dumps(pooling))
    if modules is not None:
        entries = [
            {"idx": i, "type": f"sentence_transformers.models.{name}"} for i, name in enumerate(modules)
        ]
        (folder / "modules.json").write_text(json.dumps(entries))
    if most_tokens is not None:
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": most_tokens}))
    for stem, content in files.items():
        (folder / f"{stem}.json").write_text(json.dumps(content))
    return folder


def tokens_of(text: str, most_tokens: int = 512) -> np.ndarray:
    """What the model gives for the tokens of a text that is alone: [tokens, WIDTH + 1]"""
    library = tokenizer()
    library.enable_truncation(most_tokens)
    ids = library.encode(text).ids
    return np.concatenate([TABLE[ids], np.full((len(ids), 1), len(ids), np.float32)], axis=1)


POOLED = {
    "cls": lambda rows: rows[0],
    "mean": lambda rows: rows.mean(axis=0),
    "max": lambda rows: rows.max(axis=0),
    "mean_sqrt_len_tokens": lambda rows: rows.sum(axis=0) / np.sqrt(len(rows)),
    "lasttoken": lambda rows: rows[-1],
}
