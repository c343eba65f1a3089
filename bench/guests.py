"""What a WebAssembly guest's calls cost beside headrace.load: a graph of one sum, and MiniLM with 128 tokens.

    python bench/guests.py [--rounds N]

The guest is a core module under wasmtime, whose loop sets the inputs, computes and reads an output. Both use
one thread; rounds alternate, and the best of each counts.
"""

from __future__ import annotations

import argparse
import struct
import sys
import tempfile
import time
from pathlib import Path

import headrace
import numpy as np
import onnx
import wasmtime
from headrace.wasm import WasiNn, find_library
from minilm.model import model_file
from minilm.onnx_model import build_onnx
from onnx import TensorProto, helper

TENSORS, SHAPES, DATA, OUTPUT, PAGES = 256, 512, 1024, 65536, 16
NUMBERS = {"float32": 1, "int64": 5}


def module(inputs: int) -> str:
    """A guest that computes `count` times: with inputs and an output, or without."""
    set_inputs = "".join(
        f"(drop (call $set_input (local.get $context) (i32.const {i}) (i32.const {TENSORS + 32 * i})))"
        for i in range(inputs)
    )
    compute = "(drop (call $compute (local.get $context)))"
    get = f"(drop (call $get_output (local.get $context) (i32.const 0) (i32.const {OUTPUT}) (i32.const {OUTPUT}) (i32.const 0)))"  # noqa: E501

    def loop(name: str, body: str) -> str:
        return f"""(func (export "{name}") (param $context i32) (param $count i32)
          (loop $again {body}
            (local.set $count (i32.sub (local.get $count) (i32.const 1)))
            (br_if $again (local.get $count))))"""

    return f"""(module
      (import "wasi_ephemeral_nn" "load_by_name" (func $load (param i32 i32 i32) (result i32)))
      (import "wasi_ephemeral_nn" "init_execution_context" (func $open (param i32 i32) (result i32)))
      (import "wasi_ephemeral_nn" "set_input" (func $set_input (param i32 i32 i32) (result i32)))
      (import "wasi_ephemeral_nn" "compute" (func $compute (param i32) (result i32)))
      (import "wasi_ephemeral_nn" "get_output" (func $get_output (param i32 i32 i32 i32 i32) (result i32)))
      (memory (export "memory") {PAGES})
      (func (export "open") (result i32)
        (drop (call $load (i32.const 16) (i32.const 5) (i32.const 0)))
        (drop (call $open (i32.load (i32.const 0)) (i32.const 0)))
        (i32.load (i32.const 0)))
      {loop("computes", compute)}
      {loop("runs", set_inputs + compute + get)})"""


class Guest:
    def __init__(self, path: Path, inputs: list[np.ndarray]) -> None:
        self._nn = WasiNn(find_library(), {"n_threads": 1, "model_aliases": {"model": str(path)}})
        engine = wasmtime.Engine()
        self._store = wasmtime.Store(engine)
        linker = wasmtime.Linker(engine)
        self._nn.define(linker)
        instance = linker.instantiate(self._store, wasmtime.Module(engine, module(len(inputs))))
        self._exports = instance.exports(self._store)
        memory = self._exports["memory"]
        memory.write(self._store, b"model", 16)
        data = DATA
        for i, value in enumerate(inputs):
            shape = SHAPES + 32 * i
            memory.write(self._store, struct.pack(f"<{value.ndim}I", *value.shape), shape)
            memory.write(self._store, value.tobytes(), data)
            fields = (shape, value.ndim, NUMBERS[value.dtype.name], data, value.nbytes)
            memory.write(self._store, struct.pack("<5I", *fields), TENSORS + 32 * i)
            data += value.nbytes + 64
        self._context = self._exports["open"](self._store)
        self.loop("runs", 1)

    def loop(self, name: str, count: int) -> None:
        self._exports[name](self._store, self._context, count)

    def output(self) -> np.ndarray:
        memory = self._exports["memory"]
        size = struct.unpack("<I", bytes(memory.read(self._store, 0, 4)))[0]
        return np.frombuffer(bytes(memory.read(self._store, OUTPUT, OUTPUT + size)), np.float32)


def compare(title: str, path: Path, inputs: dict[str, np.ndarray], count: int, rounds: int) -> None:
    native = headrace.load(path, device="cpu", threads=1)
    guest = Guest(path, list(inputs.values()))
    expected = next(iter(native(inputs).values())).ravel()
    if not np.array_equal(guest.output(), expected):
        sys.exit(f"{title}: the guest's output is another")

    def natively(calls: int) -> None:
        for _ in range(calls):
            native(inputs)

    ways = {
        "headrace.load": natively,
        "guest, compute alone": lambda calls: guest.loop("computes", calls),
        "guest, with inputs and output": lambda calls: guest.loop("runs", calls),
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way(count)
            best[name] = min(best[name], (time.perf_counter() - start) / count * 1e6)
    print(title)
    for name, microseconds in best.items():
        print(f"  {name:30} {microseconds:10.1f} us")


def sum_model(folder: Path) -> Path:
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "sum", value[:1], value[1:])
    path = folder / "sum.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compare("a sum of 4 numbers", sum_model(folder), {"x": np.ones(4, np.float32)}, 500, rounds)
        minilm = folder / "minilm.onnx"
        onnx.save(build_onnx(model_file("model.safetensors")), minilm)
        ids = np.random.default_rng(1).integers(1000, 30000, (1, 128))
        tokens = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        compare("MiniLM, 128 tokens", minilm, tokens, 5, rounds)


if __name__ == "__main__":
    main()
