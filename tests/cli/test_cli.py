"""The headrace program on graphs that Python saved."""

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import webnn
from headrace._core import Extent, GraphWriter, save_graph

HEADRACE = Path(__file__).parents[2] / "build" / "bin" / "headrace"


def headrace(*arguments: object, fails: bool = False) -> str:
    done = subprocess.run([HEADRACE, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


@pytest.fixture
def graph(tmp_path):
    """y = relu(x · w), x [seq, 3]."""
    context = webnn.ML().create_context(accelerated=False)
    builder = context.create_graph_builder()
    x = builder.input("x", [{"name": "seq", "maxSize": 16}, 3], "float32")
    w = builder.constant(np.arange(12, dtype=np.float32).reshape(3, 4) - 5)
    path = tmp_path / "graph.hrg"
    builder.build({"y": builder.relu(builder.matmul(x, w, label="dense"))}).save(str(path))
    return path


def test_devices_lists_the_cpu():
    assert any(line.split()[:2] == ["CPU", "cpu"] for line in headrace("devices").splitlines())


def test_run_reads_and_writes_npy_files(graph, tmp_path):
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    printed = headrace("run", graph, "--input", f"x={tmp_path}/x.npy", "--output", f"y={tmp_path}/y.npy")
    expected = np.maximum(x @ (np.arange(12, dtype=np.float32).reshape(3, 4) - 5), 0)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-5, atol=1e-5)
    assert printed.startswith("y: f32[5, 4]  min 0")


@pytest.mark.parametrize("extension", [".webnn", ".json"])
def test_graphs_of_the_webnn_tools_run_inspect_and_bench(graph, tmp_path, extension):
    path = tmp_path / f"other{extension}"
    webnn.MLGraph.load(str(graph)).save(str(path))
    shape = ("--shape", "x=2,3")
    assert headrace("run", path, *shape) == headrace("run", graph, *shape)
    assert "matmul" in headrace("inspect", path, *shape)
    assert headrace("bench", path, *shape, "--peer", "none", "--runs", 1).startswith("median")
    (tmp_path / "other.weights").rename(tmp_path / "w.bin")
    assert "other.weights" in headrace("run", path, *shape, fails=True)
    assert headrace("run", path, *shape, "--weights", tmp_path / "w.bin").startswith("y: f32[2, 4]")


def test_run_generates_inputs_reproducibly(graph):
    first = headrace("run", graph, "--shape", "x=2,3", "--seed", 7)
    assert first == headrace("run", graph, "--shape", "x=2,3", "--seed", 7)
    assert first != headrace("run", graph, "--shape", "x=2,3", "--seed", 8)


def test_inspect_shows_graph_passes_kernels_and_memory(graph):
    printed = headrace("inspect", graph, "--shape", "x=2,3", "--before")
    assert "matmul(" in printed and "fused_matmul" in printed and "gemm_f32" in printed
    assert "passes: 2 nodes -> 1" in printed
    assert "memory: weights" in printed and "f32[seq, 4]" in printed
    plain = headrace("inspect", graph, "--shape", "x=2,3", "--without-pass", "fuse_matmul_epilogue")
    assert "fused_matmul" not in plain.split("passes:")[0]


def test_inspect_draws_every_node_and_value(tmp_path):
    context = webnn.ML().create_context(accelerated=False)
    builder = context.create_graph_builder()
    x = builder.input("x <&> ä", [2, 3], "float32")
    left, right = builder.split(builder.exp(x, label='a "label"'), [1, 2], axis=1)
    builder.build({"l": builder.sin(left), "r": builder.cos(right)}).save(str(tmp_path / "graph.hrg"))
    headrace("inspect", tmp_path / "graph.hrg", "--svg", tmp_path / "graph.svg")
    svg = ElementTree.parse(tmp_path / "graph.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    titles = [group.find(f"{space}title").text.split("\n")[0] for group in svg.iter(f"{space}g")]
    assert sorted(titles) == sorted(["x <&> ä", 'exp (a "label")', "split", "sin", "cos", "l", "r"])
    assert len(list(svg.iter(f"{space}path"))) == 6
    boxes = {(r.get("x"), r.get("y")) for group in svg.iter(f"{space}g") for r in group.iter(f"{space}rect")}
    assert len(boxes) == len(titles)  # none hides another


def test_bench_alone_prints_and_writes_its_result(graph, tmp_path):
    report = tmp_path / "bench.json"
    printed = headrace("bench", graph, "--shape", "x=4,3", "--peer", "none", "--runs", 3, "--json", report)
    result = json.loads(report.read_text())
    assert "median" in printed and result["runs"] == 3 and result["median_ms"] > 0


def test_bench_profiles_each_node_beside_the_machines_limits(graph):
    printed = headrace("bench", graph, "--shape", "x=4,3", "--profile", "--runs", 3, "--threads", 1)
    first, header, *rows = printed.splitlines()
    assert re.match(r"limits of 1 thread: \d+ GFLOP/s in f32, [\d.]+ GB/s read; medians of 3 runs", first)
    assert header.split() == [*("us", "share", "MFLOP", "MB", "GFLOP/s", "GB/s", "limit", "kernel", "node")]
    limits = [float(row.split()[6].rstrip("%")) for row in rows if row.endswith("(dense)")]
    assert ("limit over 100%" in printed) == any(limit > 100.5 for limit in limits)
    shares = [float(row.split()[0]) for row in rows if "%  in " in row]
    assert sum(shares) == pytest.approx(100, abs=0.5)


def test_bench_tunes_for_later_starts(graph, tmp_path):
    shape, tuning = ("--shape", "x=4,3"), ("--tuning", tmp_path / "tuned")
    printed = headrace("bench", graph, *shape, "--tune", "--threads", 1, *tuning)
    assert re.search(r"^kinds of nodes measured: 1, faster otherwise: [01]$", printed, re.MULTILINE)
    (kept,) = (tmp_path / "tuned").glob("*.tuning") if "kept in" in printed else [None]
    tuned = "  tuned" in headrace("inspect", graph, *shape, "--threads", 1, *tuning)
    assert tuned == (kept is not None and len(kept.read_text().splitlines()) > 3)
    assert headrace("run", graph, *shape, *tuning) == headrace("run", graph, *shape, "--tuning", "off")


def test_low_memory_does_without_transformed_filters(tmp_path):
    builder = webnn.ML().create_context(accelerated=False).create_graph_builder()
    w = np.random.default_rng(0).standard_normal((256, 256, 3, 3)).astype(np.float32)
    y = builder.conv2d(builder.input("x", [1, 256, 14, 14], "float32"), builder.constant(w))
    builder.build({"y": y}).save(str(tmp_path / "model.hrg"))
    normal, low = (
        headrace("inspect", tmp_path / "model.hrg", "--memory", memory) for memory in ("normal", "low")
    )
    assert "packed 4.00 MiB (0.00 mapped, 4.00 transformed)" in normal
    assert "packed 2.25 MiB (0.00 mapped, 0.00 transformed)" in low


def test_products_are_rounded_where_they_may_be_fast(tmp_path):
    builder = webnn.ML().create_context(accelerated=False).create_graph_builder()
    w = np.random.default_rng(0).standard_normal((512, 256)).astype(np.float32)
    y = builder.matmul(builder.input("x", [2, 512], "float32"), builder.constant(w))
    builder.build({"y": y}).save(str(tmp_path / "model.hrg"))
    exact, fast = (
        headrace("inspect", tmp_path / "model.hrg", "--precision", precision)
        for precision in ("exact", "fast")
    )
    assert "bf16_gemm_f32" not in exact and "round_to_bf16=true" not in exact
    if "avx512_bf16" in Path("/proc/cpuinfo").read_text():
        assert "bf16_gemm_f32" in fast and "packed 0.25 MiB" in fast
    else:
        assert "packed 0.50 MiB" in fast


def test_packed_weights_are_kept_where_one_wants_them(tmp_path):
    builder = webnn.ML().create_context(accelerated=False).create_graph_builder()
    w = np.random.default_rng(0).standard_normal((1024, 512)).astype(np.float32)
    y = builder.matmul(builder.input("x", [2, 1024], "float32"), builder.constant(w))
    builder.build({"y": y}).save(str(tmp_path / "model.hrg"))
    cache = ("--packed-cache", tmp_path / "cache")
    first = headrace("run", tmp_path / "model.hrg", *cache)
    (kept,) = (tmp_path / "cache").iterdir()
    assert "packed 2.00 MiB (2.00 mapped, 0.00 transformed)" in headrace(
        "inspect", tmp_path / "model.hrg", *cache
    )
    assert headrace("run", tmp_path / "model.hrg", *cache) == first
    kept.write_bytes(kept.read_bytes()[:-1])
    assert "packed 2.00 MiB (0.00 mapped, 0.00 transformed)" in headrace(
        "inspect", tmp_path / "model.hrg", *cache
    )
    assert "packed 2.00 MiB (2.00 mapped, 0.00 transformed)" in headrace(
        "inspect", tmp_path / "model.hrg", *cache
    )


def test_arrays_of_files_become_the_inputs_dtype(graph, tmp_path):
    x = np.array([[1, 2, 3]])
    printed = {}
    for dtype in ("float64", "float32", "float16", "int64", "uint8", "bool"):
        np.save(tmp_path / f"{dtype}.npy", x.astype(dtype))
        printed[dtype] = headrace("run", graph, "--input", f"x={tmp_path / dtype}.npy")
    truth = printed.pop("bool")
    assert len(set(printed.values())) == 1 and truth not in printed.values()


def test_numbers_that_an_inputs_dtype_does_not_hold_are_named(tmp_path):
    writer = GraphWriter()
    writer.output("y", writer.op("neg", [writer.input("x", "i8", [2])])[0])
    save_graph(writer.finish(), tmp_path / "graph.hrg")
    for values, told in (
        ([1.5, 0], "f64 and has 1.5"),
        ([0, 300], "i64 and has 300"),
        ([0, np.nan], "has nan"),
    ):
        np.save(tmp_path / "x.npy", np.array(values))
        message = headrace("run", tmp_path / "graph.hrg", "--input", f"x={tmp_path / 'x.npy'}", fails=True)
        assert "input 'x' is" in message and told in message and "i8 does not hold" in message


def test_bench_alternates_with_onnx_runtime(graph, tmp_path):
    report = tmp_path / "bench.json"
    fast = ("--rounds", 2, "--seconds", 0.01)
    printed = headrace("bench", graph, "--shape", "x=4,3", *fast, "--threads", 1, "--json", report)
    (result,) = json.loads(report.read_text())["results"]
    assert "ONNX Runtime" in printed and "peer/ours" in printed and "graph.hrg" in printed
    assert result["ours_us"] > 0 and result["peer_us"] > 0 and result["difference"] < 1e-4


def test_bench_without_python_says_so_and_runs_alone(graph, monkeypatch):
    monkeypatch.setenv("HEADRACE_PYTHON", "/absent/python")
    assert "median" in headrace("bench", graph, "--shape", "x=4,3", "--runs", 2)
    demanded = ("bench", graph, "--shape", "x=4,3", "--peer", "onnxruntime")
    assert "nothing to compare with" in headrace(*demanded, fails=True)


def test_bench_with_a_python_without_the_package_says_so_in_its_own_words(graph, tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("HEADRACE_PYTHON", str(python))
    done = subprocess.run([HEADRACE, "bench", graph, "--shape", "x=4,3"], capture_output=True, text=True)
    assert done.returncode == 0 and "median" in done.stdout
    said = [line for line in done.stderr.splitlines() if "comparison" in line]
    assert len(said) == 1 and "does not have the Python package headrace; HEADRACE_PYTHON" in said[0]
    assert "Error" not in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "{graph}", "--shape", "x=99,3"], "seq (dimension 0) is 99; at most 16 is possible"),
        (["run", "{graph}", "--shape", "z=1,3"], "the graph has no input 'z'; it has: x"),
        (
            ["run", "{graph}", "--shape", "seq=4"],
            "That is a dimension: --dimension seq=4 fixes it in an ONNX",
        ),
        (["run", "{graph}", "--most-iterations", "0"], "--most-iterations: 0 is less than 1"),
        (["run", "{graph}", "--shape", "x=a"], "is not a list of extents"),
        (["run", "{graph}", "--input", "x=absent.npy"], "cannot open 'absent.npy'"),
        (["run", "{graph}", "--input", "x={graph}"], "is not a .npy file"),
        (["run", "absent.hrg"], "absent.hrg"),
        (["run", "{graph}", "--shape", "x=1,3", "--output", "q=q.npy"], "with the name of an output"),
        (["bench", "{graph}", "--shape", "x=1,3", "--runs", "0"], "--runs: 0 is less than 1"),
        (["bench", "{graph}", "--shape", "x=1,3", "--tune", "--profile"], "choose one"),
        (["bench", "{graph}", "--shape", "x=1,3", "--tune", "--tuning", "off"], "tuning is off"),
        (["inspect", "{graph}", "--without-pass", "magic"], "magic"),
        (["run", "{graph}", "--device", "TPU9"], "there is no device 'TPU9'"),
    ],
)
def test_bad_arguments_are_explained(graph, arguments, message):
    printed = headrace(*[a.replace("{graph}", str(graph)) for a in arguments], fails=True)
    assert printed.startswith("headrace: ") and message in printed
    assert len(printed.splitlines()) == 1


