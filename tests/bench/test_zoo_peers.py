"""The zoo benchmark's programs, plot and protocol, on a model of one product."""

from __future__ import annotations

import numpy as np
import pytest
import zoo_peers
import zoo_plot
from product_model import write_product


@pytest.fixture
def folder(tmp_path):
    """A case as zoo_models.py writes it, as far as ONNX Runtime reads it."""
    write_product(tmp_path)
    return tmp_path


def test_a_program_gives_its_output_its_time_and_its_memory(folder):
    side = zoo_peers.Side("ONNX Runtime", "product", folder, 1)
    try:
        np.testing.assert_array_equal(side.output(folder), [[6, 9, 12]])
        assert 0 < side.ask("time 5") < 1e6
        assert side.ask("memory") > 0
    finally:
        side.close()


def test_a_program_says_what_an_idle_model_and_paced_runs_take(folder):
    side = zoo_peers.Side("ONNX Runtime", "product", folder, 1)
    try:
        assert side.ask("idle 0.01") >= 0
        median_us, cpu_us = side.ask("pace 100 0.05")
        assert 0 < median_us < 1e6
        assert 0 < cpu_us < 1e6
    finally:
        side.close()


def test_a_program_that_cannot_load_the_model_says_why(folder):
    (folder / "model.onnx").write_bytes(b"no model")
    with pytest.raises(zoo_peers.UnavailableError, match="ONNXRuntimeError"):
        zoo_peers.Side("ONNX Runtime", "product", folder, 1)


def test_programs_take_turns_as_often_as_asked(folder):
    side = zoo_peers.Side("ONNX Runtime", "product", folder, 1)
    try:
        assert len(zoo_peers.alternating([side], 3, 0.001)["ONNX Runtime"]) == 3
    finally:
        side.close()


def test_the_plot_puts_faster_cases_to_the_right(tmp_path):
    def row(ratio: float) -> zoo_peers.Row:
        return zoo_peers.Row(
            "mlp", 1, 1.0, "OpenVINO", ratio, ratio, 0.0, {"ours": 1, "peer": 1}, 1.0, 0.1, 0.1
        )

    zoo_plot.write_plot([row(2.0), row(0.5)], tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    assert text.startswith("<svg")
    assert text.count("mlp 1T, OpenVINO") == 2
    assert zoo_plot._x(2.0) > zoo_plot._x(1.0) > zoo_plot._x(0.5)
    assert zoo_plot._x(1.0) - zoo_plot._x(0.5) == pytest.approx(zoo_plot._x(2.0) - zoo_plot._x(1.0))
