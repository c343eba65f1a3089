"""The C++ tests, which "all" does not build and ctest so leaves out, and ggml's own test of a backend."""

from __future__ import annotations

import os
import re

import pytest
from mlx_programs import program, run

# ggml's test spends minutes on making the inputs of the largest cases of these ops; FULL=1 runs them all.
LARGE = {
    "MUL_MAT_ID": r"^(?!.*(n_mats=(1024|512|128)|m=(4096|2880)),)",
    "FLASH_ATTN_EXT": r"hsk=(40|65|80|96|128|512),",
    "MUL_MAT": None,
    "CONV_2D": None,
}
# Products, elementwise ops, activations, norms, attention, convolution, rows and copies.
MODEL_OPS = [
    "MUL_MAT",
    "MUL_MAT_ID",
    "ADD",
    "SUB",
    "MUL",
    "DIV",
    "SCALE",
    "SQR",
    "SQRT",
    "CLAMP",
    "SIN",
    "COS",
    "LOG",
    "RELU",
    "GELU",
    "SILU",
    "TANH",
    "SIGMOID",
    "REGLU",
    "GEGLU",
    "SWIGLU",
    "GEGLU_ERF",
    "GEGLU_QUICK",
    "SOFT_MAX",
    "NORM",
    "RMS_NORM",
    "GROUP_NORM",
    "L2_NORM",
    "ROPE",
    "FLASH_ATTN_EXT",
    "CONV_2D",
    "CONV_2D_DW",
    "CONV_3D",
    "CONV_TRANSPOSE_1D",
    "CONV_TRANSPOSE_2D",
    "IM2COL",
    "POOL_2D",
    "GET_ROWS",
    "SET_ROWS",
    "CPY",
    "CONT",
    "CONCAT",
    "ARGSORT",
]


@pytest.mark.parametrize("name", ["backends_mlx_test", "mlx_models_test", "mlx_graphs_test"])
def test_every_test_of_the_program_passes(name):
    result = run([program(name)], timeout=900)
    assert result.returncode == 0, result.stdout[-6000:]
    assert int(re.search(r"\[  PASSED  \] (\d+) test", result.stdout)[1]) > 0


def check_ops(library, *arguments):
    result = run([program("test-backend-ops"), "test", "-b", "MLX0", *arguments], library, timeout=3600)
    failed = [line for line in result.stdout.splitlines() if "FAIL" in line]
    assert not failed, "\n".join(failed[:20])
    assert result.returncode == 0, result.stdout[-3000:]
    found = re.search(r"(\d+)/(\d+) tests passed", result.stdout)
    assert found and found[1] == found[2] and int(found[1]) > 0, result.stdout[-500:]


@pytest.fixture(scope="module")
def supported(library):
    """Every case of ggml's test: its op, and whether the device takes it."""
    output = run([program("test-backend-ops"), "support", "-b", "MLX0", "--output", "csv"], library).stdout
    rows = re.findall(r'^"MLX0","([^"]+)","[^"]*","support","(\d)"', output, re.MULTILINE)
    assert len(rows) > 10000
    return [(op, taken == "1") for op, taken in rows]


def share(rows):
    return sum(taken for _, taken in rows) / len(rows)


def test_the_device_takes_most_cases(supported):
    assert share(supported) >= 0.95


def test_the_device_takes_nine_of_ten_cases_of_the_ops_that_models_need(supported):
    rows = [row for row in supported if row[0] in MODEL_OPS]
    assert {op for op, _ in rows} == set(MODEL_OPS)
    assert share(rows) >= 0.9


@pytest.mark.parametrize("op", LARGE)
def test_ggmls_cases_of_a_large_op_pass(library, op):
    if not os.environ.get("HEADRACE_MLX_OPS"):
        pytest.skip("ggml's test-backend-ops takes half an hour: make test-mlx runs it")
    full = os.environ["HEADRACE_MLX_OPS"] == "full"
    check_ops(library, "-o", op, *([] if full or not LARGE[op] else ["-p", LARGE[op]]))


def test_ggmls_cases_of_all_other_ops_pass(library, supported):
    if not os.environ.get("HEADRACE_MLX_OPS"):
        pytest.skip("ggml's test-backend-ops takes half an hour: make test-mlx runs it")
    ops = sorted({op for op, taken in supported if taken} - set(LARGE))
    check_ops(library, "-o", ",".join(ops))
