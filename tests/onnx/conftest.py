"""Fixtures and helpers of the tests of ONNX models."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "python")]  # operator_cases*.py, peers.py; cases*.py


@pytest.fixture(autouse=True)
def _reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """HEADRACE_ONNX_READER=cpp: every test with the graphs of the C++ reader, where it has the operators."""
    if os.environ.get("HEADRACE_ONNX_READER") == "cpp":
        import native
        from headrace import onnx

        for module in (onnx, onnx.importer):
            monkeypatch.setattr(module, "read", native.read_by_cpp)
    yield
