"""Graphs of tensors in core modules: what a guest computes is what headrace.load computes."""

from __future__ import annotations

import json
import struct
import time

import numpy as np
import pytest

wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is not installed: make setup installs it")
onnx = pytest.importorskip("onnx", reason="onnx is not installed: make setup installs it")
headrace = pytest.importorskip("headrace", reason="the Python extension is not built: make build")
from headrace.wasm import WasiNn  # noqa: E402
from module_guest import (  # noqa: E402
    BUSY,
    INVALID_ARGUMENT,
    NOT_FOUND,
    UNSUPPORTED,
    WORD,
    Guest,
    wat,
)
from onnx import TensorProto, helper  # noqa: E402

TYPES = {"float16": 0, "float32": 1, "float64": 2, "uint8": 3, "int32": 4, "int64": 5}
PART, TENSOR, SHAPE, DATA = 0, 256, 320, 4096
OUTPUT = 1 << 20
PAGES = 64


def model_of(nodes, inputs, outputs, initializers=()) -> bytes:
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    ).SerializeToString()


def network() -> bytes:
    """Two layers with weights, and the greatest of each row as integers."""
    numbers = np.random.default_rng(7)
    first, second = (numbers.standard_normal(shape, np.float32) for shape in ((16, 32), (32, 10)))
    return model_of(
        [
            helper.make_node("MatMul", ["x", "first"], ["h"]),
            helper.make_node("Gelu", ["h"], ["g"]),
            helper.make_node("MatMul", ["g", "second"], ["scores"]),
            helper.make_node("ArgMax", ["scores"], ["best"], axis=1, keepdims=0),
        ],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16])],
        [
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 10]),
            helper.make_tensor_value_info("best", TensorProto.INT64, ["n"]),
        ],
        [onnx.numpy_helper.from_array(first, "first"), onnx.numpy_helper.from_array(second, "second")],
    )


class GraphGuest(Guest):
    """Loads a model from its own memory."""

    def load(self, model: bytes) -> int:
        self.put(DATA, model)
        self.put(PART, struct.pack("<2I", DATA, len(model)))
        assert self.call("load", PART, 1, 1, 0, WORD) == 0
        self.graph = self.word()
        assert self.call("init_execution_context", self.graph, WORD) == 0
        return self.word()

    def set(self, context: int, index: int, value: np.ndarray) -> int:
        self.put(SHAPE, struct.pack(f"<{value.ndim}I", *value.shape))
        self.put(DATA, value.tobytes())
        fields = (SHAPE, value.ndim, TYPES[value.dtype.name], DATA, value.nbytes)
        self.put(TENSOR, struct.pack("<5I", *fields))
        return self.call("set_input", context, index, TENSOR)

    def last_failure(self) -> str:
        assert self.call("get_output", 0, 1, OUTPUT, 4096, WORD) == 0
        return json.loads(self.get(OUTPUT, self.word()))["error"]["message"]

    def output(self, context: int, index: int, dtype: str, capacity: int = 1 << 20) -> np.ndarray:
        assert self.call("get_output", context, index, OUTPUT, capacity, WORD) == 0
        return np.frombuffer(self.get(OUTPUT, self.word()), dtype)


@pytest.fixture
def backend(library):
    made = WasiNn(library, {"log_level": "none", "n_threads": 1})
    yield made
    made.close()


@pytest.fixture
def guest(backend):
    return GraphGuest(backend, wat(pages=PAGES))


def test_a_guest_gets_what_headrace_load_gives(guest, tmp_path):
    model = network()
    path = tmp_path / "network.onnx"
    path.write_bytes(model)
    native = headrace.load(path, threads=1)
    context = guest.load(model)
    for rows in (1, 5, 64):
        x = np.random.default_rng(rows).standard_normal((rows, 16), np.float32)
        scores, best = native(x=x).values()
        assert guest.set(context, 0, x) == 0
        assert guest.call("compute", context) == 0
        assert guest.output(context, 0, "float32").tobytes() == scores.tobytes(), rows
        np.testing.assert_array_equal(guest.output(context, 1, "int64"), best)


@pytest.mark.parametrize("field", range(5))
@pytest.mark.parametrize("value", [PAGES * 65536 - 1, 2**30, 2**31, 2**32 - 4, 2**32 - 1])
def test_tensors_outside_the_memory_or_of_no_sense_are_refused(guest, field, value):
    context = guest.load(network())
    words = [SHAPE, 2, 1, DATA, 64]
    guest.put(SHAPE, struct.pack("<2I", 1, 16))
    guest.put(TENSOR, struct.pack("<5I", *words))
    assert guest.call("set_input", context, 0, TENSOR) == 0
    words[field] = value
    guest.put(TENSOR, struct.pack("<5I", *words))
    assert guest.call("set_input", context, 0, TENSOR) == INVALID_ARGUMENT
    reasons = ("input 0, 'x' is f32", "reaches outside the guest's memory")
    assert any(reason in guest.last_failure() for reason in reasons)


