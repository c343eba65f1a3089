"""A component whose every call and byte of memory a test chooses: it exports what it imports with the numbers
of the canonical ABI as they are, so that lists, strings, handles and cases may be wrong in every way.

A program is a list of steps, which component_runner.mjs takes in Node, too:
    ["put", address, bytes in hexadecimal]
    ["word", address, number or {"of": step}]
    ["call", function, [number or {"of": step}, ...]]
    ["keep", function, [number or {"of": step}, ...]]    the same, and what it gives is not looked at
{"of": step} is the handle that a step gave; where it gave none, the call is left out.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import wasmtime
from headrace._bytes_in_place import with_bytes_in_place
from headrace._component import Components, Memories
from headrace._wasi_nn import Backend, find_library
from wasmtime import component as model

VERSION = "0.2.0-rc-2024-10-28"
STREAMS = "headrace:nn/conversations@0.1.0"
#: How a host begins to say why it ended a guest that floods it or passes what it has not.
FAULTS = ("the guest holds ", "the guest's tensors and errors hold ", "the guest passed ")
#: Where functions write results that are more than one number.
RESULT = 64
PAGES = 32
#: That a guest's tensors may hold.
MOST_BYTES = 8 << 20

ENUMS = {
    "error-code": "invalid-argument invalid-encoding timeout runtime-error unsupported-operation too-large"
    " not-found security unknown",
    "tensor-type": "FP16 FP32 FP64 BF16 U8 I32 I64",
    "graph-encoding": "openvino onnx tensorflow pytorch tensorflowlite ggml autodetect",
    "execution-target": "cpu gpu tpu",
}


@dataclass(frozen=True)
class Function:
    """What the component imports and exports: its name in the interface, the type there, how many numbers it
    takes, and what it gives: a handle, a word, or what it writes at RESULT."""

    interface: str
    imported: str
    type: str
    numbers: int
    gives: str = ""


NN = {name: f"wasi:nn/{name}@{VERSION}" for name in ("errors", "tensor", "inference", "graph")}
ERROR = "(error (own $error))"
FUNCTIONS = {
    "error-code": Function(
        NN["errors"], "[method]error.code", '(param "self" (borrow $error)) (result $error-code)', 1, "word"
    ),
    "error-data": Function(
        NN["errors"], "[method]error.data", '(param "self" (borrow $error)) (result string)', 2, "bytes"
    ),
    "tensor-new": Function(
        NN["tensor"],
        "[constructor]tensor",
        '(param "dimensions" (list u32)) (param "ty" $tensor-type) (param "data" (list u8)) '
        "(result (own $tensor))",
        5,
        "handle",
    ),
    "tensor-dimensions": Function(
        NN["tensor"],
        "[method]tensor.dimensions",
        '(param "self" (borrow $tensor)) (result (list u32))',
        2,
        "words",
    ),
    "tensor-ty": Function(
        NN["tensor"], "[method]tensor.ty", '(param "self" (borrow $tensor)) (result $tensor-type)', 1, "word"
    ),
    "tensor-data": Function(
        NN["tensor"], "[method]tensor.data", '(param "self" (borrow $tensor)) (result (list u8))', 2, "bytes"
    ),
    "compute": Function(
        NN["inference"],
        "[method]graph-execution-context.compute",
        '(param "self" (borrow $context)) (param "inputs" (list (tuple string (own $tensor)))) '
        f"(result (result (list (tuple string (own $tensor))) {ERROR}))",
        4,
        "outputs",
    ),
    "graph-open": Function(
        NN["graph"],
        "[method]graph.init-execution-context",
        f'(param "self" (borrow $graph)) (result (result (own $context) {ERROR}))',
        2,
        "result",
    ),
    "load": Function(
        NN["graph"],
        "load",
        '(param "builder" (list (list u8))) (param "encoding" $graph-encoding) '
        f'(param "target" $execution-target) (result (result (own $graph) {ERROR}))',
        5,
        "result",
    ),
    "load-by-name": Function(
        NN["graph"],
        "load-by-name",
        f'(param "name" string) (result (result (own $graph) {ERROR}))',
        3,
        "result",
    ),
    "conversation-open": Function(
        STREAMS,
        "[static]conversation.open",
        '(param "graph" (borrow $graph)) (param "session" (option string)) '
        f"(result (result (own $conversation) {ERROR}))",
        5,
        "result",
    ),
    "conversation-ask": Function(
        STREAMS,
        "[method]conversation.ask",
        '(param "self" (borrow $conversation)) (param "prompt" string) (param "parameters" string) '
        f"(result (result (own $answer) {ERROR}))",
        6,
        "result",
    ),
    "answer-next": Function(
        STREAMS,
        "[method]answer.next",
        f'(param "self" (borrow $answer)) (result (result (option string) {ERROR}))',
        2,
        "piece",
    ),
    "answer-metadata": Function(
        STREAMS,
        "[method]answer.metadata",
        f'(param "self" (borrow $answer)) (result (result string {ERROR}))',
        2,
        "text",
    ),
    "answer-cancel": Function(STREAMS, "[method]answer.cancel", '(param "self" (borrow $answer))', 1),
}
#: Resources by the interface that declares them, and the names of both here.
RESOURCES = {
    "error": (NN["errors"], "error"),
    "tensor": (NN["tensor"], "tensor"),
    "context": (NN["inference"], "graph-execution-context"),
    "graph": (NN["graph"], "graph"),
    "conversation": (STREAMS, "conversation"),
    "answer": (STREAMS, "answer"),
}
DROPS = {f"drop-{name}": name for name in RESOURCES}

#: Room for what hosts return from the second page on, again and again; bytes at an address, in and out.
MEMORY = """(core module $memory
  (memory (export "memory") PAGES)
  (global $next (mut i32) (i32.const 65536))
  (func (export "realloc") (param $old i32) (param i32 i32 i32) (result i32) (local $at i32)
    (if (local.get $old) (then (return (local.get $old)))) ;; hosts only cut what they got
    (if (i32.gt_u (i32.add (global.get $next) (local.get 3)) (i32.const END))
      (then (global.set $next (i32.const 65536))))
    (local.set $at (global.get $next))
    (global.set $next
      (i32.and (i32.add (i32.add (global.get $next) (local.get 3)) (i32.const 15)) (i32.const -16)))
    (local.get $at))
  (func (export "put") (param $to i32) (param $from i32) (param $size i32)
    (memory.copy (local.get $to) (local.get $from) (local.get $size)))
  (func (export "get") (param $from i32) (param $size i32) (result i32)
    (i32.store (i32.const 0) (local.get $from))
    (i32.store (i32.const 4) (local.get $size))
    (i32.const 0)))
