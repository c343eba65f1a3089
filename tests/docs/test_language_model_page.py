"""The program of the page on language models runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip(
    "headrace.language_model", reason="language models are not built: llama.cpp is not set up"
)

ROOT = Path(__file__).resolve().parents[2]


def test_the_program_of_the_page_on_language_models_runs():
    page = (ROOT / "docs/language-models.md").read_text().partition("\n## Python\n")[2]
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    program = program.replace("model.gguf", "models/tiny-chat-q8_0.gguf").replace("4096", "512")
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Your name is Ada." in done.stdout
    assert "end_of_answer" in done.stdout or "timed_out" in done.stdout
