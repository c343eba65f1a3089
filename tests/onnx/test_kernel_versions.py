"""Every kernel of ONNX Runtime's CPU in its first and its last operator set, with each of its dtypes."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import operator_cases as cases
import pytest
from operator_cases_base import LARGEST_I8
from peers import assert_same, on_headrace, on_onnx_runtime

registry = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
if not hasattr(registry, "get_all_opkernel_def"):
    pytest.skip("this ONNX Runtime does not tell its kernels", allow_module_level=True)

NEWEST = 26  # ONNX Runtime takes no later operator set
EACH = 2  # variants that have the same dtypes and attributes
DTYPES = {
    "tensor(float)": np.dtype(np.float32),
    "tensor(double)": np.dtype(np.float64),
    "tensor(float16)": np.dtype(np.float16),
    "tensor(bool)": np.dtype(np.bool_),
    **{f"tensor({sign}int{n})": np.dtype(f"{sign}int{n}") for sign in ("", "u") for n in (8, 16, 32, 64)},
}
# What ONNX Runtime computes with its first input in such dtypes is no number of its own definition.
NOT_COMPARED = {
    ("Inverse", "f2"),  # computed in 16 bits there, in 32 here
    ("Pow", "i4"),  # 1 / 0 as an integer
    ("Pow", "i8"),
    ("QuantizeLinear", "f2"),  # quotients beyond 65504 become the least integer there, the largest here
    ("ReduceLogSumExp", "i4"),  # exponentials are rounded to integers before they are summed
    ("ReduceLogSumExp", "i8"),
    ("Resize", "i1"),  # with antialias, halves are rounded up there, to even here
    ("Sign", "f2"),  # of NaN: 0 there, NaN here, as in the other dtypes
}


#: Products of bytes, whose signed ones are made small enough for ONNX Runtime: see LARGEST_I8.
BYTE_PRODUCTS = {"ConvInteger", "DynamicQuantizeMatMul", "MatMulInteger", "MatMulIntegerToFloat"}


def _domain(one: Any) -> str:
    return "" if one.domain == "ai.onnx" else str(one.domain)


def _by_operator(entries: list[Any], name: str) -> dict[tuple[str, str], list[Any]]:
    found = defaultdict(list)
    for entry in entries:
        found[_domain(entry), getattr(entry, name)].append(entry)
    return found


KERNELS = _by_operator(
    [kernel for kernel in registry.get_all_opkernel_def() if kernel.provider == "CPUExecutionProvider"],
    "op_name",
)
SCHEMAS = _by_operator(registry.get_all_operator_schema(), "name")
BY_OPERATOR = defaultdict(list)
for _case in cases.CASES:
    if (_case.domain, _case.op) in KERNELS:
        BY_OPERATOR[_case.domain, _case.op].append(_case)


def _array(value: Any) -> np.ndarray:
    return np.asarray(value.value if isinstance(value, cases.Constant) else value)


def _holding(value: Any, array: np.ndarray) -> Any:
    """A constant where the value is one."""
    return cases.Constant(array) if isinstance(value, cases.Constant) else array


def _in_dtype(value: Any, dtype: np.dtype) -> Any:
    array = _array(value)
    return _holding(value, (np.abs(array) if dtype.kind == "u" else array).astype(dtype))


def _retyped(case: cases.Case, schema: Any, variable: str, dtype: np.dtype) -> cases.Case | None:
    """The case with the operands of one type variable in another dtype; None where it has no such operand."""
    formals = [schema.inputs[min(i, len(schema.inputs) - 1)].typeStr for i in range(len(case.inputs))]
    if variable not in [f for f, value in zip(formals, case.inputs, strict=True) if value is not None]:
        return None
    inputs = [
        _in_dtype(value, dtype) if value is not None and formal == variable else value
        for formal, value in zip(formals, case.inputs, strict=True)
    ]
    if case.op in BYTE_PRODUCTS:
        inputs = [value if value is None else _small_if_signed(value) for value in inputs]
    return dataclasses.replace(case, inputs=inputs)


def _small_if_signed(value: Any) -> Any:
    array = _array(value)
    if array.dtype != np.int8 or not array.ndim:
        return value
    return _holding(value, np.clip(array, -LARGEST_I8, LARGEST_I8))


def _variants(key: tuple[str, str]) -> Iterator[cases.Case]:
    for kernel in KERNELS[key]:
        first, last = kernel.version_range
        for version in [first] if key[0] else sorted({first, min(last, NEWEST)}):
            schemas = [schema for schema in SCHEMAS[key] if schema.since_version <= version]
            if not schemas:
                continue
            schema = max(schemas, key=lambda one: one.since_version)
            for case in BY_OPERATOR[key]:
                aged = case if key[0] else dataclasses.replace(case, opset=version)
                for variable, names in kernel.type_constraints.items():
                    for dtype in (DTYPES[name] for name in names if name in DTYPES):
                        variant = _retyped(aged, schema, variable, dtype)
                        if variant is not None:
                            yield variant


def _is_compared(case: cases.Case) -> bool:
    return (case.op, _array(case.inputs[0]).dtype.str[1:]) not in NOT_COMPARED


def _tolerance(case: cases.Case) -> float:
    is_half = any(value is not None and _array(value).dtype == np.float16 for value in case.inputs)
    return max(case.tolerance, 1e-3) if is_half else case.tolerance


def _kind(case: cases.Case) -> tuple[Any, ...]:
    dtypes = tuple("" if value is None else _array(value).dtype.str for value in case.inputs)
    return case.opset, dtypes, tuple(case.attributes)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("key", sorted(BY_OPERATOR), ids=lambda key: ".".join(key).strip("."))
def test_each_kernel_of_onnx_runtime_is_answered_alike_in_each_dtype(key: tuple[str, str]) -> None:
    tried: Counter[tuple[Any, ...]] = Counter()
    failures = []
    for case in filter(_is_compared, _variants(key)):
        if tried[_kind(case)] == EACH:
            continue
        try:
            model = case.model()
            expected = on_onnx_runtime(model, case.feeds)
        except Exception:  # another set's attributes and inputs, or a dtype that the kernel does not have
            continue
        tried[_kind(case)] += 1
        try:
            actual = on_headrace(model, case.feeds)
            for name, value in expected.items():
                assert_same(actual[name], value, _tolerance(case), case.ulps)
        except Exception as error:
            failures.append(f"{case.label}: {type(error).__name__}: {' '.join(str(error).split())[:400]}")
    assert not failures, f"{len(failures)} of {tried.total()}:\n" + "\n".join(failures[:12])


def test_all_kernels_but_few_are_compared() -> None:
    """A case whose operator set or dtype ONNX Runtime refuses proves nothing: how many do not."""
    compared = 0
    for key in BY_OPERATOR:
        compared += len({_kind(case) for case in filter(_is_compared, _variants(key))})
    assert len(BY_OPERATOR) >= 205
    assert compared >= 5000, compared