(core instance $m (instantiate $memory))
(alias core export $m "memory" (core memory $bytes))
(alias core export $m "realloc" (core func $realloc))
(alias core export $m "put" (core func $put))
(alias core export $m "get" (core func $get))"""


def _import(interface: str, number: int) -> list[str]:
    """An instance with its functions; resources and cases of others are known by then."""
    functions = {name: f for name, f in FUNCTIONS.items() if f.interface == interface}
    types = " ".join(f.type for f in functions.values())
    lines = [f'(import "{interface}" (instance $i{number}']
    for name, (owner, exported) in RESOURCES.items():
        if owner == interface:
            lines.append(f'(export "{exported}" (type ${name} (sub resource)))')
        elif f"${name})" in types:
            lines.append(f"(alias outer 1 ${name} (type ${name}))")
    for name, cases in ENUMS.items():
        if f"${name})" in types:
            words = " ".join(f'"{case}"' for case in cases.split())
            lines.append(f'(type $_{name} (enum {words})) (export "{name}" (type ${name} (eq $_{name})))')
    for f in functions.values():
        lines.append(f'(export "{f.imported}" (func {f.type}))')
    lines.append("))")
    for name, (owner, exported) in RESOURCES.items():
        if owner == interface:
            lines.append(f'(alias export $i{number} "{exported}" (type ${name}))')
    return lines


def _passing_on() -> list[str]:
    """Exports of the imports by way of a core module: lifting an import itself is too much for jco 1.35."""
    counts = {**{name: f.numbers for name, f in FUNCTIONS.items()}, **dict.fromkeys(DROPS, 1)}
    gives = {name for name, f in FUNCTIONS.items() if f.gives in ("handle", "word")}
    module, lifted = ["(core module $passing"], []
    for name, count in counts.items():
        result = " (result i32)" if name in gives else ""
        module.append(f'(import "nn" "{name}" (func ${name} (param {"i32 " * count}){result}))')
    for name, count in counts.items():
        result = " (result i32)" if name in gives else ""
        numbers = " ".join(f"(local.get {i})" for i in range(count))
        module.append(f'(func (export "{name}") (param {"i32 " * count}){result} (call ${name} {numbers}))')
        parameters = " ".join(f'(param "a{i}" u32)' for i in range(count))
        lifted += [
            f'(alias core export $passed "{name}" (core func $passed-{name}))',
            f'(func (export "{name}") {parameters}{result.replace("i32", "u32")} '
            f"(canon lift (core func $passed-{name})))",
        ]
    given = " ".join(f'(export "{name}" (func ${name}))' for name in counts)
    return [
        *module,
        ")",
        f'(core instance $passed (instantiate $passing (with "nn" (instance {given}))))',
        *lifted,
    ]


def text(more: str = "", pages: int = PAGES) -> str:
    """The component in the text format. more: definitions that follow; pages: of its memory."""
    options = "(memory (core memory $bytes)) (realloc (core func $realloc))"
    lines = ["(component"]
    interfaces = list(dict.fromkeys([*(owner for owner, _ in RESOURCES.values())]))
    for number, interface in enumerate(interfaces):
        lines += _import(interface, number)
    lines.append(MEMORY.replace("PAGES", str(pages)).replace("END", str(pages * 65536)))
    numbers = {interface: number for number, interface in enumerate(interfaces)}
    for name, f in FUNCTIONS.items():
        place = numbers[f.interface]
        lines.append(f'(core func ${name} (canon lower (func $i{place} "{f.imported}") {options}))')
    for name, resource in DROPS.items():
        lines.append(f"(core func ${name} (canon resource.drop ${resource}))")
    lines += _passing_on()
    lines.append(
        '(func (export "put") (param "to" u32) (param "bytes" (list u8)) '
        f"(canon lift (core func $put) {options}))"
    )
    lines.append(
        '(func (export "get") (param "from" u32) (param "size" u32) (result (list u8)) '
        "(canon lift (core func $get) (memory (core memory $bytes))))"
    )
    return "\n".join([*lines, more, ")"])


class BrokenHostError(Exception):
    """A function of the host failed by itself, and not because of what the guest did."""


def _engine() -> tuple[wasmtime.Engine, Memories]:
    config, memories = wasmtime.Config(), Memories(find_library())
    memories.define(config)
    return wasmtime.Engine(config), memories


@cache
def _compiled(binary: bytes) -> bytearray:
    return model.Component(_engine()[0], binary).serialize()


@dataclass
class Guest:
    """An instance under wasmtime, with the component functions of a backend. passes_lists: its imports are as
    they are in the binary, as `headrace wasm` has those of a component with several memories."""

    backend: Backend
    binary: bytes
    passes_lists: bool = False
    handles: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        engine, memories = _engine()
        binary = self.binary if self.passes_lists else with_bytes_in_place(self.binary)
        component = model.Component.deserialize(engine, _compiled(binary))
        self.store = wasmtime.Store(engine)
        in_place = None if self.passes_lists else memories
        self.imports = Components(self.backend, most_bytes=MOST_BYTES, memories=in_place)
        linker = model.Linker(engine)
        self.imports.define(linker)
        self._instance = linker.instantiate(self.store, component)

    def invoke(self, name: str, *arguments: Any) -> Any:
        function = self._instance.get_func(self.store, self._instance.get_export_index(self.store, name))
        result = function(self.store, *arguments)
        function.post_return(self.store)
        return result

    def get(self, at: int, size: int) -> bytes:
        return bytes(self.invoke("get", at, size))

    def words(self, at: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}I", self.get(at, 4 * count))

    def run(self, program: list[Any]) -> list[Any]:
        """What each step gave; "trap" is the last one where the guest was ended. Errors: BrokenHostError."""
        told: list[Any] = []
        for number, (kind, *rest) in enumerate(program):
            try:
                if kind == "call":
                    told.append(self._call(number, *rest))
                    continue
                if kind == "keep":
                    self.invoke(rest[0], *map(self._number, rest[1]))
                    told.append(None)
                    continue
                word = kind == "word"
                content = struct.pack("<I", self._number(rest[1])) if word else bytes.fromhex(rest[1])
                self.invoke("put", rest[0], content)
                told.append(None)
            except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
                failure = self.imports.failure
                if failure and not failure.startswith(FAULTS):
                    raise BrokenHostError(f"step {number}, {rest[0]}: {failure}") from error
                return [*told, "trap"]
        return told

    def _number(self, given: Any) -> int:
        return self.handles.get(given["of"], 0) if isinstance(given, dict) else given

    def _call(self, number: int, name: str, arguments: list[Any]) -> Any:
        if any(isinstance(given, dict) and given["of"] not in self.handles for given in arguments):
            return "left out"
        numbers = [self._number(given) for given in arguments]
        gives = FUNCTIONS[name].gives if name in FUNCTIONS else ""
        result = self.invoke(name, *numbers)
        if gives in ("handle", "word"):
            if gives == "handle":
                self.handles[number] = result
            return "handle" if gives == "handle" else result
        return self._read(number, gives, numbers[-1]) if gives else None

    def _read(self, number: int, gives: str, at: int) -> Any:
        if gives in ("bytes", "words"):
            pointer, count = self.words(at, 2)
            return self.get(pointer, count).hex() if gives == "bytes" else list(self.words(pointer, count))
        if self.get(at, 1)[0]:
            return self._error(self.words(at + 4, 1)[0])
        if gives == "result":
            self.handles[number] = self.words(at + 4, 1)[0]
            return "handle"
        if gives == "outputs":
            pointer, count = self.words(at + 4, 2)
            return [self._output(*self.words(pointer + 12 * i, 3)) for i in range(count)]
        return "text"  # of a model: what it says is not compared

    def _output(self, name: int, size: int, tensor: int) -> list[Any]:
        told = [self.get(name, size).decode(), self.invoke("tensor-ty", tensor)]
        for function in ("tensor-dimensions", "tensor-data"):
            self.invoke(function, tensor, RESULT + 32)
            told.append(self._read(-1, FUNCTIONS[function].gives, RESULT + 32))
        self.invoke("drop-tensor", tensor)
        return told

    def _error(self, error: int) -> str:
        code = self.invoke("error-code", error)
        self.invoke("error-data", error, RESULT + 32)
        message = self.get(*self.words(RESULT + 32, 2)).decode()
        self.invoke("drop-error", error)
        return f"{ENUMS['error-code'].split()[code]}: {message}"
