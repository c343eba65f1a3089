"""The C++ reader's operators: each computes what ONNX Runtime computes, as soon as it is registered."""

from __future__ import annotations

import numpy as np
import operator_cases as cases
import pytest
from native import OPERATORS, on_native, on_python, unread_operators
from peers import assert_same, on_onnx_runtime

BY_OPERATOR: dict[tuple[str, str], list[cases.Case]] = {}
for _case in cases.CASES:
    if not unread_operators(_case.model()):
        BY_OPERATOR.setdefault((_case.domain, _case.op), []).append(_case)


def _title(key: tuple[str, str]) -> str:
    return f"{key[0]}.{key[1]}" if key[0] else key[1]


def _failure(case: cases.Case, error: Exception) -> str:
    return f"{case.label}: {type(error).__name__}: {' '.join(str(error).split())[:600]}"


def _check(case: cases.Case, actual: dict[str, np.ndarray]) -> None:
    expected = on_onnx_runtime(case.model(), case.feeds)
    assert list(actual) == list(expected)
    for name in expected:
        assert_same(actual[name], expected[name], case.tolerance, case.ulps)


def test_operators_with_cases_are_registered() -> None:
    assert set(BY_OPERATOR) <= OPERATORS
    assert len(BY_OPERATOR) >= 100


@pytest.mark.parametrize("key", sorted(BY_OPERATOR), ids=_title)
def test_the_cpp_reader_computes_what_onnx_runtime_computes(key: tuple[str, str]) -> None:
    failures = []
    for case in BY_OPERATOR[key]:
        try:
            _check(case, on_native(case.model(), case.feeds))
        except Exception as error:
            failures.append(_failure(case, error))
    assert not failures, f"{len(failures)} of {len(BY_OPERATOR[key])} variants:\n" + "\n".join(failures[:8])


@pytest.mark.parametrize("key", sorted(BY_OPERATOR), ids=_title)
def test_the_cpp_reader_computes_what_is_known(key: tuple[str, str]) -> None:
    """Every case again with all its inputs constant."""
    failures = []
    for case in BY_OPERATOR[key]:
        constants = [cases.Constant(v) if isinstance(v, np.ndarray) else v for v in case.inputs]
        fixed = cases.Case(**(vars(case) | {"inputs": constants}))
        try:
            _check(case, on_native(fixed.model(), {}))
        except Exception as error:
            failures.append(_failure(case, error))
    assert not failures, f"{len(failures)} of {len(BY_OPERATOR[key])} variants:\n" + "\n".join(failures[:8])


@pytest.mark.parametrize("key", sorted(BY_OPERATOR), ids=_title)
def test_the_cpp_reader_keeps_open_dimensions_where_python_does(key: tuple[str, str]) -> None:
    """With every extent open it computes the same, or says what to fix; never less than the Python reader."""
    failures = []
    for case in BY_OPERATOR[key]:
        if not any(extent > 1 for value in case.feeds.values() for extent in value.shape):
            continue
        model = case.model(dims=True)
        try:
            try:
                actual = on_native(model, case.feeds)
            except ValueError as error:
                try:
                    on_python(model, case.feeds)
                except ValueError:
                    continue
                failures.append(f"{case.label}: Python reads it; {' '.join(str(error).split())[:500]}")
                continue
            _check(case, actual)
        except Exception as error:
            failures.append(_failure(case, error))
    assert not failures, f"{len(failures)} of {len(BY_OPERATOR[key])} variants:\n" + "\n".join(failures[:8])
