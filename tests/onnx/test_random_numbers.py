"""Random numbers: their distributions, seeds, and that runs differ."""

from __future__ import annotations

import headrace
import numpy as np
import pytest
from onnx import parser
from peers import on_headrace

COUNT = 40000


def y_of(body: str, opset: int = 21, **feeds: np.ndarray) -> np.ndarray:
    return model_of(body, opset)(feeds)["y"]


def model_of(body: str, opset: int = 21) -> headrace.model.Model:
    source = f"""<ir_version: 10, opset_import: ["" : {opset}]>
        g (float[n, 4] x) => (y) {{ {body} }}"""
    return headrace.load(parser.parse_model(source), device="cpu")


X = np.full([COUNT // 4, 4], 0.25, np.float32)


@pytest.mark.parametrize("op", ["RandomUniform", "RandomUniformLike"])
def test_uniform_numbers_fill_their_range_evenly(op: str) -> None:
    shape = f"shape = [{COUNT}]," if op == "RandomUniform" else ""
    operand = "" if op == "RandomUniform" else "x"
    y = y_of(f"y = {op}<{shape} low = -2.0, high = 6.0, seed = 3.0>({operand})", x=X)
    assert y.dtype == np.float32 and y.size == COUNT and y.min() >= -2 and y.max() < 6
    counts = np.histogram(y, 16, (-2, 6))[0]
    assert np.abs(counts - COUNT / 16).max() < 5 * np.sqrt(COUNT / 16)
    flat = y.reshape(-1) - 2
    assert abs(np.corrcoef(flat[:-1], flat[1:])[0, 1]) < 5 / np.sqrt(COUNT)


@pytest.mark.parametrize("op", ["RandomNormal", "RandomNormalLike"])
def test_normal_numbers_have_their_mean_and_deviation(op: str) -> None:
    shape = f"shape = [{COUNT}]," if op == "RandomNormal" else ""
    operand = "" if op == "RandomNormal" else "x"
    y = y_of(f"y = {op}<{shape} mean = 5.0, scale = 2.0, dtype = 11>({operand})", x=X)
    assert y.dtype == np.float64 and abs(y.mean() - 5) < 0.06 and abs(y.std() - 2) < 0.05
    within = np.mean(np.abs(y - 5) < 2)
    assert abs(within - 0.6827) < 0.015 and np.isfinite(y).all()


def test_runs_differ_and_seeds_repeat_them() -> None:
    body = "y = RandomUniformLike<seed = 7.0>(x)"
    model, other = model_of(body), model_of(body)
    first, second = model({"x": X})["y"], model({"x": X})["y"]
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(other({"x": X})["y"], first)
    assert not np.array_equal(y_of("y = RandomUniformLike(x)", x=X), y_of("y = RandomUniformLike(x)", x=X))


def test_nodes_without_a_seed_draw_different_numbers() -> None:
    body = "a = RandomUniformLike(x) b = RandomUniformLike(x) y = Sub(a, b)"
    assert y_of(body, x=X).std() > 0.3


def test_probabilities_of_bernoulli_and_multinomial() -> None:
    y = y_of("y = Bernoulli<seed = 2.0>(x)", 22, x=X)
    assert set(np.unique(y)) == {0, 1} and abs(y.mean() - 0.25) < 0.02
    logits = np.log(np.array([[0.1, 0.2, 0.3, 0.4]], np.float32))
    y = y_of(f"y = Multinomial<sample_size = {COUNT}, dtype = 7>(x)", x=logits)
    shares = np.bincount(y.reshape(-1), minlength=4) / COUNT
    assert y.shape == (1, COUNT) and np.abs(shares - [0.1, 0.2, 0.3, 0.4]).max() < 0.015


def test_dropout_of_training_keeps_the_mean() -> None:
    model = parser.parse_model("""<ir_version: 10, opset_import: ["" : 13]>
        g (float[n, 4] x, bool t) => (float[n, 4] y, bool[n, 4] kept) <float r = {0.25}> {
            y, kept = Dropout<seed = 5>(x, r, t)
        }""")
    results = on_headrace(model, {"x": X, "t": np.array(True)})
    assert abs(results["kept"].mean() - 0.75) < 0.02 and abs(results["y"].mean() - 0.25) < 0.01
    np.testing.assert_allclose(results["y"][results["kept"]], 0.25 / 0.75, rtol=1e-6)
    results = on_headrace(model, {"x": X, "t": np.array(False)})
    assert results["kept"].all() and np.array_equal(results["y"], X)
