"""What a WebAssembly guest's calls cost beside headrace.load: a graph of one sum, and MiniLM with 128 tokens;
and of a component a sum and a product, and MiniLM, also in Node where JCO_FOLDER names jco's folder.

    python bench/guests.py [--rounds N]

The guests run under wasmtime. A core module's loop sets the inputs, computes and reads an output; a
component's makes a tensor of each input, computes, reads the outputs and drops them. All use one thread;
rounds alternate, and the best of each counts.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import headrace
import numpy as np
import onnx
import wasm_chat
import wasmtime
from component_fuzz import DATA as VALUES
from component_fuzz import INPUTS, NAMES, SHAPE, sums
from component_guest import FUNCTIONS, RESULT, text
from component_guest import Guest as ComponentGuest
from headrace._wasi_nn import Backend
from headrace.wasm import WasiNn, find_library
from minilm.model import model_file
from minilm.onnx_model import build_onnx
from onnx import TensorProto, helper

TENSORS, SHAPES, DATA, OUTPUT, PAGES = 256, 512, 1024, 65536, 16
NUMBERS = {"float32": 1, "int64": 5}
#: Where a component has its model's name.
LOAD = 448
RUNNER = wasm_chat.ROOT / "tests/wasm/component_runner.mjs"


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


#: Of wasi:nn's tensors.
TYPES = {"float32": 1, "int64": 6}


class Component:
    """A component that computes `count` times with tensors of its own, whose model is the alias `model`. It
    drops all outputs, and reads the first ones before, `read`."""

    def __init__(self, inputs: dict[str, np.ndarray], outputs: int, read: int) -> None:
        self._contents = {LOAD: b"model"}
        makes, at = "", VALUES
        for i, (name, value) in enumerate(inputs.items()):
            shape, called = SHAPE + 32 * i, NAMES + 32 * i
            self._contents[called] = name.encode()
            self._contents[shape] = struct.pack(f"<{value.ndim}I", *value.shape)
            self._contents[at] = value.tobytes()
            self._contents[INPUTS + 12 * i] = struct.pack("<2I", called, len(name))
            makes += f"""(i32.store (i32.const {INPUTS + 12 * i + 8}) (call $new (i32.const {shape})
              (i32.const {value.ndim}) (i32.const {TYPES[value.dtype.name]}) (i32.const {at})
              (i32.const {value.nbytes})))"""
            at += (value.nbytes + 63) // 64 * 64
        reads = "".join(
            f"(call ${'read' if i < read else 'leave'} "
            f"(i32.add (i32.load (i32.const {RESULT + 4})) (i32.const {12 * i + 8})))"
            for i in range(outputs)
        )
        self.binary = bytes(wasmtime.wat2wasm(text(self._loop(makes, len(inputs), reads))))

    @staticmethod
    def _loop(makes: str, inputs: int, reads: str) -> str:
        return f"""
      (core module $loops
        (import "nn" "tensor-new" (func $new (param i32 i32 i32 i32 i32) (result i32)))
        (import "nn" "compute" (func $compute (param i32 i32 i32 i32)))
        (import "nn" "tensor-data" (func $data (param i32 i32)))
        (import "nn" "drop-tensor" (func $drop (param i32)))
        (import "nn" "memory" (memory 1))
        (func $read (param $at i32)
          (call $data (i32.load (local.get $at)) (i32.const {RESULT + 32}))
          (call $leave (local.get $at)))
        (func $leave (param $at i32) (call $drop (i32.load (local.get $at))))
        (func (export "loop") (param $context i32) (param $count i32)
          (loop $again
            {makes}
            (call $compute
              (local.get $context) (i32.const {INPUTS}) (i32.const {inputs}) (i32.const {RESULT}))
            {reads}
            (local.set $count (i32.sub (local.get $count) (i32.const 1)))
            (br_if $again (local.get $count)))))
      (core instance $looping (instantiate $loops (with "nn" (instance
        (export "memory" (memory $bytes))
        (export "tensor-new" (func $tensor-new)) (export "compute" (func $compute))
        (export "tensor-data" (func $tensor-data)) (export "drop-tensor" (func $drop-tensor))))))
      (alias core export $looping "loop" (core func $loop))
      (func (export "loop") (param "context" u32) (param "count" u32) (canon lift (core func $loop)))"""

    def program(self) -> tuple[list, int]:
        """Steps that open a context, and the number of the one that gives it."""
        steps = [["put", at, content.hex()] for at, content in self._contents.items()]
        loaded = len(steps)
        steps.append(["call", "load-by-name", [LOAD, 5, RESULT]])
        return [*steps, ["call", "graph-open", [{"of": loaded}, RESULT]]], loaded + 1

    def under_wasmtime(self, config: dict) -> Callable[[int], object]:
        guest = ComponentGuest(Backend(find_library(), config), self.binary)
        steps, context = self.program()
        guest.run(steps)
        return lambda count: guest.invoke("loop", guest.handles[context], count)

    def in_node(self, config: dict, count: int, rounds: int) -> float | None:
        """Microseconds a call in the best round, where jco and Node's headers are installed."""
        if not os.environ.get("JCO_FOLDER"):
            return None
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "component.wasm").write_bytes(self.binary)
            steps, context = self.program()
            wanted = {
                "functions": {key: f.gives for key, f in FUNCTIONS.items()},
                "programs": [steps],
                "mostBytes": 1 << 30,
                "loop": {"of": context, "count": count, "rounds": rounds},
            }
            (folder / "programs.json").write_text(json.dumps(wanted))
            addon, (node, _) = wasm_chat.compile_addon(folder / "addon.node"), wasm_chat.find_node()
            command = [node, "--no-warnings", RUNNER, addon, find_library(), json.dumps(config)]
            files = [folder / "component.wasm", folder / "programs.json"]
            done = subprocess.run([*command, *files], capture_output=True, text=True, check=True)
            return json.loads(done.stdout.splitlines()[-1])["microseconds"]


