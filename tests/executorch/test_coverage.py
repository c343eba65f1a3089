"""The page of ATen ops that have a lowering."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

from executorch_ggml import coverage
from executorch_ggml.translate import LOWERINGS


def test_every_core_op_has_either_a_lowering_or_a_reason():
    names = coverage.core_aten()
    unexplained = [name for name in names if coverage.covered(name) == (name in coverage.REASONS)]
    assert unexplained == []
    assert set(coverage.REASONS) <= set(names)


def test_the_page_names_the_catalogs_ops_of_each_lowering():
    page = coverage.page()
    assert "| aten.sin.default | yes | cast, sin |" in page
    assert "conv_transpose2d" in coverage.catalog_ops(LOWERINGS["aten.convolution.default"])
    assert "average_pool2d" in coverage.catalog_ops(LOWERINGS["aten.avg_pool3d.default"])
    assert "not written yet" not in page


def test_its_help_writes_no_file(tmp_path):
    command = [sys.executable, "-m", "executorch_ggml.coverage", "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("usage: python -m executorch_ggml.coverage")
    assert list(tmp_path.iterdir()) == []
