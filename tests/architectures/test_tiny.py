"""Small architectures with open dimensions agree with ONNX Runtime, and in ExecuTorch with PyTorch."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: make executorch installs it")
pytest.importorskip("transformers", reason="transformers is not installed: make executorch installs it")

import headrace
import torch
from check import errors_at_both_shapes, through_executorch
from exported import export, session_of
from tiny import TINY


@pytest.mark.parametrize("name", TINY)
def test_a_model_of_onnx_is_called_at_two_shapes(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    a = TINY[name]()
    path = tmp_path / "model.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export(a, path, dynamo=False)
    session, model = session_of(path), headrace.load(path, device="cpu")
    assert any(isinstance(d, str) for given in model.inputs for d in given.shape)
    for error in errors_at_both_shapes(a, model, session):
        assert not isinstance(error, str) and error < a.tolerance, error


# The others take PyTorch's lowering half a minute each; make test-architectures has their like, and
# tests/executorch/test_decoders.py decoders.
QUICK = ("an encoder of text", "an encoder of speech")


@pytest.mark.parametrize("name", QUICK)
def test_a_program_of_executorch_is_called_at_two_shapes(name: str) -> None:
    pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")
    from executorch_ggml import _runtime

    if _runtime.runtime_path() is None:
        pytest.skip("libexecutorch_ggml_runtime.so is not built: make build")
    torch.manual_seed(0)
    a = TINY[name]()
    found = through_executorch(a)
    assert "errors" in found, found
    for error in found["errors"]:
        assert not isinstance(error, str) and error < a.tolerance, error
