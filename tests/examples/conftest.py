"""Shared by the tests of examples/: the scripts as modules, and MiniLM on both engines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))


@pytest.fixture(scope="session")
def examples() -> Path:
    return EXAMPLES


@pytest.fixture(scope="session")
def peer():
    """MiniLM on ONNX Runtime."""
    from minilm.onnx_model import OnnxMiniLM

    return OnnxMiniLM(threads=2)


@pytest.fixture(scope="session")
def minilm():
    """MiniLM through WebNN on ggml's CPU."""
    webnn = pytest.importorskip("webnn", reason="the Python extension is not built: make build")
    from minilm.model import MiniLM

    return MiniLM(webnn.ML().create_context(accelerated=False))
