"""Tensors, errors and compute by the canonical ABI's numbers in Node: examples/wasi_nn/node/lowered.mjs."""

from __future__ import annotations

import struct

import pytest

wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is not installed: make setup installs it")
pytest.importorskip("onnx", reason="onnx is not installed: make setup installs it")
pytest.importorskip("headrace", reason="the Python extension is not built: make build")
import component_fuzz  # noqa: E402
from component_fuzz import DATA, INPUTS, NAMES, SHAPE, SIZE  # noqa: E402
from component_guest import RESULT, text  # noqa: E402
from node_components import in_node  # noqa: E402

#: A component's own loop, which makes tensors of no bytes and drops them.
FLOOD = """
  (core module $loops
    (import "nn" "new" (func $new (param i32 i32 i32 i32 i32) (result i32)))
    (import "nn" "drop" (func $drop (param i32)))
    (func (export "loop") (param $context i32) (param $count i32)
      (loop $again
        (call $drop (call $new (i32.const 512) (i32.const 0) (i32.const 4) (i32.const 1024) (i32.const 0)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br_if $again (local.get $count)))))
  (core instance $looping (instantiate $loops (with "nn" (instance
    (export "new" (func $tensor-new)) (export "drop" (func $drop-tensor))))))
  (alias core export $looping "loop" (core func $loop))
  (func (export "loop") (param "context" u32) (param "count" u32) (canon lift (core func $loop)))"""


@pytest.fixture(scope="module")
def config(library, tmp_path_factory) -> dict:
    path = tmp_path_factory.mktemp("models") / "sums.onnx"
    path.write_bytes(component_fuzz.sums())
    return component_fuzz.configuration({"sums": path}, path.parent)


@pytest.fixture(scope="module")
def told(library, config, tmp_path_factory):
    """What the steps of one guest gave."""
    run = in_node(library, config, wasmtime.wat2wasm(text()), tmp_path_factory.mktemp("node"))
    return lambda steps: run([steps])[0]


def call(name: str, *numbers: object) -> list:
    return ["call", name, list(numbers)]


def put(at: int, content: bytes) -> list:
    return ["put", at, content.hex()]


TENSOR = call("tensor-new", SHAPE, 1, 1, DATA, 4)
#: A context, at step 2, and a tensor for its input `x`, at step 3.
READY = [
    put(NAMES, b"sums"),
    call("load-by-name", NAMES, 4, RESULT),
    call("graph-open", {"of": 1}, RESULT),
    TENSOR,
    put(NAMES, b"x"),
    put(INPUTS, struct.pack("<2I", NAMES, 1)),
    ["word", INPUTS + 8, {"of": 3}],
]
COMPUTE = call("compute", {"of": 2}, INPUTS, 1, RESULT)


@pytest.mark.parametrize(
    "step",
    [
        call("tensor-new", SHAPE, 1, 7, DATA, 4),
        call("tensor-new", SHAPE, 1, 2**32 - 1, DATA, 4),
        call("tensor-new", SHAPE + 1, 1, 1, DATA, 4),
        call("tensor-new", SHAPE, 2**30, 1, DATA, 4),
        call("tensor-new", SIZE - 4, 2, 1, DATA, 4),
        call("tensor-new", SHAPE, 1, 1, SIZE - 2, 4),
        call("tensor-new", SHAPE, 1, 1, 2**32 - 2, 4),
        call("tensor-new", SHAPE, 1, 1, DATA, 2**32 - 1),
        call("compute", {"of": 2}, INPUTS + 1, 1, RESULT),
        call("compute", {"of": 2}, INPUTS, 2**30, RESULT),
        call("compute", {"of": 2}, SIZE - 8, 1, RESULT),
        call("compute", {"of": 2}, INPUTS, 1, SIZE - 4),
        call("compute", {"of": 2}, INPUTS, 1, RESULT + 1),
        call("compute", 0, INPUTS, 1, RESULT),
        call("compute", 2**31 + 1, INPUTS, 1, RESULT),
        call("tensor-data", {"of": 3}, SIZE - 4),
        call("tensor-dimensions", {"of": 3}, RESULT + 2),
        call("tensor-ty", 2**31 + 1),
        call("error-code", 1),
    ],
)
def test_numbers_outside_of_memories_tables_and_types_end_the_guest(told, step):
    given = told([*READY, step])
    assert len(given) == len(READY) + 1
    assert given[-1] == "trap"


@pytest.mark.parametrize(
    "steps",
    [
        [put(NAMES, b"\xff\xfe"), put(INPUTS + 4, struct.pack("<I", 2)), COMPUTE],
        [put(INPUTS, struct.pack("<2I", SIZE - 1, 2)), COMPUTE],
        [put(INPUTS + 8, struct.pack("<I", 9)), COMPUTE],
        [put(INPUTS + 8, struct.pack("<I", 2**31 + 1)), COMPUTE],
        [call("drop-tensor", {"of": 3}), COMPUTE],
        [COMPUTE, COMPUTE],
        [COMPUTE, call("tensor-data", {"of": 3}, RESULT)],
        [call("drop-tensor", {"of": 3}), TENSOR, COMPUTE, TENSOR, call("drop-tensor", {"of": 3}), COMPUTE],
    ],
)
def test_names_and_handles_that_an_input_cannot_have_end_the_guest(told, steps):
    given = told([*READY, *steps])
    assert len(given) == len(READY) + len(steps)
    assert given[-1] == "trap"
    assert "trap" not in given[:-1]


def test_a_place_of_the_table_is_used_again(told):
    steps = [TENSOR, TENSOR, call("drop-tensor", {"of": 0}), call("tensor-new", SHAPE, 1, 4, DATA, 4)]
    taken_again = call("tensor-ty", 1)
    assert told([*steps, taken_again])[-1] == 4
    assert told([*steps, call("tensor-ty", {"of": 3})])[-1] == 4


def test_an_error_is_read_and_dropped_by_its_handle(told):
    # The model of two inputs gets one.
    message = "invalid-argument: the graph's inputs are x, w; given are x"
    assert told([*READY, COMPUTE])[-1] == message
    made = [TENSOR, put(NAMES, b"x"), ["word", INPUTS + 8, {"of": 8}], COMPUTE]
    assert told([*READY, COMPUTE, *made])[-1] == message


def test_tensors_that_were_dropped_leave_nothing_in_the_host(library, config, tmp_path):
    """jco's own code remembers a number of each, and ends a guest at 16.7 million."""
    binary = wasmtime.wat2wasm(text(FLOOD))
    run = in_node(library, config, binary, tmp_path, flags=["--max-old-space-size=48"])
    loop = {"of": 0, "count": 3_000_000, "rounds": 1}
    (steps, measured) = run([[]], loop)
    assert steps == []
    assert measured["microseconds"] > 0
