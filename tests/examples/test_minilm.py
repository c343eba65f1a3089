"""MiniLM: ONNX Runtime against float64 NumPy, and the WebNN graph against ONNX Runtime."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest

minilm_module = pytest.importorskip("minilm.model", reason="tokenizers is not installed: make build")

TEXTS = {
    "short": "Hello!",
    "ordinary": "Farmers are worried because there has been no rain since April.",
    "accents and unknown signs": "Crème brûlée à la carte ☃ 東京",
    "a bucket filled to the last token": "word " * 14,
    "one token more than a bucket": "word " * 15,
    "longer than the model takes": "the quick brown fox jumps over the lazy dog " * 60,
}


@pytest.fixture(scope="module")
def tokenize():
    return minilm_module.SentenceTokenizer()


@pytest.fixture(scope="module")
def float64_weights():
    """The weights by their published names, read by the safetensors package."""
    from safetensors.numpy import load_file

    path = minilm_module.model_file("model.safetensors")
    return {name: value.astype(np.float64) for name, value in load_file(path).items()}


def reference_hidden(w: dict[str, np.ndarray], ids: np.ndarray) -> np.ndarray:
    """BERT as its paper defines it: int [S] without padding → float64 [S, 384]."""
    erf = np.vectorize(math.erf)

    def dense(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def normalize(x, name):
        centered = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-12)
        return centered / deviation * w[f"{name}.weight"] + w[f"{name}.bias"]

    def attend(x, name):
        q, k, v = (dense(x, f"{name}.self.{part}") for part in ("query", "key", "value"))
        heads = []
        for columns in np.split(np.arange(384), 12):
            scores = np.exp(q[:, columns] @ k[:, columns].T / math.sqrt(32))
            heads.append(scores / scores.sum(1, keepdims=True) @ v[:, columns])
        return dense(np.concatenate(heads, 1), f"{name}.output.dense")

    e = "embeddings"
    x = w[f"{e}.word_embeddings.weight"][ids] + w[f"{e}.position_embeddings.weight"][: len(ids)]
    x = normalize(x + w[f"{e}.token_type_embeddings.weight"][0], f"{e}.LayerNorm")
    for index in range(6):
        name = f"encoder.layer.{index}"
        x = normalize(x + attend(x, f"{name}.attention"), f"{name}.attention.output.LayerNorm")
        inner = dense(x, f"{name}.intermediate.dense")
        inner *= 0.5 * (1 + erf(inner / math.sqrt(2)))
        x = normalize(x + dense(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    return x


def reference_embedding(hidden: np.ndarray) -> np.ndarray:
    mean = hidden.mean(0)
    return mean / np.linalg.norm(mean)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def test_the_onnx_model_is_valid() -> None:
    from minilm.onnx_model import build_onnx

    model = build_onnx(minilm_module.model_file("model.safetensors"))
    onnx.checker.check_model(model, full_check=True)


def test_mapped_weights_equal_those_that_safetensors_reads(float64_weights) -> None:
    mapped = minilm_module.map_safetensors(minilm_module.model_file("model.safetensors"))
    assert set(mapped) == {name for name in float64_weights if name != "embeddings.position_ids"}
    for name, value in mapped.items():
        assert value.dtype == np.float32
        assert not value.flags.writeable
        np.testing.assert_array_equal(value, float64_weights[name])


def test_graphs_of_all_lengths_share_weights_that_nobody_can_write() -> None:
    for value in minilm_module.load_weights().values():
        assert value.flags.c_contiguous
        assert not value.flags.writeable


@pytest.mark.parametrize(("words", "bucket"), [(1, 16), (14, 16), (15, 32), (254, 256), (900, 256)])
def test_sentences_are_padded_to_the_next_bucket(tokenize, words: int, bucket: int) -> None:
    inputs = tokenize("word " * words)
    tokens = min(words + 2, 256)  # with the marks of beginning and end
    assert {key: value.shape for key, value in inputs.items()} == dict.fromkeys(inputs, (1, bucket))
    assert inputs["attention_mask"].sum() == tokens
    assert inputs["input_ids"][0, [0, tokens - 1]].tolist() == [101, 102]
    assert not inputs["input_ids"][0, tokens:].any()


@pytest.mark.parametrize("name", ["short", "ordinary", "accents and unknown signs"])
def test_onnx_runtime_equals_float64_numpy(peer, tokenize, float64_weights, name: str) -> None:
    inputs = tokenize(TEXTS[name])
    tokens = int(inputs["attention_mask"].sum())
    hidden = reference_hidden(float64_weights, inputs["input_ids"][0, :tokens])
    feeds = {key: value.astype(np.int64) for key, value in inputs.items()}
    embedding, last = peer.session.run(["sentence_embedding", "last_hidden_state"], feeds)
    np.testing.assert_allclose(embedding[0], reference_embedding(hidden), rtol=0, atol=1e-6)
    np.testing.assert_allclose(last[0, :tokens], hidden, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", TEXTS)
def test_the_webnn_graph_equals_onnx_runtime(minilm, peer, name: str) -> None:
    inputs = minilm.tokenize(TEXTS[name])
    ours, theirs = minilm.run(inputs), peer.run(inputs)
    assert ours.dtype == np.float32
    assert ours.shape == (384,)
    assert cosine(ours, theirs) >= 0.99999
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def test_padding_does_not_change_the_embedding(minilm) -> None:
    short = minilm.tokenize("Padding must not matter.")
    padded = {key: np.pad(value, ((0, 0), (0, 16))) for key, value in short.items()}
    np.testing.assert_allclose(minilm.run(padded), minilm.run(short), rtol=0, atol=1e-6)


def test_a_batch_with_int64_inputs_gives_the_hidden_states_too(minilm, peer) -> None:
    webnn = pytest.importorskip("webnn", reason="the Python extension is not built: make build")
    rows = [minilm.tokenize(text) for text in ("A cat sleeps.", "Rain is falling on the quiet town.")]
    feeds = {key: np.concatenate([row[key] for row in rows]).astype(np.int64) for key in rows[0]}
    context = webnn.ML().create_context(accelerated=False)
    graph = minilm_module.build_graph(
        context.create_graph_builder(),
        minilm_module.load_weights(),
        16,
        batch=2,
        index_type="int64",
        hidden_state=True,
    )
    ours = context.compute(graph, feeds)
    embedding, hidden = peer.session.run(["sentence_embedding", "last_hidden_state"], feeds)
    np.testing.assert_allclose(ours["sentence_embedding"], embedding, rtol=0, atol=1e-5)
    kept = feeds["attention_mask"] == 1
    np.testing.assert_allclose(ours["last_hidden_state"][kept], hidden[kept], rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", TEXTS)
def test_low_power_keeps_a_cosine_of_0_999(minilm, name: str) -> None:
    webnn = pytest.importorskip("webnn", reason="the Python extension is not built: make build")
    small = minilm_module.MiniLM(webnn.ML().create_context("low-power", False))
    inputs = minilm.tokenize(TEXTS[name])
    exact, quantized = minilm.run(inputs), small.run(inputs)
    assert 0.999 <= cosine(exact, quantized) < 1
    assert "q8_0" in str(small.graph(len(inputs["input_ids"][0])))
