"""Arithmetic with open extents gives what arithmetic with the numbers gives, or no answer."""

from __future__ import annotations

import operator

import pytest
from headrace.onnx import coverage
from headrace.onnx.extents import Extent, Undecided, is_same, product
from hypothesis import given, settings
from hypothesis import strategies as st

SIZES = {"batch": 3, "seq": 5, "heads": 1}
OPERATIONS = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def number(extent: Extent | int) -> int:
    if isinstance(extent, int):
        return extent
    total = 0
    for monomial, factor in extent.terms.items():
        for name in monomial:
            factor *= SIZES[name]
        total += factor
    return total


leaves = st.one_of(st.integers(-4, 12), st.sampled_from(sorted(SIZES)).map(Extent.named))


@settings(max_examples=500, deadline=None, derandomize=True)
@given(leaves, st.lists(st.tuples(st.sampled_from(OPERATIONS), leaves), max_size=5), leaves)
def test_polynomials_agree_with_numbers(first, steps, other) -> None:
    value, exact = first, number(first)
    for operation, operand in steps:
        try:
            value, exact = operation(value, operand), operation(exact, number(operand))
        except (Undecided, ZeroDivisionError):
            continue
        assert number(value) == exact
    for compare in COMPARISONS:
        try:
            answer = compare(value, other)
        except Undecided:
            continue
        assert answer == compare(exact, number(other)), (value, other, compare)


def test_what_depends_on_the_sizes_has_no_answer() -> None:
    batch, seq = Extent.named("batch"), Extent.named("seq")
    for question in (
        lambda: batch == seq,
        lambda: seq < 4,
        lambda: seq // 2,
        lambda: seq % 3,
        lambda: 8 // seq,
    ):
        with pytest.raises(Undecided):
            question()
    assert not is_same(batch, seq) and is_same(batch * seq, seq * batch)
    assert product([batch, 4, seq]) // (seq * 2) == 2 * batch
    assert (batch + seq) - seq == batch and batch - batch == 0
    assert batch >= 1 and batch > 0 and not batch < 1 and batch != 0


def test_the_page_of_operators_follows_the_table() -> None:
    page = coverage.page()
    assert "| MatMul | yes |" in page and "| Loop |  |" in page
    assert "| NonZero | of constants |" in page and "com.microsoft.MatMulNBits" in page
    assert sum(line.endswith("| yes |") for line in page.splitlines()) >= 150