def test_ops_describes_the_catalog():
    printed = headrace("ops")
    assert "## fused_matmul\n" in printed and "gemm_f32" in printed
    assert "- attribute `axis` (integer, required)" in printed.split("## softmax\n")[1].split("## ")[0]


def test_ops_lists_every_webnn_operator_with_its_implementations():
    page = headrace("ops", "--webnn")
    table = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("|")]
    columns, _, *cells = ([cell.strip() for cell in row] for row in table)
    rows = {row[0]: dict(zip(columns, row, strict=True)) for row in cells}
    limits = webnn.ML().create_context(accelerated=False).op_support_limits()
    assert len(rows) >= 95 and set(rows) <= set(limits)
    assert rows["matmul"]["float32"] == "KGR" and "gemm_f32" in rows["matmul"]["packed kernels"]
    assert rows["add"]["int64"] == "R"
    assert rows["relu"]["uint8"] == ""
    assert rows["where"]["operand"] == "trueValue"
    for name, row in rows.items():
        taken = limits[name][row["operand"]]["dataTypes"] if row["operand"] in limits[name] else None
        assert taken is None or {column for column in columns[2:-1] if row[column]} <= set(taken), name


@pytest.fixture
def loop(tmp_path):
    """`most` times x is doubled."""
    writer, body = GraphWriter(), GraphWriter()
    body.input("i", "i64", [])
    x = body.input("x", "f32", [Extent.symbol("n")])
    always = body.constant("u8", [], np.ones(1, np.uint8))
    body.output("goes on", body.op("identity", [always])[0])
    body.output("next", body.op("add", [x, x])[0])
    count, x = writer.input("most", "i64", []), writer.input("x", "f32", [Extent.symbol("n")])
    attributes = {"body": body.finish(), "carried": 1, "results": [Extent.symbol("n")]}
    writer.output("y", writer.op("loop", [count, None, x], attributes)[0])
    path = tmp_path / "loop.hrg"
    save_graph(writer.finish(), path)
    np.save(tmp_path / "x.npy", np.array([1, 2], np.float32))
    np.save(tmp_path / "most.npy", np.array(3))
    return [path, "--input", f"x={tmp_path}/x.npy", "--input", f"most={tmp_path}/most.npy"]


def test_graphs_that_run_in_stages_run_and_are_inspected(loop, tmp_path):
    headrace("run", *loop, "--output", f"y={tmp_path}/y.npy")
    assert np.load(tmp_path / "y.npy").tolist() == [8, 16]
    assert "2 iterations" in headrace("run", *loop, "--most-iterations", 2, fails=True)
    printed = headrace("inspect", *loop, "--svg", tmp_path / "loop.svg")
    assert "body:" in printed and "memory: weights" in printed
    ElementTree.parse(tmp_path / "loop.svg")
