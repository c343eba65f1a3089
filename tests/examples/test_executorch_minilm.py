"""examples/executorch_minilm.py, which make executorch runs."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("webnn", reason="the Python extension is not built: make build")
import executorch_minilm


def needs_executorch() -> None:
    if not all(find_spec(package) for package in ("torch", "executorch")):
        pytest.skip("ExecuTorch is not installed: make executorch installs it")
    import executorch_ggml

    if executorch_ggml.runtime_path() is None:
        pytest.skip("libexecutorch_ggml_runtime.so is not built: make build")


def test_without_pytorch_it_says_what_brings_it_and_succeeds(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["executorch_minilm.py"])
    monkeypatch.setattr(executorch_minilm, "find_spec", lambda name: None)
    executorch_minilm.main()
    assert capsys.readouterr().out.strip().splitlines() == [
        "The ExecuTorch door is left out: make executorch installs PyTorch and ExecuTorch (1.5 GB)."
    ]


def test_the_second_run_takes_the_kept_program_and_both_doors_agree(examples: Path, tmp_path: Path) -> None:
    needs_executorch()
    text = tmp_path / "notes.txt"
    text.write_text("The dog barks at the moon.\nOil prices fell sharply today.\n")
    command = [sys.executable, str(examples / "executorch_minilm.py"), str(text)]
    for first in (True, False):
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert float(re.search(r"lowest cosine .* (\S+)$", done.stdout, re.MULTILINE)[1]) >= 0.99999
        if not first:
            assert "exporting" not in done.stdout


def test_differing_embeddings_fail(monkeypatch) -> None:
    needs_executorch()
    rng = np.random.default_rng(1)
    monkeypatch.setattr(executorch_minilm, "export", lambda path: None)
    monkeypatch.setattr(executorch_minilm, "load", lambda path: lambda tokens: rng.standard_normal(384))
    with pytest.raises(SystemExit, match="the two doors disagree: cosine"):
        executorch_minilm.compare(["A cat sleeps."])
