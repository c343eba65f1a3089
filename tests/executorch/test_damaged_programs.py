"""Programs whose delegate was damaged: errors of ExecuTorch, never a crash."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import numpy as np
import torch
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.backend.backend_details import PreprocessResult
from executorch.runtime import Runtime
from executorch_ggml import GgmlBackend, _runtime
from headrace._core import GraphWriter, graph_to_bytes
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


# --- blobs made to be wrong, in programs that are sound around them -------------------------------------

# ExecuTorch's codes.
INVALID_ARGUMENT, INVALID_PROGRAM, INVALID_EXTERNAL_DATA, INVALID_COMPATIBILITY = 0x12, 0x23, 0x24, 0x30


@pytest.fixture
def replace(lower, monkeypatch):
    """The program of relu over f32[2, 3] with a delegate of another content, whose weights are `data`."""

    def make(blob: bytes, data: dict[str, bytes] | None = None) -> bytes:
        store = NamedDataStore()
        for key, content in (data or {}).items():
            store.add_named_data(key, content, alignment=64)
        result = PreprocessResult(processed_bytes=blob, data_store_output=store.get_named_data_store_output())
        monkeypatch.setattr(GgmlBackend, "preprocess", staticmethod(lambda program, specs: result))
        program = lower(nn.ReLU(), (torch.randn(2, 3),))
        assert program.delegates == 1
        return program.buffer

    return make


def negated(dtype: str = "f32", shape: tuple = (2, 3), name: str = "in0", results: int = 1) -> bytes:
    writer = GraphWriter()
    (y,) = writer.op("neg", [writer.input(name, dtype, list(shape))], {}, "")
    for i in range(results):
        writer.output(f"out{i}", y)
    return graph_to_bytes(writer.finish())


def scaled(key: str = "scale") -> bytes:
    writer = GraphWriter()
    scale = writer.constant("f32", [3], np.ones(3, np.float32).view(np.uint8), key)
    (y,) = writer.op("mul", [writer.input("in0", "f32", [2, 3]), scale], {}, "")
    writer.output("out0", y)
    return graph_to_bytes(writer.finish())


def assert_error(capfd: pytest.CaptureFixture, code: int, cause: str, run) -> None:
    """The code in the exception, and one line of ours in the log, with the cause."""
    capfd.readouterr()
    with pytest.raises(RuntimeError, match=rf"error:? 0x:?{code:x}\b"):
        run()
    printed = capfd.readouterr()
    (line,) = [line for line in (printed.out + printed.err).splitlines() if "] GgmlBackend: " in line]
    assert cause in line


def load(buffer: bytes):
    return Runtime.get().load_program(buffer).load_method("forward")


def test_a_sound_blob_of_another_op_runs(replace):
    """What the other tests change is the cause of their errors."""
    x = torch.randn(2, 3)
    for made, expected in (
        (replace(negated()), -x),
        (replace(scaled(), {"scale": np.full(3, 2, np.float32).tobytes()}), x * 2),
    ):
        torch.testing.assert_close(load(made).execute([x])[0], expected)


@pytest.mark.parametrize("place", ["magic", "version", "reserved", "size", "tables", "end"])
def test_a_blob_that_ends_early_is_an_invalid_program(replace, capfd, place):
    blob = negated()
    tables = int.from_bytes(blob[16:24], "little")
    ends = {"magic": 4, "version": 8, "reserved": 12, "size": 16, "tables": 32, "end": 32 + tables - 1}
    buffer = replace(blob[: ends[place]])
    assert_error(capfd, INVALID_PROGRAM, "the program cannot be loaded: ", lambda: load(buffer))


def test_a_blob_of_a_later_version_is_incompatible(replace, capfd):
    blob = bytearray(negated())
    blob[8:12] = (99).to_bytes(4, "little")
    buffer = replace(bytes(blob))
    assert_error(capfd, INVALID_COMPATIBILITY, "version 99", lambda: load(buffer))


LACKING = {
    "all": ({}, "the program brings no weights"),
    "one": ({"scales": bytes(12)}, "the program has no weights named 'scale'"),
}


@pytest.mark.parametrize("what", LACKING)
def test_weights_that_the_program_lacks_are_invalid_data(replace, capfd, what):
    data, cause = LACKING[what]
    buffer = replace(scaled(), data)
    assert_error(capfd, INVALID_EXTERNAL_DATA, cause, lambda: load(buffer))


def test_weights_of_another_size_are_an_invalid_program(replace, capfd):
    buffer = replace(scaled(), {"scale": bytes(8)})
    assert_error(capfd, INVALID_PROGRAM, "8 bytes, the graph expects 12", lambda: load(buffer))


MISMATCHES = {
    "input's dtype": (negated("i64"), "argument 0 has scalar type 6, the graph takes i64"),
    "input's rank": (negated(shape=(6,)), "input 'in0'"),
    "input's extents": (negated(shape=(3, 2)), "input 'in0'"),
    "input's place": (negated(name="in7"), "the graph takes argument 7, of 1 that are no results"),
    "result as input": (negated(name="in1"), "the graph takes argument 1, of 1 that are no results"),
    "too many results": (negated(results=2), "the graph takes argument 0, of 0 that are no results"),
    "far too many results": (negated(results=3), "called with 2 arguments, the graph makes 3 results"),
}


@pytest.mark.parametrize("what", MISMATCHES)
def test_a_blob_that_declares_other_arguments_than_its_program_is_refused_at_the_run(replace, capfd, what):
    blob, cause = MISMATCHES[what]
    method = load(kept := replace(blob))
    assert_error(capfd, INVALID_ARGUMENT, cause, lambda: method.execute([torch.randn(2, 3)]))
    assert kept  # the method reads it


def test_inputs_that_name_no_argument_are_an_invalid_program(replace, capfd):
    buffer = replace(negated(name="x"))
    assert_error(capfd, INVALID_PROGRAM, "input 'x' names no argument", lambda: load(buffer))
