"""What tests of language models share: the tiny model of the checkout, and programs that are interrupted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip(
    "headrace.language_model", reason="language models are not built: llama.cpp is not set up"
)

MODEL = Path(__file__).resolve().parents[2] / "models/tiny-chat-q8_0.gguf"
GREEDY = {"temperature": 0, "strict": True}
ENDLESS = {**GREEDY, "ignore_eos": True, "n_predict": 1_000_000}
#: One thread, so that tests beside each other have cores; a context that never ends an answer.
CONFIG = {"n_threads": 1, "context_shift": True}

PROGRAM = f"""
import os, signal, sys, threading, time
from headrace import LanguageModel
from headrace.language_model import LanguageModelError
ENDLESS = {ENDLESS!r}
model = LanguageModel({str(MODEL)!r}, {CONFIG!r}, {{"log_level": "none"}})
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    """A program of its own with an open model; its death by a signal or a hang fails the test that calls."""
    command = [sys.executable, "-X", "faulthandler", "-c", PROGRAM + program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode >= 0, f"it died by signal {-done.returncode}: {done.stderr}"
    return done
