"""headrace embed gives the vectors that PyTorch gives."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from minilm import model as minilm
from minilm_to_gguf import convert

torch = pytest.importorskip("torch", reason="torch is not installed: make executorch installs it")
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: make executorch installs it"
)

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/bin/headrace"
TEXTS = [
    "A cat sleeps on the warm stones.",
    "Rain.",
    "The committee postponed its decision until spring, since nobody had read the report.",
]

if not PROGRAM.exists():
    pytest.skip("build/bin/headrace is not built: make build", allow_module_level=True)
try:
    WEIGHTS = minilm.map_safetensors(minilm.model_file("model.safetensors"))
except FileNotFoundError as error:
    pytest.skip(str(error), allow_module_level=True)


@pytest.fixture(scope="module")
def expected():
    """Mean-pooled, normalised rows by transformers' own BERT."""
    config = transformers.BertConfig(
        hidden_size=minilm.HIDDEN,
        num_hidden_layers=minilm.LAYERS,
        num_attention_heads=minilm.HEADS,
        intermediate_size=4 * minilm.HIDDEN,
        layer_norm_eps=minilm.LAYER_NORM_EPSILON,
    )
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    weights = {name: torch.from_numpy(array.copy()) for name, array in WEIGHTS.items()}
    missing, _ = model.load_state_dict(weights, strict=False)
    assert not [name for name in missing if not name.endswith("position_ids")]
    tokenize = minilm.SentenceTokenizer()
    rows = []
    for text in TEXTS:
        inputs = tokenize(text)
        ids = torch.from_numpy(inputs["input_ids"][:, : inputs["attention_mask"].sum()]).long()
        with torch.no_grad():
            rows.append(torch.nn.functional.normalize(model(ids).last_hidden_state.mean(1), dim=1)[0])
    return torch.stack(rows)


@pytest.mark.parametrize("type_name", ["f32", "q8_0"])
def test_embeddings_point_where_pytorchs_do(type_name, expected, tmp_path):
    path = tmp_path / "minilm.gguf"
    convert(path, type_name)
    command = [PROGRAM, "embed", path, *TEXTS, "--parameters", '{"threads": 1}']
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    vectors = torch.tensor([json.loads(line)["embedding"] for line in result.stdout.splitlines()])
    assert vectors.shape == expected.shape
    cosines = (vectors * expected).sum(1)
    assert cosines.min() >= 0.999, cosines
