"""Programs whose delegate was damaged: errors of ExecuTorch, never a crash."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import torch
from executorch_ggml import _runtime
from torch import nn

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)

DAMAGES = 300
MAGIC = b"HDRGRAPH"

# Loads every variant in turn and says before each which it is, so that a crash can be told.
LOADER = """
import pathlib, sys, executorch_ggml
from executorch.runtime import Runtime
original, edits = pathlib.Path(sys.argv[1]).read_bytes(), eval(pathlib.Path(sys.argv[2]).read_text())
loaded = failed = 0
for number, edit in enumerate(edits):
    print(number, flush=True)
    content = bytearray(original)
    for at, byte in edit:
        content[at] = byte
    try:
        method = Runtime.get().load_program(bytes(content)).load_method("forward")
        loaded += method is not None
        failed += method is None
    except RuntimeError:
        failed += 1
print("loaded", loaded, "failed", failed)
"""


def blob_of(buffer: bytes) -> range:
    """The delegate's graph file in a program: header and tables."""
    begin = buffer.find(MAGIC)
    assert begin > 0
    return range(begin, begin + 32 + int.from_bytes(buffer[begin + 16 : begin + 24], "little"))


def edits(buffer: bytes) -> list[list[tuple[int, int]]]:
    """Bit flips, and ends that are zeros as after a lost write; the program around stays as it is."""
    rng = random.Random(1)
    blob = blob_of(buffer)
    made = []
    for i in range(DAMAGES):
        if i % 3:
            places = [rng.choice(blob) for _ in range(rng.choice((1, 1, 2, 8)))]
            made.append([(at, buffer[at] ^ 1 << rng.randrange(8)) for at in places])
        else:
            made.append([(at, 0) for at in range(rng.choice(blob), blob.stop)])
    return made


@pytest.fixture
def program(lower) -> bytes:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(-1))
    return lower(module, (torch.randn(2, 8),)).buffer


def test_a_damaged_delegate_is_refused_or_loads_and_never_crashes(program, tmp_path: Path):
    (tmp_path / "model.pte").write_bytes(program)
    (tmp_path / "edits").write_text(repr(edits(program)))
    done = subprocess.run(
        [sys.executable, "-c", LOADER, tmp_path / "model.pte", tmp_path / "edits"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"after variant {done.stdout.split()[-1:]}: {done.stderr[-2000:]}"
    counts = done.stdout.splitlines()[-1].split()
    assert int(counts[1]) + int(counts[3]) == DAMAGES
    assert int(counts[3]) > DAMAGES // 4  # else the damage hit nothing


def load(buffer: bytes):
    from executorch.runtime import Runtime

    return Runtime.get().load_program(buffer).load_method("forward")


def test_a_newer_version_of_the_graph_file_is_refused(program):
    at = program.find(MAGIC) + len(MAGIC)
    newer = bytearray(program)
    newer[at : at + 4] = (99).to_bytes(4, "little")
    with pytest.raises(RuntimeError):
        load(bytes(newer))


def test_weights_that_the_program_lacks_are_an_error(program):
    """The key in the program's table of named data no longer is the one that the delegate asks for."""
    key = b"0.weight-f32-"
    places = [i for i in range(len(program)) if program.startswith(key, i)]
    assert len(places) >= 2  # the delegate's name of it, and the table's
    renamed = program.replace(key, b"0.weighX-f32-", 1)
    with pytest.raises(RuntimeError):
        load(renamed)
