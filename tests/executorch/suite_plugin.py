"""A pytest plugin that runs the operator tests of ExecuTorch's own wheel against our backend.

    pytest -p suite_plugin --pyargs executorch.backends.test.suite.operators

Adds the flow "ggml" and leaves the others out, compares with tolerances that mean something (the suite's
default is 0.1), also runs the tests of NaN and infinities, and writes a line for each program to
$EXECUTORCH_SUITE_RESULTS: result, ops delegated and left. A run of the whole suite fails when fewer tests
than LEAST_WHOLE pass with everything delegated.
"""

from __future__ import annotations

import json
import os
import unittest
from typing import Any

import executorch.backends.test.suite.flow as flow
import executorch.backends.test.suite.runner as runner
from executorch.backends.test.harness import Tester, stages
from executorch.backends.test.harness.stages import StageType
from executorch.exir import EdgeCompileConfig
from executorch_ggml import GgmlPartitioner

ATOL, RTOL = 1e-4, 1e-3
SUITE, LEAST_WHOLE = 467, 440  # tests of the pinned wheel
RESULTS = os.environ.get("EXECUTORCH_SUITE_RESULTS", "build/executorch_suite.jsonl")
results: list[dict[str, Any]] = []


class _Lower(stages.ToEdgeTransformAndLower):
    def __init__(self, partitioners: Any = None, edge_compile_config: Any = None) -> None:
        super().__init__(
            default_partitioner_cls=GgmlPartitioner,
            partitioners=partitioners,
            edge_compile_config=edge_compile_config or EdgeCompileConfig(_check_ir_validity=False),
        )


class _Partition(stages.Partition):
    def __init__(self, partitioner: Any = None) -> None:
        super().__init__(partitioner=partitioner or GgmlPartitioner())


class _Tester(Tester):
    __test__ = False

    def __init__(self, module: Any, example_inputs: Any, dynamic_shapes: Any = None, **options: Any) -> None:
        ours = {StageType.TO_EDGE_TRANSFORM_AND_LOWER: _Lower, StageType.PARTITION: _Partition}
        super().__init__(
            module=module,
            stage_classes=Tester.default_stage_classes() | ours,
            example_inputs=example_inputs,
            dynamic_shapes=dynamic_shapes,
            **options,
        )

    def run_method_and_compare_outputs(self, *args: Any, **options: Any) -> Any:
        return super().run_method_and_compare_outputs(*args, **(options | {"atol": ATOL, "rtol": RTOL}))


_run_test = runner.run_test


def _recorded(*args: Any, **options: Any) -> Any:
    summary = _run_test(*args, **options)
    results.append(
        {
            "name": summary.name,
            "result": summary.result.to_short_str(),
            "detail": summary.result.to_detail_str(),
            "delegated": dict(summary.delegated_op_counts or {}),
            "left": dict(summary.undelegated_op_counts or {}),
            "error": str(summary.error)[:300] if summary.error else None,
        }
    )
    with open(RESULTS, "a") as file:  # at once, so that a run that is stopped leaves what it found
        file.write(json.dumps(results[-1]) + "\n")
    return summary


runner.run_test = _recorded


_skip = unittest.skip


def _skip_in_place(reason: str) -> Any:
    """Runs the tests of NaN and infinities, which the suite skips. Functions in place stay out: ExecuTorch
    also returns the inputs that a program changes, and the suite counts outputs."""
    return _skip(reason) if reason.startswith("In place") else lambda test: test


unittest.skip = _skip_in_place  # before the suite's tests are imported
flow.all_flows = lambda: {"ggml": flow.TestFlow("ggml", backend="ggml", tester_factory=_Tester)}


def pytest_configure() -> None:
    os.makedirs(os.path.dirname(RESULTS) or ".", exist_ok=True)
    open(RESULTS, "w").close()


def _is_whole(result: dict[str, Any]) -> bool:
    return bool(result["delegated"]) and not result["left"] and result["result"] == "Pass"


def _whole_tests() -> tuple[int, int]:
    """Those that passed with everything delegated, and all; a test runs one or more programs."""
    cases: dict[str, list[bool]] = {}
    for result in results:
        cases.setdefault(result["name"], []).append(_is_whole(result))
    return sum(all(programs) for programs in cases.values()), len(cases)


def pytest_sessionfinish(session: Any) -> None:
    if session.testscollected >= SUITE and results and _whole_tests()[0] < LEAST_WHOLE:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter: Any) -> None:
    whole, cases = _whole_tests()
    terminalreporter.write_line(f"{cases} tests, {len(results)} programs at atol {ATOL}, rtol {RTOL}")
    wanted = f"wanted are {LEAST_WHOLE} of {SUITE}"
    terminalreporter.write_line(f"passed with everything delegated: {whole} tests ({wanted}); {RESULTS}")