def test_a_type_has_all_its_bits(guest):
    """257 is no 1."""
    context = guest.load(network())
    guest.put(SHAPE, struct.pack("<2I", 1, 16))
    guest.put(TENSOR, struct.pack("<5I", SHAPE, 2, 257, DATA, 64))
    assert guest.call("set_input", context, 0, TENSOR) == INVALID_ARGUMENT
    assert "257 is no type of this interface" in guest.last_failure()


def test_a_session_of_a_graph_of_tensors_is_refused(guest):
    guest.load(network())
    guest.put(DATA, b"anna")
    opened = guest.call("init_execution_context_with_session", guest.graph, DATA, 4, WORD)
    assert opened == UNSUPPORTED
    assert "sessions are of language models" in guest.last_failure()


def test_guests_of_one_host_have_handles_and_limits_of_their_own(library):
    nn = WasiNn(library, {"log_level": "none", "n_threads": 1, "max_graphs": 1, "max_contexts": 1})
    try:
        first, second = (GraphGuest(nn, wat(pages=PAGES)) for _ in range(2))
        context = first.load(network())
        graph = first.graph
        for name, numbers in (
            ("compute", [context]),
            ("unload", [graph]),
            ("init_execution_context", [graph, WORD]),
        ):
            assert second.call(name, *numbers) == NOT_FOUND, name
        assert f"no graph {graph}" in second.last_failure()
        assert first.call("get_output", 0, 1, OUTPUT, 1024, WORD) == NOT_FOUND, "nothing failed there"
        assert second.load(network()) == context, "whose numbers begin anew"
        assert first.call("load", PART, 1, 1, 0, WORD) == BUSY, "the limit of one graph"
        assert second.call("unload", second.graph) == 0
        assert first.set(context, 0, np.ones((1, 16), np.float32)) == 0
        assert first.call("compute", context) == 0
    finally:
        nn.close()


def test_the_imports_of_a_guest_refuse_the_calls_of_another_store(backend):
    engine = wasmtime.Engine()
    linker = wasmtime.Linker(engine)
    backend.define(linker)
    first, second = (GraphGuest.of(engine, linker, wat(pages=PAGES)) for _ in range(2))
    context = first.load(network())
    assert second.call("compute", context) == INVALID_ARGUMENT
    assert second.call("unload", first.graph) == INVALID_ARGUMENT
    assert first.call("unload", first.graph) == 0


def test_random_tensors_and_models_end_in_an_answer_or_an_error(guest):
    numbers = np.random.default_rng(3)
    model = network()
    context = guest.load(model)
    for _ in range(2000):
        shape = numbers.integers(0, 20, numbers.integers(0, 4)).astype(np.uint32)
        size = int(numbers.choice([0, 1, 64, 128, 4 * int(np.prod(shape)), 2**32 - 1]))
        guest.put(SHAPE, shape.tobytes())
        guest.put(TENSOR, struct.pack("<5I", SHAPE, shape.size, int(numbers.integers(0, 9)), DATA, size))
        index = int(numbers.integers(0, 3))
        accepted = guest.call("set_input", context, index, TENSOR)
        fits = index == 0 and shape.size == 2 and shape[1] == 16 and 4 * int(np.prod(shape)) == size
        assert accepted in (0, INVALID_ARGUMENT)
        assert accepted or fits or size == 2 * int(np.prod(shape)), "bf16 has half the bytes"
        code = guest.call("compute", context)
        assert code in (0, INVALID_ARGUMENT), code
        if code == 0:
            assert guest.call("get_output", context, 0, OUTPUT, 1 << 20, WORD) == 0
    for _ in range(300):
        damaged = bytearray(model[: numbers.integers(1, len(model))])
        for _ in range(numbers.integers(1, 4)):
            damaged[numbers.integers(0, len(damaged))] = numbers.integers(0, 256)
        guest.put(DATA, bytes(damaged))
        guest.put(PART, struct.pack("<2I", DATA, len(damaged)))
        code = guest.call("load", PART, 1, int(numbers.integers(0, 8)), int(numbers.integers(0, 4)), WORD)
        if code == 0:
            assert guest.call("unload", guest.word()) == 0


def test_a_call_costs_little_more_than_natively(guest):
    """Prints; docs/performance.md has what a quiet machine takes. Here only a gross slip is an error."""
    model = model_of(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )
    context = guest.load(model)
    x = np.ones(4, np.float32)
    guest.set(context, 0, x)

    def microseconds(call) -> float:
        call()
        times = []
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(100):
                call()
            times.append((time.perf_counter() - start) / 100 * 1e6)
        return min(times)

    compute = microseconds(lambda: guest.call("compute", context))
    nothing = microseconds(lambda: guest.call("fini_single", context))
    print(f"compute {compute:.1f} us, of which a call {nothing:.1f} us")
    assert compute < 1000
