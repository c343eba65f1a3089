"""Runs the programs that make test-mlx builds."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "build/bin/tests"


def program(name: str) -> Path:
    path = PROGRAMS / name
    if not path.exists():
        pytest.skip("the MLX backend's tests are not built: make test-mlx builds and runs them")
    return path


def run(command, library=None, timeout=300, **environment) -> subprocess.CompletedProcess:
    """Runs a program with the backend in GGML_BACKEND_PATH, stderr in its stdout."""
    env = {**os.environ, **{key: str(value) for key, value in environment.items()}}
    if library:
        env["GGML_BACKEND_PATH"] = str(library)
    return subprocess.run(
        [str(part) for part in command],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=timeout,
    )
