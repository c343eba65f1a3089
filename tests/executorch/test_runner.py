"""examples/executorch_runner: a C++ program that runs a .pte without Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

executorch = pytest.importorskip(
    "executorch", reason="ExecuTorch is not installed: make executorch installs it"
)

import torch
from executorch_ggml import GgmlPartitioner, _runtime
from torch import nn

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)
if not shutil.which(os.environ.get("CXX", "c++")):
    pytest.skip("no C++ compiler to build a program with", allow_module_level=True)

SOURCE = Path(__file__).resolve().parents[2] / "examples/executorch_runner"


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runner")
    configure = ["cmake", "-S", SOURCE, "-B", folder, f"-DEXECUTORCH_DIR={next(iter(executorch.__path__))}"]
    configure.append(f"-DEXECUTORCH_GGML_RUNTIME={_runtime.runtime_path()}")
    for command in (configure, ["cmake", "--build", folder]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "executorch_runner"


@pytest.fixture
def program(lower, tmp_path: Path):
    torch.manual_seed(0)
    lowered = lower(nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.1)), (torch.randn(2, 4),))
    path = tmp_path / "model.pte"
    path.write_bytes(lowered.buffer)
    return lowered.module, path


def run(*command: object) -> subprocess.CompletedProcess[str]:
    hidden = {"PYTHONPATH", "LD_LIBRARY_PATH"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=60, env=environment
    )


def printed_values(done: subprocess.CompletedProcess[str]) -> list[float]:
    assert done.returncode == 0, done.stdout + done.stderr
    (values,) = re.findall(r"^output 0 \[2, 8\]: (.*) \.\.\.$", done.stdout, re.MULTILINE)
    return [float(value) for value in values.split()]


def test_the_runner_prints_what_eager_computes_of_ones(runner, program):
    module, path = program
    done = run(runner, path, "--runs", 3)
    torch.testing.assert_close(
        torch.tensor(printed_values(done)), module(torch.ones(2, 4))[0], rtol=1e-5, atol=1e-6
    )
    assert re.search(r"median of 3 runs: \d+\.\d+ ms", done.stdout)


def test_the_runner_reads_arguments_from_files(runner, program, tmp_path):
    module, path = program
    x = torch.randn(2, 4)
    (tmp_path / "x.bin").write_bytes(x.numpy().tobytes())
    done = run(runner, path, tmp_path / "x.bin")
    torch.testing.assert_close(torch.tensor(printed_values(done)), module(x)[0], rtol=1e-5, atol=1e-6)


class Total(nn.Module):
    def __init__(self, first: float) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.register_buffer("total", torch.full((3,), first))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(self.layer(x).sum(0))
        return self.total * 1


@pytest.mark.parametrize("first", [0.0, 1.0])
def test_methods_of_a_module_with_a_file_of_weights_share_a_buffer(first, runner, lower, tmp_path):
    """The buffer's first value lies in the program where it is not zeros: a second source of data."""
    module = Total(first).requires_grad_(False)
    methods = {
        name: torch.export.export(module, (torch.ones(n, 4),)) for name, n in (("three", 3), ("one", 1))
    }
    program = lower(exported=methods, partitioner=GgmlPartitioner(external_weights="w"))
    program.program_manager.write_tensor_data_to_file(tmp_path)
    (tmp_path / "model.pte").write_bytes(program.buffer)
    done = run(
        *(runner, tmp_path / "model.pte", "--data", tmp_path / "w.ptd"),
        *("--method", "three", "--method", "one", "--runs", 1),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = re.findall(r"^output 0 \[3\]: (.*)$", done.stdout, re.MULTILINE)
    row = module.layer(torch.ones(4))
    for line, rows in zip(printed, (3, 4), strict=True):
        actual = torch.tensor([float(value) for value in line.split()])
        torch.testing.assert_close(actual, first + rows * row, rtol=1e-5, atol=1e-6)


def assert_clear_error(done: subprocess.CompletedProcess[str], message: str) -> None:
    assert done.returncode == 1, done  # not a signal
    assert message in done.stderr


@pytest.mark.parametrize("part", [0, 0.01, 0.1, 0.5, 0.9])
def test_a_truncated_program_is_an_error_and_no_crash(runner, program, tmp_path, part):
    content = program[1].read_bytes()
    cut = tmp_path / "cut.pte"
    cut.write_bytes(content[: int(len(content) * part)])
    assert_clear_error(run(runner, cut), "executorch_runner: ")


def test_files_and_options_that_are_wrong_are_named(runner, program, tmp_path):
    path = program[1]
    assert_clear_error(run(runner), "usage: executorch_runner")
    assert_clear_error(run(runner, tmp_path / "missing.pte"), "there is no file")
    assert_clear_error(run(runner, path, "--data", tmp_path / "missing.ptd"), "there is no file")
    assert_clear_error(run(runner, path, "--method", "backward"), "'backward'")
    assert_clear_error(run(runner, path, "--runs", "0"), "--runs must be a number above 0")
    (tmp_path / "short.bin").write_bytes(b"123")
    assert_clear_error(run(runner, path, tmp_path / "short.bin"), "has 3 bytes, the argument takes 32")
    assert_clear_error(run(runner, path, *[tmp_path / "short.bin"] * 2), "2 files given")
