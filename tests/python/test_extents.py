"""Arithmetic with open extents gives what arithmetic with the numbers gives, or no answer."""

from __future__ import annotations

import math
import operator

import pytest
from headrace._core import Extent, Undecided
from hypothesis import given, settings
from hypothesis import strategies as st

SIZES = {"batch": 3, "seq": 5, "heads": 1}
OPERATIONS = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def number(extent: Extent | int) -> int | None:
    return extent if isinstance(extent, int) else extent.evaluate(SIZES)


leaves = st.one_of(st.integers(-4, 12), st.sampled_from(sorted(SIZES)).map(Extent.symbol))


@settings(max_examples=500, deadline=None, derandomize=True)
@given(leaves, st.lists(st.tuples(st.sampled_from(OPERATIONS), leaves), max_size=5), leaves)
def test_expressions_agree_with_numbers(first, steps, other) -> None:
    value, exact = first, number(first)
    for operation, operand in steps:
        try:
            value, exact = operation(value, operand), operation(exact, number(operand))
        except (ValueError, ZeroDivisionError):  # of extents and of numbers, by 0
            continue
        assert number(value) == exact
    for compare in COMPARISONS:
        try:
            answer = compare(value, other)
        except Undecided:
            continue
        assert answer == compare(exact, number(other)), (value, other, compare)


def test_what_depends_on_the_sizes_has_no_answer() -> None:
    batch, seq = Extent.symbol("batch"), Extent.symbol("seq")
    for question in (lambda: batch == seq, lambda: seq < 4, lambda: seq // 2 == 1, lambda: bool(seq - 1)):
        with pytest.raises(Undecided):
            question()
    assert batch.equals(seq) is None and seq.is_less(4) is None
    assert batch * seq == seq * batch and batch * 4 * seq // (seq * 2) == 2 * batch
    assert (batch + seq) - seq == batch and batch - batch == 0
    assert batch >= 1 and batch > 0 and not batch < 1 and batch != 0


def test_an_extent_is_written_in_one_form() -> None:
    n = Extent.symbol("n", 2, 8)
    assert str(2 * (n + 1) // 2) == str(Extent.symbol("1 + n")) == "(n+1)"
    assert hash(n + 1) == hash(Extent.symbol("1 + n"))
    assert str(Extent.largest([n, 3])) == "Max(3, n)" and Extent.largest([n, 1]) == n
    assert (n.least, n.most) == (2, 8) and ((n // 2).least, (n // 2).most) == (1, 4)
    assert n.divided_up(2).evaluate({"n": 5}) == 3 and n.evaluate({}) is None
    assert (n + 1).told == ["(n+1)", "n"] and (n * n).symbols == ["n"]
    assert type(n - n) is int


def test_what_is_no_extent_is_refused() -> None:
    n = Extent.symbol("n")
    with pytest.raises(ValueError, match="n is divided by 0"):
        n // 0
    with pytest.raises(TypeError):
        n + 1.5
    with pytest.raises(ValueError, match=r"range 4\.\.3"):
        Extent.symbol("n", 4, 3)
    with pytest.raises(ValueError, match="64 terms"):
        math.prod((Extent.symbol(f"n{i}") + 1 for i in range(7)), start=Extent.symbol("n7") + 1)
