"""examples/ggml_inference.py: the number that is shown is the number that is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("webnn", reason="the Python extension is not built: make build")
import ggml_inference
import webnn


@pytest.mark.parametrize("number", ["0123456789", "7", "90210"])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_every_digit_is_read(number: str, noise: float) -> None:
    context = webnn.ML().create_context(accelerated=False)
    graph = ggml_inference.build(context, len(number))
    result = context.compute(graph, {"display": ggml_inference.render(number, noise)})
    assert "".join(map(str, result["digit"])) == number
    np.testing.assert_allclose(result["confidence"].sum(axis=0), 1.0, rtol=1e-5)
    assert (result["confidence"].argmax(axis=0) == result["digit"]).all()


def run(examples: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, examples / "ggml_inference.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_program_prints_devices_result_and_time(examples: Path) -> None:
    done = run(examples, "2718")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert any(line.split()[:3] == ["device", "CPU", "cpu"] for line in lines)
    assert "read    2718" in lines
    assert lines[-1].startswith("median") and lines[-1].endswith("us per run")


@pytest.mark.parametrize("number", ["12a4", "²"])
def test_what_is_no_number_is_refused(examples: Path, number: str) -> None:
    done = run(examples, number)
    assert done.returncode == 2
    assert "is not a number" in done.stderr


def test_a_number_lost_in_noise_is_a_failure(examples: Path) -> None:
    done = run(examples, "1234567890", "--noise", "5")
    assert done.returncode == 1
    assert "was shown" in done.stderr
