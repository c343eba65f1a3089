"""Attributes that are yes or no, with numbers that are neither 0 nor 1: as ONNX Runtime reads them."""

from __future__ import annotations

import numpy as np
import pytest
from operator_cases_base import MICROSOFT, Case
from peers import on_headrace, on_onnx_runtime
from random_cases_contrib import reals

RNG = np.random.default_rng(0)
IMAGE, MATRIX, AXES = reals(RNG, 1, 1, 5, 5), reals(RNG, 3, 3), np.array([1])
WINDOW = {"kernel_shape": [2, 2], "strides": [2, 2]}
HEADS = [reals(RNG, 1, 1, 3, 2) for _ in range(3)]
FLAT = [reals(RNG, 1, 3, 2) for _ in range(3)]
ANGLES = [reals(RNG, 1, 1, 2, 4), reals(RNG, 1, 2, 2), reals(RNG, 1, 2, 2)]
MEANS = [reals(RNG, 2, 3), *(reals(RNG, 3) for _ in range(3)), np.abs(reals(RNG, 3))]

# Only 1 is yes.
ONE = {
    "ReduceSum keepdims": ([MATRIX, AXES], {}),
    "ReduceSum noop_with_empty_axes": ([MATRIX], {}),
    "ReduceMax keepdims": ([MATRIX, AXES], {}),
    "ArgMax keepdims": ([MATRIX], {}),
    "TopK largest": ([reals(RNG, 5), np.array([2])], {}),
    "Unique sorted": ([np.array([3, 1, 3, 2])], {}),
    "MaxPool ceil_mode": ([IMAGE], WINDOW),
    "AveragePool ceil_mode": ([IMAGE], WINDOW),
    "Attention is_causal": (HEADS, {}),
    "RotaryEmbedding interleaved": (ANGLES, {}),
    "MultiHeadAttention unidirectional": (FLAT, {"num_heads": 1}),
}
# Any number but 0 is.
ANY = {
    "AveragePool count_include_pad": ([IMAGE], {**WINDOW, "pads": [1, 1, 0, 0]}),
    "Gemm transA": ([MATRIX, MATRIX], {}),
    "Trilu upper": ([MATRIX], {}),
    "ArgMax select_last_index": ([np.ones((2, 3), np.float32)], {}),
    "FusedMatMul transB": ([MATRIX, MATRIX], {}),
}
OF_MICROSOFT = ("MultiHeadAttention", "FusedMatMul")


def case(name: str, number: int) -> Case:
    op, flag = name.split()
    inputs, attributes = {**ONE, **ANY}[name]
    domain = MICROSOFT if op in OF_MICROSOFT else ""
    outputs = {"TopK": 2}.get(op, 1)
    return Case(op, inputs, 23, outputs, domain, {**attributes, flag: number})


@pytest.mark.parametrize("number", [-1, 2])
@pytest.mark.parametrize("name", [*ONE, *ANY])
def test_a_flag_of_another_number_is_what_onnx_runtime_takes_it_for(name: str, number: int) -> None:
    given = case(name, number)
    actual = on_headrace(given.model(), given.feeds)
    for key, expected in on_onnx_runtime(given.model(), given.feeds).items():
        assert actual[key].shape == expected.shape
        np.testing.assert_allclose(actual[key], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [*ONE, *ANY])
def test_the_samples_tell_yes_from_no(name: str) -> None:
    yes, no = (on_headrace(case(name, number).model(), case(name, number).feeds)["y0"] for number in (1, 0))
    assert yes.shape != no.shape or not np.allclose(yes, no)
