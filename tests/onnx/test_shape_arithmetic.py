"""Exact quotients, quotients as floats, and what is learned of open dimensions."""

from __future__ import annotations

import math

import headrace
import numpy as np
import pytest
from headrace._core import Extent, Undecided
from headrace.onnx.polynomials import exact_quotient
from headrace.onnx.ranges import Ranges
from headrace.onnx.ratios import BINARY, COMPARISONS, UNARY, Ratio, either
from onnx import parser

N, BATCH = Extent.symbol("n"), Extent.symbol("batch")


@pytest.mark.parametrize(
    "divisor", [N - 1, (N - 1) * BATCH, N * N - 1, (N // 8 - N // 2) * (BATCH // 3 - N), Extent.symbol("m")]
)
def test_a_product_divides_by_its_factors_whatever_their_sign(divisor: Extent) -> None:
    product = divisor * (3 * N + BATCH - 5)
    assert exact_quotient(product, divisor) == 3 * N + BATCH - 5
    assert exact_quotient(product * 64, divisor * 16) == 4 * (3 * N + BATCH - 5)
    assert exact_quotient(product + 1, divisor) is None


def test_what_does_not_divide_has_no_exact_quotient() -> None:
    assert exact_quotient(N, 2) is None and exact_quotient(N, 0) is None
    assert exact_quotient(N, N + 1) is None and exact_quotient(0, N) == 0
    assert exact_quotient(12, 4) == 3 and exact_quotient(12, 5) is None


@pytest.mark.parametrize("n", [1, 2, 7, 10, 40, 180, 4095])
@pytest.mark.parametrize("factor", [0.5, 2.5, 0.375, 3.0, 160.0])
def test_ratios_are_rounded_as_floats_are(n: int, factor: float) -> None:
    def number(whole: Extent | int) -> int:
        return whole.evaluate({"n": n}) if isinstance(whole, Extent) else whole

    scaled = BINARY["Mul"](Ratio.of(N), Ratio.of(np.float32(factor)))
    product = float(np.float32(n) * np.float32(factor))
    assert number(UNARY["Floor"](scaled).floor()) == math.floor(product)
    assert number(UNARY["Ceil"](scaled).floor()) == math.ceil(product)
    assert number(UNARY["Neg"](scaled).toward_zero()) == -math.floor(product)


@pytest.mark.parametrize("factor", [0.65, 0.7, 1 / 3, 1e-3, 1e9])
def test_floats_that_products_with_extents_round_are_left_to_the_run(factor: float) -> None:
    with pytest.raises(Undecided):
        Ratio.of(np.float32(factor))


@pytest.mark.parametrize("n", [3, 4, 5, 9])
def test_comparisons_that_are_open_choose_when_the_numbers_are_known(n: int) -> None:
    for name, holds in (("Less", n < 5), ("Equal", n == 5), ("GreaterOrEqual", n >= 5)):
        chosen = either(COMPARISONS[name](N, 5), 2 * N, 7)
        assert chosen.evaluate({"n": n}) == (2 * n if holds else 7)


def test_infinity_is_no_ratio() -> None:
    with pytest.raises(Undecided):
        Ratio.of(math.inf)


def test_windows_tell_the_least_values_of_symbols() -> None:
    ranges, samples = Ranges(), Extent.symbol("samples")
    conv = Extent.symbol("((samples-10)//5 + 1)", 1)
    assert (conv - 1).least < 0
    ranges.learn([conv])
    assert ranges.narrowed(samples).least == 10
    assert (ranges.narrowed(samples) - 10).least == 0
    falling = Extent.symbol("(20 - samples)", 1)
    ranges.learn([falling, 3, samples * BATCH])
    assert ranges.narrowed(samples).least == 10


def test_the_same_mask_counts_its_places_once() -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[n] x) => (float[k] y) {
        zero = Constant<value_floats = [0.0]>() m = Greater(x, zero) a = NonZero(m) b = NonZero(m)
        ta = Transpose(a) tb = Transpose(b) u = GatherND(x, ta) v = GatherND(x, tb) y = Add(u, v) }"""
    loaded = headrace.load(parser.parse_model(text), device="cpu")
    x = np.array([1, -2, 3, 0, 5], np.float32)
    np.testing.assert_array_equal(loaded(x)["y"], [2, 6, 10])
    assert loaded.outputs[0].shape == ["count1"]
