"""A pytest plugin that runs the operator tests of ExecuTorch's own wheel against our backend.

    pytest -p suite_plugin --pyargs executorch.backends.test.suite.operators

Adds the flow "ggml" and leaves the others out, compares with tolerances that mean something (the suite's
default is 0.1), and writes a line for each test to $EXECUTORCH_SUITE_RESULTS: result, ops delegated and left.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any

import executorch.backends.test.suite.flow as flow
import executorch.backends.test.suite.runner as runner
from executorch.backends.test.harness import Tester, stages
from executorch.backends.test.harness.stages import StageType
from executorch.exir import EdgeCompileConfig
from executorch_ggml import GgmlPartitioner

ATOL, RTOL = 1e-4, 1e-3
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
    return summary


runner.run_test = _recorded
flow.all_flows = lambda: {"ggml": flow.TestFlow("ggml", backend="ggml", tester_factory=_Tester)}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    with open(RESULTS, "w") as file:
        file.writelines(json.dumps(result) + "\n" for result in results)
    counts = Counter(result["detail"] for result in results)
    whole = sum(bool(r["delegated"]) and not r["left"] and r["result"] == "Pass" for r in results)
    terminalreporter.write_line(f"{len(results)} operator tests at atol {ATOL}, rtol {RTOL}: {dict(counts)}")
    terminalreporter.write_line(f"passed with everything delegated: {whole}; details: {RESULTS}")
