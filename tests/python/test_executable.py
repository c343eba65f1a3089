"""headrace.compile, Executable and Session: graphs on arrays, without any door."""

from __future__ import annotations

import threading
import time

import headrace
import ml_dtypes
import numpy as np
import pytest
from headrace._core import Extent, GraphWriter, graph_from_memory, graph_to_bytes
from test_exchange import Foreign, ForeignBFloat16

W = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
X = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
DTYPES = {
    **{f"f{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": np.dtype(f"uint{bits}") for bits in (8, 32, 64)},
    "bool": np.dtype(bool),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i4": np.dtype(ml_dtypes.int4),
    "u4": np.dtype(ml_dtypes.uint4),
}


def dense() -> headrace.Graph:
    """y = relu(x · W), x [seq, 3]."""
    writer = GraphWriter()
    x = writer.input("x", "f32", [Extent.symbol("seq", 1, 64), 3])
    w = writer.constant("f32", [3, 4], W.reshape(-1).view(np.uint8))
    writer.output("y", writer.op("relu", writer.op("matmul", [x, w]))[0])
    return writer.finish()


def unary(op: str, dtype: str, shape: list[object]) -> headrace.Session:
    writer = GraphWriter()
    writer.output("y", writer.op(op, [writer.input("x", dtype, shape)])[0])
    return headrace.Session(headrace.compile(writer.finish()))


def counter(size: int = 1) -> headrace.Executable:
    """total += x, y = total."""
    writer = GraphWriter()
    total = writer.state("total", "i64", [size])
    (sum_,) = writer.op("accumulate", [total, writer.input("x", "i64", [size])])
    writer.output("y", writer.op("identity", [sum_])[0])
    return headrace.compile(writer.finish())


def test_a_graph_its_bytes_and_its_file_compile_to_the_same(tmp_path) -> None:
    graph = dense()
    headrace.save_graph(graph, tmp_path / "graph.hrg")
    content = graph_to_bytes(graph)
    sources = [graph, content, bytearray(content), tmp_path / "graph.hrg", str(tmp_path / "graph.hrg")]
    for source in [*sources, graph_from_memory(content), headrace.load_graph(tmp_path / "graph.hrg")]:
        result = headrace.Session(headrace.compile(source)).run({"x": X})
        np.testing.assert_allclose(result["y"], np.maximum(X @ W, 0), rtol=1e-5, atol=1e-5)


def test_a_graph_outlives_the_bytes_and_arrays_that_it_was_made_of() -> None:
    graph = graph_from_memory(bytes(graph_to_bytes(dense())))
    executable = headrace.compile(graph)
    del graph
    np.testing.assert_array_equal(headrace.Session(executable).run({"x": X})["y"] > 0, X @ W > 0)


@pytest.mark.parametrize("extension", [".webnn", ".json"])
def test_graph_files_of_other_forms_are_written_and_read(tmp_path, extension: str) -> None:
    path = tmp_path / f"graph{extension}"
    headrace.save_graph(dense(), path)
    (tmp_path / "graph.weights").rename(tmp_path / "w.bin")
    graph = headrace.load_graph(path, weights_path=str(tmp_path / "w.bin"))
    np.testing.assert_array_equal(headrace.Session(headrace.compile(graph)).run({"x": X})["y"] > 0, X @ W > 0)


def test_graphs_are_printed_before_and_after_passes() -> None:
    graph = dense()
    assert "matmul(" in str(graph) and headrace.print_graph(graph) == str(graph)
    assert "fused_matmul(" in str(headrace.compile(graph).graph)


def test_an_executable_says_what_it_takes_and_gives() -> None:
    executable = headrace.compile(dense())
    (x,), (y,) = executable.inputs, executable.outputs
    assert (x.name, x.shape, x.dtype) == ("x", ["seq", 3], np.float32)
    assert repr(y) == "TensorInfo(y: float32[seq, 4])"
    (state,) = counter(2).states
    assert (state.name, state.shape, state.dtype) == ("total", [2], np.int64)


