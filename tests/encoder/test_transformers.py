"""headrace.TextEncoder with models of transformers (random weights, exported by PyTorch) beside PyTorch."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import headrace
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tokenizer"))

import natural_texts
import tokenizer_kinds

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make executorch installs it")
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: make executorch installs it"
)

PROGRAM = Path(__file__).resolve().parents[2] / "build/bin/headrace"
SIZE = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 1500,
}
TEXTS = [natural_texts.random_text(random.Random(i)) for i in range(40)]


def bert():
    config = transformers.BertConfig(**SIZE, max_position_embeddings=96)
    return transformers.BertModel(config, add_pooling_layer=False)


def roberta():
    config = transformers.RobertaConfig(**SIZE, max_position_embeddings=130, type_vocab_size=1)
    return transformers.RobertaModel(config, add_pooling_layer=False)


def xlm_roberta_that_ranks():
    more = {"max_position_embeddings": 130, "type_vocab_size": 1, "num_labels": 1, "initializer_range": 0.3}
    return transformers.XLMRobertaForSequenceClassification(transformers.XLMRobertaConfig(**SIZE, **more))


class Wrapped(torch.nn.Module):
    """A model with its inputs by position and one output."""

    def __init__(self, model, names, output):
        super().__init__()
        self.model, self.names, self.output = model, names, output

    def forward(self, *inputs):
        return getattr(self.model(**dict(zip(self.names, inputs, strict=True))), self.output)

    def of(self, encoding):
        ids = torch.tensor([encoding.ids])
        known = {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "token_type_ids": torch.tensor([encoding.type_ids]),
        }
        with torch.no_grad():
            return self(*(known[name] for name in self.names))[0].numpy()


def exported(folder: Path, model, tokenizer, types: bool, output: str) -> Wrapped:
    """Writes the folder's files, with model.hrg."""
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if types else [])]
    wrapped = Wrapped(model.eval(), names, output).eval()
    open_axes = {0: "batch", 1: "sequence"}
    example = torch.full((2, 7), 5)
    torch.onnx.export(
        wrapped,
        (example, torch.ones_like(example), torch.zeros_like(example))[: len(names)],
        folder / "model.onnx",
        input_names=names,
        output_names=[output],
        dynamic_axes={name: open_axes for name in names}
        | {output: {0: "batch"} if output == "logits" else open_axes},
        dynamo=False,
    )
    convert = [PROGRAM, "convert", folder / "model.onnx", folder / "model.hrg"]
    subprocess.run(convert, check=True, stdout=subprocess.DEVNULL)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "model_type": model.config.model_type,
        "max_position_embeddings": model.config.max_position_embeddings,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return wrapped


@pytest.mark.parametrize(
    ("model", "tokenizer", "types", "most"),
    [
        (bert, lambda: tokenizer_kinds.word_piece(lowercase=True), True, 96),
        (roberta, tokenizer_kinds.byte_pairs, False, 128),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_vectors_are_pytorchs(tmp_path, model, tokenizer, types, most):
    torch.manual_seed(0)
    library = tokenizer()
    wrapped = exported(tmp_path, model(), library, types, "last_hidden_state")
    encoder = headrace.TextEncoder.load(str(tmp_path / "model.hrg"))
    assert encoder.most_tokens == most
    library.enable_truncation(most)
    for text, vector in zip(TEXTS, encoder.embed(TEXTS), strict=True):
        mean = wrapped.of(library.encode(text)).mean(axis=0)
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_scores_are_pytorchs(tmp_path):
    torch.manual_seed(0)
    library = tokenizer_kinds.unigram("nmt_nfkc", words=True, strips=False)
    wrapped = exported(tmp_path, xlm_roberta_that_ranks(), library, False, "logits")
    encoder = headrace.TextEncoder.load(str(tmp_path / "model.hrg"), ranks=True)
    library.enable_truncation(128)
    expected = [wrapped.of(library.encode(TEXTS[0], text))[0] for text in TEXTS]
    np.testing.assert_allclose(encoder.rank(TEXTS[0], TEXTS), expected, atol=1e-4)
