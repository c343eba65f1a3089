"""Events of a profiled run: one for each node of a delegate."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import torch
import torch.nn as nn
from executorch_ggml import _runtime

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)


def test_a_profiled_run_tells_each_nodes_time_by_its_name_in_the_program(lower, tmp_path):
    import executorch.extension.pybindings.portable_lib as runtime
    from executorch.devtools import Inspector

    model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Softmax(-1), nn.Linear(128, 8))
    x = torch.randn(16, 64)
    program = lower(model, (x,))
    module = runtime._load_for_executorch_from_buffer(program.buffer, enable_etdump=True)
    for _ in range(3):
        result = module.run_method("forward", (x,))[0]
    torch.testing.assert_close(result, model(x), rtol=1e-4, atol=1e-5)
    path = tmp_path / "run.etdp"
    module.write_etdump_result_to_file(str(path))

    events = {e.name: e for block in Inspector(etdump_path=str(path)).event_blocks for e in block.events}
    delegated = {name: e for name, e in events.items() if e.is_delegated_op}
    assert set(delegated) == {"aten_linear_default", "aten__softmax_default", "aten_linear_default_1"}
    assert all(len(e.perf_data.raw) == 3 and e.perf_data.min > 0 for e in delegated.values())
    total = sum(e.perf_data.min for e in delegated.values())
    assert total <= events["DELEGATE_CALL"].perf_data.max
