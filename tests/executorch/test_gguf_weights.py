"""Blocks that a GGUF file has, in a program: bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")
gguf = pytest.importorskip("gguf", reason="the package gguf is not installed: make setup installs it")

import numpy as np
import torch
from executorch.exir import to_edge_transform_and_lower
from executorch_ggml import GgmlPartitioner, GgufWeights, _runtime
from executorch_ggml.quantize import FORMATS
from headrace._core import quantize_rows
from torch import nn

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)

ROWS, COLUMNS = 64, 512
NAMES = {"weight": "output.weight"}
SCALES = {"q8_0": [0], "q4_0": [0], "q4_1": [0, 2], "q5_0": [0], "q5_1": [0, 2], "q6_k": [208]}
SCALES |= {"q4_k": [0, 2], "q5_k": [0, 2]}


def blocks(name: str) -> np.ndarray:
    """Any bits but for the halves that are scales: a quantiser would make other blocks of the same values."""
    elements, size = FORMATS[name]
    made = np.random.default_rng(1).integers(0, 256, (ROWS, COLUMNS // elements, size), np.uint8)
    for i, at in enumerate(SCALES[name]):
        made[..., at : at + 2] = np.array([0.003 + 0.001 * i], np.float16).view(np.uint8)
    return made.reshape(ROWS, -1)


def write(path: Path, tensors: dict[str, tuple[str, np.ndarray]]) -> Path:
    writer = gguf.GGUFWriter(path, "test")
    for name, (type_, content) in tensors.items():
        writer.add_tensor(name, content, raw_dtype=gguf.GGMLQuantizationType[type_.upper()])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("name", FORMATS)
def test_blocks_of_the_file_are_in_the_program_as_they_are(name: str, lower, tmp_path: Path) -> None:
    content = blocks(name)
    weights = GgufWeights(write(tmp_path / "model.gguf", {"output.weight": (name, content)}), NAMES)
    module = nn.Linear(COLUMNS, ROWS, bias=False)
    module.load_state_dict(weights.state_dict())
    assert quantize_rows(name, module.weight.detach().numpy()) != content.tobytes()
    x = torch.randn(3, COLUMNS)
    made = lower(module, (x,), partitioner=GgmlPartitioner(gguf=weights))
    assert (made.delegates, made.left) == (1, [])
    assert content.tobytes() in bytes(made.buffer)
    with torch.no_grad():
        expected = module(x)
    error = (made.load()(x)[0] - expected).abs().max() / expected.abs().max()
    assert error < 0.02  # products round x to 8 bits


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.inner = nn.Embedding(ROWS, COLUMNS), nn.Linear(COLUMNS, COLUMNS, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(self.inner(self.table(ids)), self.table.weight)


def test_a_file_may_mix_formats_and_lack_weights(lower, tmp_path: Path) -> None:
    content = blocks("q6_k")
    path = write(tmp_path / "model.gguf", {"token_embd.weight": ("q6_k", content)})
    weights = GgufWeights(path, {"table.weight": "token_embd.weight"})
    module = Tied()
    module.load_state_dict(weights.state_dict(), strict=False)
    made = lower(
        module, (torch.tensor([[1, 5]]),), partitioner=GgmlPartitioner(gguf=weights, quantize="q8_0")
    )
    buffer = bytes(made.buffer)
    assert buffer.count(content.tobytes()) == 1
    assert quantize_rows("q8_0", module.inner.weight.detach().numpy()) in buffer


def test_a_module_with_other_values_is_an_error(lower, tmp_path: Path) -> None:
    weights = GgufWeights(write(tmp_path / "m.gguf", {"output.weight": ("q4_k", blocks("q4_k"))}), NAMES)
    with pytest.raises(Exception, match=r"weight has other values than 'output\.weight' of .*state_dict\(\)"):
        lower(
            nn.Linear(COLUMNS, ROWS, bias=False),
            (torch.randn(1, COLUMNS),),
            partitioner=GgmlPartitioner(gguf=weights),
        )


def test_what_the_file_does_not_have_is_named(lower, tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", {"output.weight": ("q8_0", blocks("q8_0"))})
    with pytest.raises(ValueError, match=r"no tensor 'lost' for 'weight'; it has output\.weight"):
        GgufWeights(path, {"weight": "lost"})
    with pytest.raises(Exception, match=r"weight has the shape \[8, 512\].*\[64, 512\]; another tensor"):
        lower(
            nn.Linear(COLUMNS, 8, bias=False),
            (torch.randn(1, COLUMNS),),
            partitioner=GgmlPartitioner(gguf=GgufWeights(path, NAMES)),
        )


def test_weights_that_the_file_has_as_floats_are_warned_of(tmp_path: Path) -> None:
    plain = np.ones((ROWS, COLUMNS), np.float32)
    weights = GgufWeights(write(tmp_path / "m.gguf", {"output.weight": ("f32", plain)}), NAMES)
    module = nn.Linear(COLUMNS, ROWS, bias=False)
    module.load_state_dict(weights.state_dict())
    program = torch.export.export(module, (torch.randn(1, COLUMNS),))
    with pytest.warns(UserWarning, match="no blocks of the file are stored for weight"):
        to_edge_transform_and_lower(program, partitioner=[GgmlPartitioner(gguf=weights)])


def test_a_path_in_place_of_weights_is_refused_by_the_constructor() -> None:
    with pytest.raises(TypeError, match=r"gguf is 'model\.gguf'; it must be a GgufWeights.*'output\.weight'"):
        GgmlPartitioner(gguf="model.gguf")
