"""Shared by the MLX backend's tests: the library and programs, all of which make test-mlx builds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mlx_programs import ROOT, run

LIBRARY = ROOT / "build/lib/libggml-mlx.so"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"


@pytest.fixture(scope="session")
def library() -> Path:
    if not LIBRARY.exists():
        pytest.skip("libggml-mlx.so is not built: make mlx builds it")
    return LIBRARY


@pytest.fixture(scope="session")
def peers(library) -> Path:
    """llama.cpp's own programs, on the ggml that the library was built for."""
    found = sorted(CACHE.glob("llama-*-peers/bin"), key=lambda path: path.stat().st_mtime)
    for folder in reversed(found):
        if run([folder / "llama-bench", "--list-devices"], library).stdout.find("MLX0") >= 0:
            return folder
    pytest.skip("llama.cpp's programs are not built for this ggml: make test-mlx builds them")


@pytest.fixture(scope="session")
def small_model(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("mlx") / "small.gguf"
    script = [
        sys.executable,
        ROOT / "bench/make_llm.py",
        "--size",
        "small",
        "--type",
        "q4_0",
        "--output",
        path,
    ]
    subprocess.run(script, check=True, capture_output=True)
    return path
