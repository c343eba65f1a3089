"""Components whose lists of bytes pass where they lie, and those whose lists stay as they are."""

from __future__ import annotations

import random

import pytest
import wasm_chat

wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is not installed: make setup installs it")
pytest.importorskip("onnx", reason="onnx is not installed: make setup installs it")
pytest.importorskip("headrace", reason="the Python extension is not built: make build")
import component_fuzz  # noqa: E402
from component_fuzz import MODEL, SHAPE  # noqa: E402
from component_guest import RESULT, Guest, text  # noqa: E402
from guest_toolchains import in_javascript, in_python, run  # noqa: E402
from headrace._bytes_in_place import has_one_memory, with_bytes_in_place  # noqa: E402
from headrace._wasi_nn import Backend  # noqa: E402
from headrace._wasm_binary import sections  # noqa: E402
from wasmtime import component as model  # noqa: E402

#: Types of `tensor.data` and of tensor's constructor, in place: u64 and u32 of numbers that are no lists.
GETS_AN_ADDRESS, TAKES_AN_ADDRESS = b"\x02at\x77\x00\x79", b"\x04data\x79\x04size\x79"
TENSOR = ["call", "tensor-new", [SHAPE, 0, 4, MODEL, 1000]]
#: An alias of a core module, which no toolchain here makes.
ALIAS = """(component $inner (core module $m) (export "m" (core module $m)))
  (instance $outer (instantiate $inner)) (alias export $outer "m" (core module $alias))"""


#: A command that makes a tensor of four bytes.
COMMAND = """(core module $go
  (import "nn" "new" (func $new (param i32 i32 i32 i32 i32) (result i32)))
  (func (export "run") (result i32)
    (drop (call $new (i32.const 64) (i32.const 0) (i32.const 4) (i32.const 128) (i32.const 4)))
    (i32.const 0)))
(core instance $went (instantiate $go (with "nn" (instance (export "new" (func $tensor-new))))))
(alias core export $went "run" (core func $went-run))
(func $run (result (result)) (canon lift (core func $went-run)))
(instance $command (export "run" (func $run)))
(export "wasi:cli/run@0.2.0" (instance $command))"""
#: The module of a memory once more.
AGAIN = "(core instance $again (instantiate $memory))"


def assembled(component: str) -> bytes:
    return bytes(wasmtime.wat2wasm(component))


def modules(binary: bytes) -> int:
    return sum(kind == 1 for kind, _ in sections(binary))


@pytest.fixture
def backend(library, tmp_path):
    made = Backend(library, component_fuzz.configuration({}, tmp_path))
    yield made
    made.close()


@pytest.mark.parametrize("made", ["test", "c", "python", "javascript"])
def test_lists_of_both_ways_pass_in_place_in_what_each_toolchain_makes(made, tmp_path):
    if made == "test":
        binary = assembled(text())
    elif made == "c":
        binary = (wasm_chat.SOURCES / "component_run.wasm").read_bytes()
    else:
        binary = {"python": in_python, "javascript": in_javascript}[made]("chat", tmp_path).read_bytes()
    changed = with_bytes_in_place(binary)
    assert GETS_AN_ADDRESS in changed and TAKES_AN_ADDRESS in changed
    assert modules(changed) == modules(binary) + 1
    if made in ("test", "c"):  # others take half a minute, and run in the tests of their examples
        model.Component(wasmtime.Engine(), changed)


def test_outputs_of_megabytes_come_where_the_guest_wants_them(backend):
    """Each byte would be a value of 32 in wasmtime's lists."""
    size, end = 7 << 20, b"\xde\xad\xbe\xef"
    guest = Guest(backend, assembled(text(pages=(3 * size >> 16) + 64)))
    made = [
        ["put", MODEL + size - len(end), end.hex()],
        ["call", "tensor-new", [SHAPE, 0, 4, MODEL, size]],
        ["keep", "tensor-data", [{"of": 1}, RESULT]],
    ]
    assert guest.run(made) == [None, "handle", None]
    at, count = guest.words(RESULT, 2)
    assert count == size and at >= 65536
    assert guest.get(at + size - len(end), len(end)) == end


@pytest.mark.parametrize("at", [-1, 32 * 65536 - 999, -1000])
def test_a_guest_whose_realloc_gives_what_it_has_not_is_ended(backend, at):
    lying = text().replace(
        '(local.get $at))\n  (func (export "put")', f'(i32.const {at}))\n  (func (export "put")'
    )
    assert lying != text()
    guest = Guest(backend, assembled(lying))
    told = guest.run([TENSOR, ["keep", "tensor-data", [{"of": 0}, RESULT]]])
    assert told == ["handle", "trap"]
    assert guest.imports.failure.startswith("the guest passed 1000 bytes at ")


def test_a_component_of_a_form_that_is_not_known_keeps_its_outputs_as_lists(backend):
    binary = assembled(text(ALIAS))
    changed = with_bytes_in_place(binary)
    assert TAKES_AN_ADDRESS in changed and GETS_AN_ADDRESS not in changed
    assert modules(changed) == modules(binary)
    told = Guest(backend, binary).run(
        [["put", MODEL, "616263"], TENSOR, ["call", "tensor-data", [{"of": 1}, RESULT]]]
    )
    assert told[2] == "616263" + "00" * 997


@pytest.mark.parametrize(("more", "has_one"), [(COMMAND, True), (AGAIN + COMMAND, False)])
def test_a_component_that_has_its_memory_twice_passes_lists(library, tmp_path, more, has_one):
    binary = assembled(text(more))
    assert has_one_memory(binary) == has_one
    guest = tmp_path / "guest.wasm"
    guest.write_bytes(binary)
    run(guest, models={})


def test_damaged_components_are_left_to_wasmtime():
    binary = (wasm_chat.SOURCES / "component_run.wasm").read_bytes()
    numbers = random.Random(1)
    for _ in range(300):
        damaged = bytearray(binary[: numbers.randrange(8, len(binary))] if numbers.random() < 0.3 else binary)
        for _ in range(numbers.randrange(1, 20)):
            damaged[numbers.randrange(8, len(damaged))] = numbers.randrange(256)
        try:
            changed = with_bytes_in_place(bytes(damaged))
        except ValueError as error:
            assert "the binary ends within" in str(error)
            continue
        assert changed[:8] == binary[:8]
