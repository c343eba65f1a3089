"""The README's program for language models runs and prints what the README says."""

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


def test_the_language_model_of_the_readme_answers_as_it_says():
    section = (ROOT / "README.md").read_text().partition("\n## Language models")[2]
    program, output = re.search(r"```python\n(.*?)```\n+```\n(.*?)```", section, re.DOTALL).groups()
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == (output, 0), done.stderr


def test_the_program_of_the_page_on_language_models_runs():
    page = (ROOT / "docs/language-models.md").read_text().partition("\n## Python\n")[2]
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    program = program.replace("model.gguf", "models/tiny-chat-q8_0.gguf").replace("4096", "512")
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Your name is Ada." in done.stdout
    assert "end_of_answer" in done.stdout or "timed_out" in done.stdout
