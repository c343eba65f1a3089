"""Shared by the tests of WebAssembly hosts: the library, the model, and the guest, compiled once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def library() -> Path:
    path = ROOT / "build/lib/libwasi_nn_llamacpp.so"
    if not path.exists():
        pytest.skip("language models are not built: llama.cpp is not set up")
    return path


@pytest.fixture(scope="session")
def model() -> Path:
    path = Path(os.environ.get("HEADRACE_CHAT_MODEL") or ROOT / "models/tiny-chat-q8_0.gguf")
    if not path.exists():
        pytest.skip(f"{path} does not exist")
    return path


@pytest.fixture(scope="session")
def guest(tmp_path_factory) -> Path:
    """examples/wasi_nn/guest_chat.c as WebAssembly."""
    pytest.importorskip(
        "ziglang", reason="ziglang is not installed: tools/setup.py --on-demand ziglang installs it"
    )
    path = tmp_path_factory.mktemp("guest") / "guest_chat.wasm"
    source = ROOT / "examples/wasi_nn/guest_chat.c"
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi", "-Os", "-Wall", "-Werror"]
    subprocess.run([*compiler, "-o", path, source], check=True)
    return path
