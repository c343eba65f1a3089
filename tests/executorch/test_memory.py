"""What a loaded program takes of the process's memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import torch.nn as nn
from executorch_ggml import _runtime

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)

# In a process of its own, whose memory nothing else changes.
MEASURE = """
import sys, torch, executorch_ggml
from executorch.runtime import Runtime

def resident():  # KiB of anonymous memory and of files' pages
    lines = dict(line.split(":") for line in open("/proc/self/status"))
    return sum(int(lines[name].split()[0]) for name in ("RssAnon", "RssFile"))

runtime, x = Runtime.get(), torch.ones(1, 1024)
before = resident()
method = runtime.load_program(sys.argv[1]).load_method("forward")
method.execute([x])
print(resident() - before)
"""


def test_weights_that_a_kernel_packs_are_in_memory_once(lower, tmp_path):
    import torch

    layers = [nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024), nn.ReLU(), nn.Linear(1024, 4096)]
    program = lower(nn.Sequential(*layers), (torch.ones(1, 1024),))
    path = tmp_path / "mlp.pte"
    path.write_bytes(program.buffer)
    command = [sys.executable, "-W", "ignore", "-c", MEASURE, str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    kib = int(printed.split()[-1])
    weights = 3 * 4096 * 1024 * 4 / 1024
    assert 0.9 * weights <= kib <= 1.2 * weights
