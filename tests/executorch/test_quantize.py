"""Weights that export stores in ggml's block formats."""

from __future__ import annotations

from collections import OrderedDict

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch_ggml import GgmlPartitioner, _runtime
from executorch_ggml.quantize import FORMATS, MOST_NAMES
from torch import nn

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)

BITS = {name: 8 * size / elements for name, (elements, size) in FORMATS.items()}


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def mlp(width: int = 512) -> tuple[nn.Module, tuple]:
    return nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)), (
        torch.randn(3, width),
    )


def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(torch.cosine_similarity(a.flatten().double(), b.flatten().double(), dim=0))


def test_every_format_of_the_catalog_is_offered():
    assert list(FORMATS) == ["q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k", "q6_k"]


@pytest.mark.parametrize("name", FORMATS)
def test_the_file_shrinks_to_the_formats_bits_and_the_results_stay_close(name, lower):
    module, inputs = mlp()
    plain = lower(module, inputs)
    small = lower(module, inputs, partitioner=GgmlPartitioner(quantize=name))
    assert (small.delegates, small.left) == (1, [])
    assert len(small.buffer) / len(plain.buffer) == pytest.approx(BITS[name] / 32, abs=0.01)
    with torch.no_grad():
        expected = module(*inputs)
    least = {8: 0.9999, 6: 0.999, 5: 0.997, 4: 0.985}[int(name[1])]
    assert cosine(small.load()(*inputs)[0], expected) >= least


def test_what_runs_are_the_blocks_values(lower):
    """A product with the identity shows the matrix: of 32 elements with a scale, the largest is 127 of it."""
    module, identity = nn.Linear(64, 6, bias=False), torch.eye(64)
    small = lower(module, (identity,), partitioner=GgmlPartitioner(quantize="q8_0"))
    blocks = module.weight.detach().reshape(-1, 32)
    scale = blocks.abs().amax(1, keepdim=True) / 127
    values = torch.round(blocks / scale) * scale.half().float()
    torch.testing.assert_close(small.load()(identity)[0], values.reshape(6, 64).T, rtol=1e-6, atol=1e-7)


def test_an_unknown_format_names_the_known_ones():
    with pytest.raises(ValueError, match=r"quantize='q3' is no block format; those are q8_0, q4_0, .*q6_k"):
        GgmlPartitioner(quantize="q3")


def test_a_filter_without_a_format_is_an_error():
    with pytest.raises(ValueError, match="it needs quantize"):
        GgmlPartitioner(filter=lambda name, tensor: True)


def test_the_filter_excludes_a_layer_by_name(lower, capsys):
    module, inputs = mlp()
    seen = []

    def keep(name: str, tensor: torch.Tensor) -> bool:
        seen.append((name, tuple(tensor.shape)))
        return name != "2.weight"

    partitioner = GgmlPartitioner(quantize="q4_0", filter=keep, report=True)
    half = lower(module, inputs, partitioner=partitioner)
    assert seen == [("0.weight", (1024, 512)), ("2.weight", (512, 1024))]
    weights = 4 * 512 * 1024
    assert len(half.buffer) == pytest.approx(weights * (1 + BITS["q4_0"] / 32), rel=0.02)
    printed = capsys.readouterr().out
    assert "GgmlPartitioner: weights: 1 as q4_0; " in printed
    assert "  0.weight: q4_0\n" in printed
    assert "  2.weight: torch.float32 stays: the filter excludes it\n" in printed


def test_rows_that_are_no_whole_blocks_take_the_next_format_or_stay(lower, capsys):
    module = nn.Sequential(nn.Linear(384, 256), nn.ReLU(), nn.Linear(256, 40), nn.ReLU(), nn.Linear(40, 8))
    program = lower(module, (torch.randn(2, 384),), partitioner=GgmlPartitioner(quantize="q4_k", report=True))
    printed = capsys.readouterr().out
    assert "weights: 1 as q4_k, 1 as q5_0" in printed
    assert "  0.weight: q5_0: 384 elements are no whole blocks of q4_k\n" in printed
    assert "  4.weight: torch.float32 stays: 40 elements are no whole blocks of 32\n" in printed
    program.check(tolerance=0.1)


