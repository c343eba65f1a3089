"""Components that pass wrong lists, strings, records, handles, types and sizes; `make fuzz` makes as many as
go into a time. Whatever a guest passes, it gets an answer or an error, or is ended; its host goes on.

    python tests/wasm/component_fuzz.py [--seconds N] [--seed N]
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import sys
import time
from pathlib import Path
from typing import Any

import wasmtime
from component_guest import DROPS, FUNCTIONS, PAGES, RESULT, BrokenHostError, Guest, text
from headrace._wasi_nn import Backend, find_library

NAMES, SHAPE, INPUTS, BUILDERS, DATA, MODEL = 256, 512, 640, 768, 1024, 4096
SIZE = PAGES * 65536
NUMBERS = [
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    9,
    16,
    255,
    65535,
    SIZE - 1,
    SIZE,
    SIZE + 1,
    2**31 - 1,
    2**31,
    2**32 - 4,
    2**32 - 1,
]
#: In a number that is no handle of either host.
NO_HANDLE = 4096
TEXTS = [
    b"x",
    b"w",
    b"sums",
    b"chat",
    b"prompt",
    b"parameters",
    b"{}",
    b"",
    b"\xff\xfe",
    b"../x",
    b"a\0b",
    b"y" * 200,
]
PARAMETERS = [
    b"{}",
    b"",
    b'{"n_predict": 2}',
    b'{"temperature": "hot"}',
    b"[1]",
    b"{",
    b'{"n_predict": -1e99}',
]
#: As a guest sees the calls that give a handle, by what they give.
GIVES = {
    "tensor-new": "tensor", "load": "graph", "load-by-name": "graph", "graph-open": "context",
    "conversation-open": "conversation", "conversation-ask": "answer",
}  # fmt: skip
#: What the first number of each call is a handle of.
TAKES = {
    "tensor-dimensions": "tensor", "tensor-ty": "tensor", "tensor-data": "tensor", "compute": "context",
    "graph-open": "graph", "conversation-open": "graph", "conversation-ask": "conversation",
    "answer-next": "answer",
    "answer-metadata": "answer", "answer-cancel": "answer", "error-code": "error", "error-data": "error",
}  # fmt: skip


class Program:
    """Steps that mostly make sense, with some numbers changed."""

    def __init__(self, seed: int, sums: bytes) -> None:
        self._random = random.Random(seed)
        self._made: dict[str, list[int]] = {}
        self.steps: list[Any] = []
        self._put(MODEL, sums)
        self._sums = len(sums)
        if self._random.random() < 0.8:
            self._load()
            self._call("graph-open", self._handle("graph"), RESULT)
        for _ in range(self._random.randint(2, 14)):
            self._random.choice(
                [*[self._load, self._tensor, self._compute, self._talk] * 3, self._any, self._drop]
            )()

    def _put(self, at: int, content: bytes) -> None:
        self.steps.append(["put", at, content.hex()])

    def _number(self) -> int:
        return self._random.choice([*NUMBERS, self._random.randrange(2**32)])

    def _handle(self, kind: str) -> Any:
        """A handle of that kind, now and then of another or of nothing; it may be dropped."""
        chance = self._random.random()
        known = (
            self._made.get(kind, []) if chance < 0.95 else [s for steps in self._made.values() for s in steps]
        )
        if not known or chance > 0.98:
            return self._number() | NO_HANDLE
        return {"of": known[-1] if self._random.random() < 0.7 else self._random.choice(known)}

    def _call(self, name: str, *numbers: Any) -> None:
        given = list(numbers)
        if self._random.random() < 0.04:
            place = self._random.randrange(len(given))
            is_handle = place == 0 and (name in TAKES or name in DROPS)
            given[place] = self._number() | (NO_HANDLE if is_handle else 0)
        if kind := GIVES.get(name):
            self._made.setdefault(kind, []).append(len(self.steps))
        self.steps.append(["call", name, given])

    def _text(self, *usual: bytes) -> tuple[int, int]:
        chosen = self._random.choice(usual if self._random.random() < 0.8 else TEXTS)
        self._put(NAMES, chosen)
        return NAMES, len(chosen)

    def _load(self) -> None:
        if self._random.random() < 0.5:
            self._call("load-by-name", *self._text(b"sums", b"sums", b"chat"), RESULT)
            return
        size = self._sums if self._random.random() < 0.8 else self._random.randrange(self._sums)
        count = self._random.choice([1, 1, 1, 1, 0, 2])
        self._put(BUILDERS, struct.pack("<4I", MODEL, size, MODEL, size))
        self._call(
            "load",
            BUILDERS,
            count,
            self._random.choice([1, 1, 6, 5, 0]),
            self._random.choice([0, 0, 1]),
            RESULT,
        )

    def _tensor(self) -> None:
        shape = self._random.choice([[2, 2], [1, 2], [2], [], [0, 2], [2**31, 2**31], [1] * 9])
        size = self._random.choice([4, 8, 8, 16, 16, 0, 3, 256])
        self._put(SHAPE, struct.pack(f"<{len(shape)}I", *shape))
        self._put(DATA, self._random.randbytes(size))
        self._call("tensor-new", SHAPE, len(shape), self._random.choice([1, 1, 1, 4, 0, 6]), DATA, size)

    def _sound_inputs(self) -> list[tuple[bytes, Any]]:
        inputs = []
        for name, shape in ((b"x", (2, 2)), (b"w", (2,))):
            self._put(SHAPE, struct.pack(f"<{len(shape)}I", *shape))
            self._put(DATA, struct.pack("<4f", 1, 2, 3, 4))
            self._call("tensor-new", SHAPE, len(shape), 1, DATA, 16 if name == b"x" else 8)
            inputs.append((name, {"of": len(self.steps) - 1}))
        return inputs

    def _compute(self) -> None:
        inputs = self._sound_inputs()
        if self._random.random() < 0.3:
            inputs = [
                (self._random.choice(TEXTS), self._handle("tensor"))
                for _ in range(self._random.randint(0, 3))
            ]
        at = NAMES
        for i, (name, tensor) in enumerate(inputs):
            self._put(at, name)
            self._put(INPUTS + 12 * i, struct.pack("<2I", at, len(name)))
            self.steps.append(["word", INPUTS + 12 * i + 8, tensor])
            at += max(len(name), 1)
        self._call("compute", self._handle("context"), INPUTS, len(inputs), RESULT)

    def _talk(self) -> None:
        has_session = self._random.choice([0, 0, 1, 2])
        self._call("conversation-open", self._handle("graph"), has_session, *self._text(b"anna"), RESULT)
        parameters = self._random.choice(PARAMETERS)
        self._put(SHAPE, parameters)
        prompt = self._text(b"Hello", b"What is 2+3?")
        self._call("conversation-ask", self._handle("conversation"), *prompt, SHAPE, len(parameters), RESULT)
        for name in self._random.choices(["answer-next", "answer-next", "answer-metadata"], k=3):
            self._call(name, self._handle("answer"), RESULT)
        if self._random.random() < 0.3:
            self._call("answer-cancel", self._handle("answer"))

    def _any(self) -> None:
        name = self._random.choice(list(FUNCTIONS))
        first = [self._handle(TAKES[name])] if name in TAKES else []
        rest = [self._number() for _ in range(FUNCTIONS[name].numbers - len(first))]
        if rest and FUNCTIONS[name].gives not in ("handle", "word", ""):
            rest[-1] = RESULT
        self._call(name, *first, *rest)  # which mostly ends the guest

    def _drop(self) -> None:
        name = self._random.choice(list(DROPS))
        self._call(name, self._handle(DROPS[name]))


def sums() -> bytes:
    """An ONNX model: sum = x + w and product = x * w of x: f32[n, 2] and w: f32[2]."""
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["sum"]), helper.make_node("Mul", ["x", "w"], ["product"])],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2]),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [2]),
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in ("sum", "product")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return made.SerializeToString()


def configuration(models: dict[str, Path], root: Path) -> dict[str, Any]:
    """The settings of a host whose guests may load these models, and what is in a folder."""
    return {
        "model_root": str(root),
        "model_aliases": {name: str(path) for name, path in models.items()},
        "n_threads": 1, "n_ctx": 256, "n_predict": 4, "temperature": 0, "log_level": "none",
        "max_graphs": 8, "max_contexts": 8, "max_compute_ms": 1000,
    }  # fmt: skip


class Hosts:
    """Guests under wasmtime, each with a backend of its own as `headrace wasm` gives it."""

    def __init__(self, library: Path, config: dict[str, Any], *, passes_lists: bool = False) -> None:
        self._library, self._config, self._passes_lists = library, config, passes_lists
        self._binary = bytes(wasmtime.wat2wasm(text()))

    def run(self, program: list[Any]) -> list[Any]:
        backend = Backend(self._library, self._config)
        try:
            return Guest(backend, self._binary, self._passes_lists).run(program)
        finally:
            backend.close()


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    onnx_model = sums()
    root = Path(__file__).resolve().parents[2]
    models = {"chat": root / "models/tiny-chat-q8_0.gguf"}
    config = configuration(models, Path(__file__).parent)
    hosts = [Hosts(find_library(), config, passes_lists=lists) for lists in (False, True)]
    end, seed, wrong, ended = time.monotonic() + given.seconds, given.seed, 0, 0
    while time.monotonic() < end:
        program = Program(seed, onnx_model).steps
        print(f"seed {seed}\r", end="", file=sys.stderr, flush=True)  # the last one, where the process ends
        try:
            ended += hosts[seed % 2].run(program)[-1] == "trap"
        except BrokenHostError as error:
            wrong += 1
            print(f"seed {seed}: {error}\n{json.dumps(program)}", flush=True)
        seed += 1
    print(f"{seed - given.seed} components, {ended} ended, {wrong} with a failure of their host")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
