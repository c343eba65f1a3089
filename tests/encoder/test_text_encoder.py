"""headrace.TextEncoder with the published MiniLM beside ONNX Runtime and Hugging Face's tokenizer."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import headrace
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tokenizer"))

import natural_texts
from published_minilm import published_folder, write_minilm

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def published():
    return published_folder()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The model's own folder, with ONNX and graph files of its weights."""
    made = tmp_path_factory.mktemp("minilm") / "model"
    write_minilm(made)
    convert = [ROOT / "build/bin/headrace", "convert", made / "model.onnx", made / "model.hrg"]
    subprocess.run(convert, check=True, stdout=subprocess.DEVNULL)
    return made


@pytest.fixture(scope="module")
def expected(folder):
    """Vectors by ONNX Runtime, each text alone, and the texts."""
    import onnxruntime
    from tokenizers import Tokenizer

    generator = random.Random(3)
    texts = [natural_texts.random_text(generator) for _ in range(60)] + natural_texts.NATURAL
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    vectors = []
    for text in texts:
        ids = np.array([tokenizer.encode(text).ids])
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        vectors.append(session.run(["sentence_embedding"], feeds)[0][0])
    return texts, np.array(vectors)


@pytest.mark.parametrize("pooling", [None, "mean"])
def test_vectors_agree_with_onnx_runtime(folder, expected, pooling):
    texts, vectors = expected
    encoder = headrace.TextEncoder.load(str(folder / "model.hrg"), pooling=pooling)
    assert (encoder.width, encoder.most_tokens) == (384, 256), "the folder says so"
    np.testing.assert_allclose(np.array(encoder.embed(texts)), vectors, atol=1e-5)


def test_texts_may_come_one_by_one(folder, expected):
    texts, vectors = expected
    encoder = headrace.TextEncoder.load(str(folder / "model.hrg"))
    for text, vector in zip(texts[:20], vectors, strict=False):
        np.testing.assert_allclose(encoder.embed([text])[0], vector, atol=1e-5)


def test_a_model_without_that_output_does_not_rank(folder):
    with pytest.raises(ValueError, match="has 384 values for a text"):
        headrace.TextEncoder.load(str(folder / "model.hrg"), ranks=True)
