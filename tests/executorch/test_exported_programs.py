"""Whatever torch.export gives lowers, loads from a file and gives eager's values."""

from __future__ import annotations

import copy

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import torch
from executorch.runtime import Runtime
from executorch_ggml import _runtime
from program_cases import GROUPS

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)

CASES = [(group, name) for group, cases in GROUPS.items() for name in cases]


def as_list(results) -> list:
    return list(results) if isinstance(results, (tuple, list)) else [results]


@pytest.mark.parametrize(("group", "name"), CASES)
def test_a_program_of_a_few_ops(group, name, lower, tmp_path):
    case = GROUPS[group][name]
    torch.manual_seed(0)
    module = case.module()
    eager = copy.deepcopy(module)
    program = lower(module, case.inputs, dynamic_shapes=case.dynamic_shapes(), core_only=False)
    if case.left is not None:
        assert program.delegates == 1
        assert program.left == list(case.left)
    (tmp_path / "model.pte").write_bytes(program.buffer)  # empty constants fail in mapped files only
    method = Runtime.get().load_program(str(tmp_path / "model.pte")).load_method("forward")
    for inputs in (case.inputs, *case.others):
        with torch.no_grad():
            expected = as_list(eager(*copy.deepcopy(inputs)))
        actual = method.execute(list(copy.deepcopy(inputs)))
        for ours, theirs in zip(actual, expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5, equal_nan=True)
