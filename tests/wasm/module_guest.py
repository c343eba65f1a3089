"""A core module whose every call and byte of memory a test chooses."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import wasmtime
from headrace.wasm import WasiNn

if TYPE_CHECKING:
    from typing import Self

WORD = 128
INVALID_ARGUMENT, BUSY, UNSUPPORTED, NOT_FOUND = 1, 4, 6, 8
#: Each import and the number of its i32 parameters.
IMPORTS = {
    "load": 5,
    "load_by_name": 3,
    "load_by_name_with_config": 5,
    "unload": 1,
    "init_execution_context": 2,
    "init_execution_context_with_session": 4,
    "close_execution_context": 1,
    "set_input": 3,
    "compute": 1,
    "get_output": 5,
    "compute_single": 1,
    "get_output_single": 5,
    "fini_single": 1,
}


def wat(pages: int | None) -> str:
    """A guest that exports each import, and its memory unless `pages` is None."""
    lines = ["(module"]
    for name, count in IMPORTS.items():
        parameters = f"(param {' i32' * count}) (result i32)"
        lines.append(f'(import "wasi_ephemeral_nn" "{name}" (func ${name} {parameters}))')
    for name, count in IMPORTS.items():
        parameters = f"(param {' i32' * count}) (result i32)"
        arguments = " ".join(f"local.get {i}" for i in range(count))
        lines.append(f'(func (export "{name}") {parameters} {arguments} call ${name})')
    if pages is not None:
        lines.append(f'(memory (export "memory") {pages})')
    return "\n".join([*lines, ")"])


class Guest:
    """A guest whose every call and byte of memory a test chooses."""

    def __init__(self, nn: WasiNn, text: str) -> None:
        engine = wasmtime.Engine()
        linker = wasmtime.Linker(engine)
        nn.define(linker)
        self._instantiate(engine, linker, text)

    @classmethod
    def of(cls, engine: wasmtime.Engine, linker: wasmtime.Linker, text: str) -> Self:
        """With the imports of a linker."""
        guest = cls.__new__(cls)
        guest._instantiate(engine, linker, text)
        return guest

    def _instantiate(self, engine: wasmtime.Engine, linker: wasmtime.Linker, text: str) -> None:
        self.store = wasmtime.Store(engine)
        instance = linker.instantiate(self.store, wasmtime.Module(engine, text))
        self.exports = instance.exports(self.store)
        self.memory = self.exports.get("memory")

    def call(self, name: str, *arguments: int) -> int:
        # Numbers above 2^31 as the guest's i32 has them.
        signed = (a - 2**32 if a >= 2**31 else a for a in arguments)
        return self.exports[name](self.store, *signed)

    def put(self, pointer: int, data: bytes) -> None:
        self.memory.write(self.store, data, pointer)

    def get(self, pointer: int, size: int) -> bytes:
        return bytes(self.memory.read(self.store, pointer, pointer + size))

    def word(self, pointer: int = WORD) -> int:
        return struct.unpack("<I", self.get(pointer, 4))[0]
