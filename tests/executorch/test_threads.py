"""Programs in several threads at once: each gives its own answers and keeps its own states."""

from __future__ import annotations

import copy
import random
import subprocess
import threading
from pathlib import Path

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import numpy as np
import torch
from executorch_ggml import _runtime
from torch import nn

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)

RUNS, WIDTH, MOST_ROWS = 50, 64, 24
NATIVE = Path(__file__).resolve().parents[2] / "build/bin/tests/concurrent_programs"


class Remembering(nn.Module):
    """A layer that adds what it has seen to its results: a mixed-up state changes all that follow."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("seen", torch.zeros(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.layer(x))
        self.seen.mul_(0.9).add_(y.mean(0))
        return y + self.seen


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)[None, None]
        return self.out(nn.functional.scaled_dot_product_attention(y, y, y, is_causal=True))[0, 0] + x


@pytest.fixture
def programs(lower) -> list:
    """Two programs, each twice."""
    torch.manual_seed(0)
    rows = torch.export.Dim("rows", min=1, max=MOST_ROWS)
    both = [
        lower(module, (torch.randn(5, WIDTH),), dynamic_shapes=({0: rows},))
        for module in (Remembering(), Attending())
    ]
    assert [(program.delegates, program.left) for program in both] == [(1, [])] * 2
    both[0].module.seen.zero_()
    return [both[0], both[1], both[0], both[1]]


def cases(module: nn.Module, seed: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Inputs of changing lengths, and what a fresh module answers to them in turn."""
    fresh, rng = copy.deepcopy(module), random.Random(seed)
    inputs = [torch.randn(rng.randint(1, MOST_ROWS), WIDTH) for _ in range(RUNS)]
    with torch.no_grad():
        return [(x, fresh(x)) for x in inputs]


def test_threads_of_a_native_program_do_not_mix_their_programs_up(programs, tmp_path):
    if not NATIVE.exists():
        pytest.skip("build/bin/tests/concurrent_programs is not built: make build")
    arguments = []
    for i, program in enumerate(programs):
        path = tmp_path / f"{i % 2}.pte"
        path.write_bytes(program.buffer)
        with (tmp_path / f"{i}.cases").open("wb") as file:
            for x, y in cases(program.module, i):
                file.write(np.array([len(x), x.numel(), y.numel()], np.uint32).tobytes())
                file.write(x.numpy().tobytes() + y.numpy().tobytes())
        arguments += [path, tmp_path / f"{i}.cases"]
    done = subprocess.run([NATIVE, *arguments], capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines() == [f"thread {i}: {RUNS} runs are right" for i in range(4)], done
    assert done.returncode == 0


def test_threads_of_python_do_not_mix_their_programs_up(programs):
    """ExecuTorch keeps the interpreter's lock for a run: what alternates here are whole runs."""
    wrong: list[str] = []

    def serve(run, expected) -> None:
        for i, (x, y) in enumerate(expected):
            if not torch.allclose(run(x)[0], y, rtol=1e-4, atol=1e-5):
                wrong.append(f"{threading.current_thread().name}, run {i}")

    threads = [
        threading.Thread(target=serve, args=(program.load(), cases(program.module, i)), name=f"thread {i}")
        for i, program in enumerate(programs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
