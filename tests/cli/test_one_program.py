"""build/bin/headrace and the installed command are one program, although a part of it is Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

NATIVE = [str(Path(__file__).parents[2] / "build/bin/headrace")]
INSTALLED = [sys.executable, "-m", "headrace"]  # what the console script runs
WAYS = {"native": NATIVE, "installed": INSTALLED}
W = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


def run(program: list[str], *arguments: object, **environment: str) -> subprocess.CompletedProcess:
    command = [*program, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


@pytest.fixture
def model(tmp_path) -> Path:
    """y = relu(x · w), x [seq, 3]."""
    numbers = ", ".join(str(v) for v in W.reshape(-1))
    made = parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 21]>
        g (float[seq, 3] x) => (float[seq, 4] y) {{
            w = Constant<value = float[3, 4] {{{numbers}}}>()
            p = MatMul(x, w)
            y = Relu(p)
        }}""")
    onnx.save(made, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


@pytest.fixture
def sequence_model(tmp_path) -> Path:
    """y = x, by way of a sequence."""
    made = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[2, 3] x, int64 i) => (float[2, 3] y) {
            s = SequenceConstruct(x)
            y = SequenceAt(s, i)
        }""")
    onnx.save(made, tmp_path / "sequence.onnx")
    return tmp_path / "sequence.onnx"


def commands(program: list[str]) -> list[str]:
    done = run(program, "--help")
    assert done.returncode == 0, done.stderr
    return re.findall(r"^  ([a-z][a-z-]*)", done.stdout, flags=re.MULTILINE)


def test_both_list_the_same_commands() -> None:
    native = commands(NATIVE)
    assert native == commands(INSTALLED)
    assert {"run", "bench", "inspect", "devices", "ops", "serve-rpc", "convert", "wasm"} <= set(native)


@pytest.mark.parametrize("way", WAYS)
def test_every_command_explains_itself(way: str) -> None:
    for command in commands(WAYS[way]):
        done = run(WAYS[way], command, "--help")
        assert done.returncode == 0 and f"{command}" in done.stdout, (command, done.stderr)


def test_helps_say_what_options_take_in_words() -> None:
    helps = {command: run(NATIVE, command, "--help").stdout for command in ("run", "bench-llm", "completion")}
    assert re.search(r"^  --weight-format \{as-given,q8_0,q4_0\}$", helps["run"], re.MULTILINE)
    assert re.search(
        r"^positionals:\n  shell \{bash,zsh,fish\} REQUIRED", helps["completion"], re.I | re.MULTILINE
    )
    for command, text in helps.items():
        assert ":{" not in text and "INT in [" not in text and "\n\n\n" not in text, command
    if "bench-llm" in commands(NATIVE):
        assert "--streams N from 1 to 256 ..." in helps["bench-llm"]


@pytest.mark.parametrize("way", WAYS)
def test_both_convert_onnx_models(way: str, model: Path, tmp_path: Path) -> None:
    graph = tmp_path / "graph.hrg"
    done = run(WAYS[way], "convert", model, graph, "--dimension", "seq=2")
    assert done.returncode == 0 and done.stdout.startswith(f"{graph}: "), done.stderr
    assert run(NATIVE, "run", graph).stdout.startswith("y: f32[2, 4]")
    done = run(WAYS[way], "convert", model)
    assert done.returncode != 0 and "graph" in done.stderr and "required" in done.stderr


@pytest.mark.parametrize("way", WAYS)
def test_both_run_inspect_and_bench_onnx_models(way: str, model: Path, tmp_path: Path) -> None:
    x = np.ones((5, 3), np.float32)
    np.save(tmp_path / "x.npy", x)
    done = run(WAYS[way], "run", model, "--input", f"x={tmp_path}/x.npy", "--output", f"y={tmp_path}/y.npy")
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), np.maximum(x @ W, 0), rtol=1e-5)
    assert "gemm_f32" in run(WAYS[way], "inspect", model, "--dimension", "seq=2").stdout
    done = run(WAYS[way], "bench", model, "--dimension", "seq=2", "--peer", "none", "--runs", 1)
    assert done.stdout.startswith("median"), done.stderr
    assert run(WAYS[way], "run", tmp_path / "absent.onnx").returncode == 1


def test_without_an_interpreter_the_remedy_is_named(tmp_path: Path) -> None:
    done = run(NATIVE, "wasm", "guest.wasm", HEADRACE_PYTHON=str(tmp_path / "absent"))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.startswith("headrace: wasm is done by the Python package headrace, and")
    assert "pip install ." in done.stderr and "HEADRACE_PYTHON" in done.stderr


def test_without_the_package_the_remedy_is_named(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    done = run(NATIVE, "wasm", "guest.wasm", HEADRACE_PYTHON=str(bare))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "headrace: wasm needs the Python package headrace" in done.stderr
    assert "pip install ." in done.stderr


def test_onnx_models_need_no_python(model: Path, sequence_model: Path, tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")
    for path in (model, sequence_model):
        done = run(NATIVE, "convert", path, tmp_path / "graph.hrg", HEADRACE_PYTHON=absent)
        assert done.returncode == 0, done.stderr
    alone = run(NATIVE, "bench", model, "--dimension", "seq=2", "--runs", 1, HEADRACE_PYTHON=absent)
    assert alone.stdout.startswith("median"), alone.stderr


def test_a_folder_of_that_name_is_not_taken_for_the_package(tmp_path: Path) -> None:
    (tmp_path / "headrace").mkdir()
    (tmp_path / "headrace/__init__.py").write_text("raise SystemExit('the wrong package')")
    command = [*NATIVE, "wasm", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("way", WAYS)
def test_dimensions_of_graph_files_are_refused(way: str, model: Path, tmp_path: Path) -> None:
    run(WAYS[way], "convert", model, tmp_path / "graph.hrg")
    done = run(WAYS[way], "run", tmp_path / "graph.hrg", "--dimension", "seq=2")
    assert done.returncode == 2 and "--dimension is for ONNX models" in done.stderr


def test_bench_of_an_onnx_model_alternates_with_onnx_runtime(model: Path) -> None:
    fast = ("--rounds", 2, "--seconds", 0.01, "--threads", 1)
    done = run(NATIVE, "bench", model, "--dimension", "seq=2", *fast, HEADRACE_PYTHON=sys.executable)
    assert "peer/ours" in done.stdout and "model.onnx" in done.stdout, done.stderr
