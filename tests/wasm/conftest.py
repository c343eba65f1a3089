"""Shared by the tests of WebAssembly hosts: the example as a module, the library, the model and the guest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))
import wasm_chat  # noqa: E402


@pytest.fixture(scope="session")
def library() -> Path:
    if not wasm_chat.LIBRARY.exists():
        pytest.skip("language models are not built: llama.cpp is not set up")
    return wasm_chat.LIBRARY


@pytest.fixture(scope="session")
def model() -> Path:
    if not wasm_chat.MODEL.exists():
        pytest.skip(f"{wasm_chat.MODEL} does not exist")
    return wasm_chat.MODEL


@pytest.fixture(scope="session")
def guest() -> Path:
    """examples/wasi_nn/guest_chat.c as WebAssembly."""
    return wasm_chat.GUEST
