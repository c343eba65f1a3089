"""Exported PyTorch programs on ggml."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import torch
import torch.nn as nn
import torch.nn.functional as F
from executorch_ggml import GgmlPartitioner, _runtime
from executorch_ggml.partitioner import supported_ops

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


class QuickStart(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 8)
        self.leaky_relu = nn.LeakyReLU(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.leaky_relu(self.linear(x))


def test_the_quick_start_is_one_delegate(lower):
    program = lower(QuickStart(), (torch.randn(2, 4),))
    assert (program.delegates, program.left) == (1, [])
    program.check()


class Attention(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def split(t: torch.Tensor) -> torch.Tensor:
            return t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)

        y = F.scaled_dot_product_attention(
            split(self.q(x)), split(self.k(x)), split(self.v(x)), is_causal=True
        )
        return self.norm(x + self.o(y.transpose(1, 2).reshape(x.shape)))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16)
        self.c2, self.b2 = nn.Conv2d(16, 16, 3, 1, 1, groups=16), nn.BatchNorm2d(16)
        self.pool, self.fc = nn.MaxPool2d(3, 2, 1), nn.Linear(16, 5)
        for norm in (self.b1, self.b2):
            norm.running_mean.normal_(0, 0.1)
            norm.running_var.uniform_(0.5, 1.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(F.relu6(self.b1(self.c1(x))))
        x = torch.relu(x + self.b2(self.c2(x)))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1))


class Gated(nn.Module):
    """RMS norm, rotary-like arithmetic and a gated layer, as language models have them."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.up, self.gate = nn.Embedding(50, 32), nn.Linear(32, 64), nn.Linear(32, 64)
        self.norm, self.out = nn.RMSNorm(32), nn.Linear(64, 50, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.embed(ids))
        left, right = x.chunk(2, -1)
        angle = torch.arange(ids.shape[1], dtype=torch.float32)[:, None] * 0.1
        x = torch.cat(
            [left * angle.cos() - right * angle.sin(), right * angle.cos() + left * angle.sin()], -1
        )
        return self.out(F.silu(self.gate(x)) * self.up(x)).argmax(-1)


MODELS = {
    "mlp": lambda: (nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 8)), (torch.randn(3, 64),)),
    "attention": lambda: (Attention(), (torch.randn(2, 7, 32),)),
    "residual": lambda: (Residual(), (torch.randn(1, 3, 32, 32),)),
    "gated": lambda: (Gated(), (torch.randint(0, 50, (2, 9)),)),
    "group_norm": lambda: (
        nn.Sequential(nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 8, 1), nn.Upsample(scale_factor=2)),
        (torch.randn(2, 16, 6, 6),),
    ),
    "conv1d": lambda: (
        nn.Sequential(nn.Conv1d(4, 8, 3, padding=1), nn.Hardswish()),
        (torch.randn(2, 4, 11),),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_one_delegate_and_equals_eager(name, lower):
    program = lower(*MODELS[name]())
    assert (program.delegates, program.left) == (1, [])
    program.check()


def test_a_dynamic_batch_takes_every_size_in_its_range(lower):
    batch = torch.export.Dim("batch", min=1, max=64)
    program = lower(QuickStart(), (torch.randn(4, 4),), dynamic_shapes=({0: batch},))
    assert program.delegates == 1
    run = program.load()
    for size in (1, 2, 17, 64):
        x = torch.randn(size, 4)
        torch.testing.assert_close(run(x)[0], program.module(x), rtol=1e-4, atol=1e-5)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total * 2


def test_a_mutated_buffer_lives_in_the_delegate(lower):
    program = lower(Counter(), (torch.ones(3),))
    assert program.delegates == 1
    run = program.load()
    assert [run(torch.ones(3))[0].tolist() for _ in range(3)] == [[2.0] * 3, [4.0] * 3, [6.0] * 3]
    again = program.load()
    assert again(torch.ones(3))[0].tolist() == [2.0] * 3  # another load has a state of its own


class WithUnknown(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        points = torch.zeros(1, 3, 3, 2)
        return torch.relu(nn.functional.grid_sample(torch.sigmoid(x), points, "bicubic", align_corners=False))


def test_what_is_not_supported_falls_back_and_is_reported(lower, capsys):
    program = lower(WithUnknown(), (torch.randn(1, 2, 4, 4),), partitioner=GgmlPartitioner(report=True))
    assert program.delegates == 2 and any("grid_sampler" in name for name in program.left)
    assert "1 x aten.grid_sampler_2d.default: cubic sampling at points" in capsys.readouterr().out
    program.check()


def test_strict_names_everything_that_would_be_left(lower):
    with pytest.raises(Exception, match=r"aten\.grid_sampler_2d\.default: cubic sampling"):
        lower(WithUnknown(), (torch.randn(1, 2, 4, 4),), partitioner=GgmlPartitioner(strict=True))


def test_shapes_and_dtypes_that_were_not_exported_are_errors(lower):
    run = lower(QuickStart(), (torch.randn(2, 4),)).load()
    with pytest.raises(RuntimeError):
        run(torch.randn(3, 4))
    with pytest.raises(RuntimeError):
        run(torch.ones(2, 4, dtype=torch.int64))


def test_a_damaged_program_is_an_error(lower):
    from executorch.runtime import Runtime

    program = lower(QuickStart(), (torch.randn(2, 4),))
    at = program.buffer.find(b"HDRGRAPH")
    assert at > 0
    for damage in (b"HDRGRAPX", b"HDRGRAPH\xff"):
        damaged = bytearray(program.buffer)
        damaged[at : at + len(damage)] = damage
        with pytest.raises(RuntimeError):
            Runtime.get().load_program(bytes(damaged)).load_method("forward")


def test_many_aten_ops_have_a_lowering():
    assert len(supported_ops()) >= 110


@pytest.mark.parametrize("batch", [1, 3])
def test_results_and_inputs_keep_the_order_that_their_memory_has(lower, batch):
    """ATen gives the sequence of a batch-first LSTM, like images in channels_last, in another order."""

    class Sequence(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(6, 5, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.lstm(x)[0]

    lower(Sequence(), (torch.randn(batch, 4, 6),)).check()
    image = torch.randn(batch, 3, 8, 8).to(memory_format=torch.channels_last)
    lower(nn.Conv2d(3, 4, 3, padding=1), (image,)).check()
    lower(nn.ReLU(), (image,)).check()