def compare_component(
    title: str, path: Path, inputs: dict[str, np.ndarray], count: int, rounds: int, read: int = 2
) -> None:
    """read: how many of its outputs the component reads."""
    native = headrace.load(path, device="cpu", threads=1)
    component = Component(inputs, len(native(inputs)), read)
    config = {"n_threads": 1, "model_aliases": {"model": str(path)}}
    loop = component.under_wasmtime(config)
    ways = {
        "headrace.load": lambda: [native(inputs) for _ in range(count)],
        "component": lambda: loop(count),
    }
    print(title)
    print_best(ways, count, rounds)
    microseconds = component.in_node(config, count, rounds)
    if microseconds is not None:
        print(f"  {'component in Node':30} {microseconds:10.1f} us")


def compare(title: str, path: Path, inputs: dict[str, np.ndarray], count: int, rounds: int) -> None:
    native = headrace.load(path, device="cpu", threads=1)
    guest = Guest(path, list(inputs.values()))
    expected = next(iter(native(inputs).values())).ravel()
    if not np.array_equal(guest.output(), expected):
        sys.exit(f"{title}: the guest's output is another")

    ways = {
        "headrace.load": lambda: [native(inputs) for _ in range(count)],
        "guest, compute alone": lambda: guest.loop("computes", count),
        "guest, with inputs and output": lambda: guest.loop("runs", count),
    }
    print(title)
    print_best(ways, count, rounds)


def print_best(ways: dict[str, Callable[[], object]], count: int, rounds: int) -> None:
    """Microseconds a call for each way, in its best round of `count` calls."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            best[name] = min(best[name], (time.perf_counter() - start) / count * 1e6)
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
        path = folder / "sums.onnx"
        path.write_bytes(sums())
        four = {"x": np.arange(4, dtype=np.float32).reshape(2, 2), "w": np.arange(2, dtype=np.float32)}
        compare_component("a sum and a product of 4 numbers, open shapes", path, four, 500, rounds)
        minilm = folder / "minilm.onnx"
        onnx.save(build_onnx(model_file("model.safetensors")), minilm)
        ids = np.random.default_rng(1).integers(1000, 30000, (1, 128))
        tokens = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        compare("MiniLM, 128 tokens", minilm, tokens, 5, rounds)
        for read, what in ((1, "that reads its vector"), (2, "that reads its 196,608 bytes of states, too")):
            compare_component(f"MiniLM, 128 tokens, a component {what}", minilm, tokens, 5, rounds, read)


if __name__ == "__main__":
    main()