def test_many_layers_are_told_by_what_their_names_have_in_common(lower, capsys):
    layers = nn.Sequential(*[nn.Linear(64, 64) for _ in range(MOST_NAMES)], nn.Linear(64, 64))
    module = nn.Sequential(OrderedDict(layers=layers, head=nn.Linear(64, 8)))
    lower(module, (torch.randn(2, 64),), partitioner=GgmlPartitioner(quantize="q8_0", report=True))
    assert f"  layers.*.weight ({MOST_NAMES + 1}), head.weight: q8_0\n" in capsys.readouterr().out


class Tied(nn.Module):
    """A language model's ends: one table, looked up and multiplied by."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(3000, 64)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(self.table(ids), self.table.weight)


def test_a_table_that_is_looked_up_and_multiplied_by_is_stored_once(lower):
    module, inputs = Tied(), (torch.tensor([[0, 2999, 7]]),)
    small = lower(module, inputs, partitioner=GgmlPartitioner(quantize="q8_0"))
    assert (small.delegates, small.left) == (1, [])
    assert len(small.buffer) < 0.3 * 4 * 3000 * 64
    small.check(tolerance=0.02)


def test_filters_of_convolutions_are_stored_in_blocks_and_expanded_when_loaded(lower):
    module = nn.Sequential(nn.Conv2d(16, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 32, 1))
    inputs = (torch.randn(1, 16, 8, 8),)
    plain = lower(module, inputs)
    small = lower(module, inputs, partitioner=GgmlPartitioner(quantize="q8_0"))
    assert (small.delegates, small.left) == (1, [])
    saved = len(plain.buffer) - len(small.buffer)
    weights = 4 * (64 * 16 * 9 + 32 * 64)
    assert saved == pytest.approx(weights * (1 - BITS["q8_0"] / 32), rel=0.05)
    small.check(tolerance=0.01)


class Words(nn.Module):
    """An embedding, a product with a bias and a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(96, 128), nn.Linear(128, 256)
        self.conv = nn.Conv1d(256, 64, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.conv(self.head(self.table(ids)).transpose(1, 2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_are_quantized_as_those_of_f32_are(dtype, lower):
    module, ids = Words(), torch.randint(0, 96, (2, 9))
    of_f32 = lower(module, (ids,), partitioner=GgmlPartitioner(quantize="q8_0"))
    small = lower(module.to(dtype), (ids,), partitioner=GgmlPartitioner(quantize="q8_0"))
    assert (small.delegates, small.left) == (1, [])
    assert len(small.buffer) == pytest.approx(len(of_f32.buffer), rel=0.05)
    with torch.no_grad():
        expected = module(ids)
    actual = small.load()(ids)[0]
    assert actual.dtype == dtype
    assert cosine(actual, expected) >= 0.999


def test_a_format_that_changes_no_weight_is_warned_of(lower):
    module = nn.Linear(64, 64).double()
    partitioner = GgmlPartitioner(quantize="q8_0")
    program = torch.export.export(module, (torch.randn(2, 64).double(),))
    with pytest.warns(
        UserWarning, match="quantize='q8_0' changes nothing: torch.float64 stays: only float32"
    ):
        to_edge_transform_and_lower(program, partitioner=[partitioner])


def test_infinite_weights_stay_as_they_are(lower):
    module = nn.Linear(64, 4, bias=False)
    module.weight.data[0, 0] = float("inf")
    program = lower(module, (torch.ones(2, 64),), partitioner=GgmlPartitioner(quantize="q8_0"))
    assert program.load()(torch.ones(2, 64))[0][0, 0] == float("inf")