def test_an_executable_says_what_compiling_did() -> None:
    stats = headrace.compile(dense(), disabled_passes=["fold_constants"]).stats
    assert (stats["nodes_before"], stats["nodes_after"], stats["constant_bytes"]) == (2, 1, W.nbytes)
    ran = {one["name"]: one["ran"] for one in stats["passes"]}
    assert ran["fuse_matmul_epilogue"] and not ran["fold_constants"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_have_the_declared_dtype(dtype: str) -> None:
    session = unary("identity", dtype, [2, 3])
    x = np.array([[0, 1, 1], [1, 0, 7]]).astype(DTYPES[dtype])
    y = session.run({"x": x})["y"]
    assert y.dtype == DTYPES[dtype]
    np.testing.assert_array_equal(y, x)
    into = np.zeros_like(x)
    assert session.run({"x": x}, {"y": into})["y"] is into
    np.testing.assert_array_equal(into, x)


def test_open_extents_come_from_the_arrays() -> None:
    session = headrace.Session(headrace.compile(dense()))
    assert session.output_shapes({"x": [7, 3]}) == {"y": [7, 4]}
    for rows in (1, 5, 2):
        assert session.run({"x": X[:rows]})["y"].shape == (rows, 4)
    with pytest.raises(ValueError, match=r"seq \(dimension 0\) is 65; at most 64 is possible"):
        session.run({"x": np.ones((65, 3), np.float32)})
    with pytest.raises(ValueError, match="Missing input: x"):
        session.output_shapes({})


def test_results_go_into_the_callers_arrays() -> None:
    session = headrace.Session(headrace.compile(dense()))
    into = np.zeros((5, 4), np.float32)
    assert session.run({"x": X}, {"y": into})["y"] is into
    np.testing.assert_allclose(into, np.maximum(X @ W, 0), rtol=1e-5, atol=1e-5)
    assert session.stats["outputs_bound"] == 1
    with pytest.raises(
        ValueError, match=r"output 'y': the array has shape \[4, 4\], the graph gives \[5, 4\]"
    ):
        session.run({"x": X}, {"y": into[:4]})
    negated = unary("neg", "f32", [4])
    memory = np.ones(4, np.float32)
    assert negated.run({"x": memory}, {"y": memory})["y"] is memory
    np.testing.assert_array_equal(memory, -np.ones(4, np.float32))


def test_arrays_of_other_libraries_go_in_by_dlpack() -> None:
    session = unary("neg", "f32", [2, 2])
    given = Foreign(np.array([[1, 2], [3, 4]], np.float32))
    np.testing.assert_array_equal(session.run({"x": given})["y"], -given.array)
    half = np.array([[1, 2], [3, 4]], ml_dtypes.bfloat16)
    np.testing.assert_array_equal(
        session.run({"x": ForeignBFloat16(half.T)})["y"], -half.T.astype(np.float32)
    )
    same = unary("identity", "bf16", [2, 2]).run({"x": ForeignBFloat16(half)})["y"]
    np.testing.assert_array_equal(same, half)


@pytest.mark.parametrize(
    ("dtype", "given"),
    [
        ("u8", np.array([1, 300])),
        ("u8", np.array([-1, 2])),
        ("i32", np.array([1.0, 2.5])),
        ("i32", np.array([2**31, 0])),
        ("u8", Foreign(np.array([1, 300]))),
        ("f32", np.array(["a", "b"])),
        ("f32", None),
    ],
)
def test_elements_that_would_become_others_are_refused(dtype: str, given: object) -> None:
    with pytest.raises(ValueError, match="input 'x' is "):
        unary("identity", dtype, [2]).run({"x": given})


def test_elements_that_stay_what_they_are_are_converted() -> None:
    assert unary("identity", "u8", [2]).run({"x": [1, 255]})["y"].tolist() == [1, 255]
    assert unary("identity", "f32", [2]).run({"x": np.array([1, 0.1])})["y"].tolist() == [1, np.float32(0.1)]
    assert unary("identity", "i64", [2]).run({"x": np.array([True, False])})["y"].tolist() == [1, 0]
    assert unary("identity", "i32", [2]).run({"x": np.array([1.0, 2.0])})["y"].tolist() == [1, 2]
    assert unary("identity", "f32", [0]).run({"x": []})["y"].tolist() == []


def test_each_session_has_states_of_its_own_unless_they_are_shared() -> None:
    executable = counter()
    first, second = headrace.Session(executable), headrace.Session(executable)
    shared = headrace.Session(executable, sharing=[first])
    for session in (first, first, second, shared):
        session.run({"x": [5]})
    assert [s.read_state("total").item() for s in (first, second, shared)] == [15, 5, 15]
    shared.write_state("total", [100])
    assert first.run({"x": [1]})["y"].item() == 101
    first.reset_states()
    assert shared.read_state("total").item() == 0


def test_wrong_states_are_named() -> None:
    session = headrace.Session(counter(2))
    with pytest.raises(ValueError, match="the graph has no state 'sum'; it has: total"):
        session.read_state("sum")
    with pytest.raises(ValueError, match=r"the array has shape \[3\], state 'total' \[2\]"):
        session.write_state("total", [1, 2, 3])
    with pytest.raises(ValueError, match="state 'total' is float64"):
        session.write_state("total", [0.5, 1])


def test_threads_take_turns_on_a_state() -> None:
    executable = counter()
    first = headrace.Session(executable)
    others = [first, headrace.Session(executable, sharing=[first])]
    others.append(headrace.Session(executable, sharing=others))
    threads = [
        threading.Thread(target=lambda s=session: [s.run({"x": [1]}) for _ in range(300)])
        for session in [*others, *others]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert first.read_state("total").item() == 6 * 300


def longest_pause_beside(work) -> tuple[float, float]:
    """The longest time for which this thread stood still while another worked, and how long that took."""
    took = []

    def timed() -> None:
        begin = time.perf_counter()
        work()
        took.append(time.perf_counter() - begin)

    thread = threading.Thread(target=timed)
    longest, last = 0.0, time.perf_counter()
    thread.start()
    while thread.is_alive():
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest, took[0]


@pytest.mark.parametrize("what", ["compile", "run"])
def test_other_threads_go_on_meanwhile(what: str) -> None:
    writer, size = GraphWriter(), 1024
    x = writer.input("x", "f32", [size, size])
    w = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
    for _ in range(8):
        constant = writer.constant("f32", [size, size], w.reshape(-1).view(np.uint8))
        (x,) = writer.op("matmul", [x, constant])
    writer.output("y", x)
    graph = writer.finish()
    work = lambda: headrace.compile(graph, threads=1, weights="q4_0")  # noqa: E731
    if what == "run":
        session = headrace.Session(headrace.compile(graph, threads=1))
        work = lambda: session.run({"x": w})  # noqa: E731
    tries = [longest_pause_beside(work) for _ in range(5)]
    assert min(pause / took for pause, took in tries) < 0.5, tries


def test_a_run_is_profiled_on_demand() -> None:
    session = headrace.Session(headrace.compile(dense(), threads=1))
    session.run({"x": X}, profile=True)
    (node,) = session.stats["nodes"]
    assert node["title"] == "fused_matmul" and node["device"] == "CPU" and node["flops"] > 0
    assert node["duration_us"] > 0
    assert session.stats["threads"] == 1


def test_executables_can_share_a_pool_of_memory() -> None:
    pool = headrace.BufferPool()
    sessions = [headrace.Session(headrace.compile(dense(), buffers=pool)) for _ in range(2)]
    for session in sessions:
        session.run({"x": X})
    assert pool.stats["requests"] >= 1
    pool.reset()
    assert pool.stats["idle_bytes"] == 0
    assert sessions[0].run({"x": X}, reuse_buffers=False)["y"].shape == (5, 4)
    own = headrace.compile(dense())
    assert own.buffers.stats["requests"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "TPU9"}, "there is no device 'TPU9'"),
        ({"weights": "q9"}, "weights 'q9' is none of as-given, q8_0, q4_0"),
        ({"threads": -1}, "threads is -1"),
        ({"disabled_passes": ["magic"]}, "magic"),
    ],
)
def test_bad_options_are_named(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        headrace.compile(dense(), **options)


def test_what_is_no_graph_is_named(tmp_path) -> None:
    with pytest.raises(
        TypeError, match="graph is of the type int; it must be a Graph, the bytes of a graph file or its"
    ):
        headrace.compile(3)
    with pytest.raises(OSError, match=r"absent\.hrg"):
        headrace.compile(tmp_path / "absent.hrg")
    with pytest.raises(ValueError, match="not a graph"):
        headrace.compile(b"nonsense" * 9)
    (tmp_path / "bad.hrg").write_bytes(graph_to_bytes(dense())[:200])
    with pytest.raises(ValueError, match=r"bad\.hrg"):
        headrace.load_graph(tmp_path / "bad.hrg")
    with pytest.raises(OSError, match="absent"):
        headrace.save_graph(dense(), tmp_path / "absent" / "graph.hrg")


def test_wrong_runs_are_explained() -> None:
    session = headrace.Session(headrace.compile(dense()))
    for inputs, outputs, error, message in [
        ({}, None, ValueError, "Missing input: x"),
        ({"x": X, "z": X}, None, ValueError, "run: the graph has no input 'z'"),
        ({"x": X}, {"z": X}, ValueError, "run: the graph has no output 'z'"),
        ({"x": X}, [X], TypeError, "run: outputs must be a dict of arrays"),
        ({"x": X, 3: X}, None, TypeError, "run: a name is a str, not a int"),
        ({"x": X[:, :2]}, None, ValueError, "x"),
    ]:
        with pytest.raises(error, match=message):
            session.run(inputs, outputs)


def test_memory_that_the_system_does_not_have_is_a_memory_error() -> None:
    writer = GraphWriter()
    state = writer.state("huge", "f32", [2**31 - 1, 2**20])
    writer.output("y", writer.op("slice", [state], {"starts": [0, 0], "sizes": [1, 1]})[0])
    with pytest.raises(MemoryError, match="state 'huge'"):
        headrace.Session(headrace.compile(writer.finish()))
