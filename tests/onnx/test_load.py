"""headrace.load, and ONNX models on the command line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import headrace
import numpy as np
import onnx
import pytest
import webnn
from onnx import parser

ROOT = Path(__file__).parents[2]
W = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
X = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
NUMBERS = ", ".join(str(v) for v in W.reshape(-1))
# Whether `a` is 1 decides on the result's number of dimensions.
SHAPED = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
g (float[a, 3] x) => (float[n, m] y) {
    shape = Shape(x)
    one = Constant<value_int = 1>()
    is_wide = Greater(shape, one)
    wide = Compress<axis = 0>(shape, is_wide)
    y = Reshape(x, wide)
}""")


@pytest.fixture
def path(tmp_path):
    """y = relu(x · w), flags = y > 0, x [seq, 3]."""
    model = parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 21]>
        g (float[seq, 3] x) => (float[seq, 4] y, bool[seq, 4] flags) {{
            w = Constant<value = float[3, 4] {{{NUMBERS}}}>()
            zero = Constant<value = float {{0}}>()
            p = MatMul(x, w)
            y = Relu(p)
            flags = Greater(y, zero)
        }}""")
    onnx.save(model, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_a_model_is_called_with_arrays_by_place_and_by_name(path) -> None:
    model = headrace.load(path, device="cpu")
    expected = np.maximum(X @ W, 0)
    for result in (model(X), model(x=X), model({"x": X}), model(X.tolist())):
        assert list(result) == ["y", "flags"]
        np.testing.assert_allclose(result["y"], expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(result["flags"], result["y"] > 0)
        assert result["flags"].dtype == bool


def test_a_model_says_what_it_takes_and_gives(path) -> None:
    model = headrace.load(str(path), device="cpu")
    (x,) = model.inputs
    assert (x.name, x.shape, x.dtype) == ("x", ["seq", 3], np.float32)
    assert [(t.name, t.shape, t.dtype) for t in model.outputs] == [
        ("y", ["seq", 4], np.float32),
        ("flags", ["seq", 4], np.bool_),
    ]
    assert repr(model) == "Model(model.onnx: x: float32[seq, 3] -> y: float32[seq, 4], flags: bool[seq, 4])"
    assert headrace.load(path, dimensions={"seq": 5}).inputs[0].shape == [5, 3]


@pytest.mark.parametrize("extension", [".hrg", ".webnn", ".json"])
def test_graph_files_are_loaded_the_same_way(tmp_path, extension: str) -> None:
    builder = webnn.ML().create_context(accelerated=False).create_graph_builder()
    x = builder.input("x", [{"name": "seq", "maxSize": 8}, 3], "float32")
    saved = tmp_path / f"graph{extension}"
    builder.build({"y": builder.matmul(x, builder.constant(W))}).save(str(saved))
    model = headrace.load(saved, device="cpu")
    np.testing.assert_allclose(model(X)["y"], X @ W, rtol=1e-5, atol=1e-5)
    again = tmp_path / "again.hrg"
    model.save(again)
    np.testing.assert_array_equal(headrace.load(again, device="cpu")(X)["y"], model(X)["y"])
    with pytest.raises(ValueError, match="dimensions are for ONNX models"):
        headrace.load(saved, dimensions={"seq": 5})


def test_loading_copies_what_it_needs_and_writes_no_file(path, monkeypatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise OSError("a temporary file")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    model = headrace.load(path, device="cpu")
    path.unlink()
    np.testing.assert_allclose(model(X)["y"], np.maximum(X @ W, 0), rtol=1e-5, atol=1e-5)


def test_threads_call_a_model_at_the_same_time(path) -> None:
    model = headrace.load(path, device="cpu", threads=1)
    inputs = [np.full((1 + i % 5, 3), i, np.float32) for i in range(40)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda x: model(x)["y"], inputs))
    for x, y in zip(inputs, results, strict=True):
        np.testing.assert_allclose(y, np.maximum(x @ W, 0), rtol=1e-5, atol=1e-5)


def test_calls_of_a_model_with_states_share_them(tmp_path) -> None:
    builder = webnn.ML().create_context(accelerated=False).create_graph_builder()
    total = builder.state("total", [1], "float32")
    y = builder.identity(builder.accumulate(total, builder.input("x", [1], "float32")))
    builder.build({"y": y}).save(str(tmp_path / "graph.hrg"))
    model = headrace.load(tmp_path / "graph.hrg", device="cpu")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(model, [[1.0]] * 100))
    assert model.session.read_state("total").item() == 100
    model.session.reset_states()
    assert model([2.0])["y"].item() == 2


def test_a_models_session_takes_arrays_for_results_and_times_nodes(path) -> None:
    model = headrace.load(path, device="cpu")
    into = np.empty((5, 4), np.float32)
    result = model.session.run({"x": X}, {"y": into}, profile=True)
    assert result["y"] is into
    np.testing.assert_allclose(into, np.maximum(X @ W, 0), rtol=1e-5, atol=1e-5)
    assert model.session.stats["nodes"][0]["duration_us"] > 0
    assert "fused_matmul" in str(model.graph)


def test_weights_are_quantized_on_demand(wide, tmp_path) -> None:
    x = np.random.default_rng(2).standard_normal((1, 256)).astype(np.float32)
    sizes = {}
    for weights in ("as-given", "q8_0", "q4_0"):
        model = headrace.load(wide, device="cpu", weights=weights)
        model.save(tmp_path / f"{weights}.hrg")
        sizes[weights] = (tmp_path / f"{weights}.hrg").stat().st_size
        saved = headrace.load(tmp_path / f"{weights}.hrg", device="cpu")
        np.testing.assert_allclose(saved(x)["y"], model(x)["y"], rtol=0.02, atol=0.5)
    assert sizes["q4_0"] < 0.6 * sizes["q8_0"] < 0.2 * sizes["as-given"]


@pytest.fixture
def wide(tmp_path):
    """y = x · w, with a w that is worth quantising."""
    w = np.random.default_rng(1).standard_normal((256, 256)).astype(np.float32)
    made = parser.parse_graph("g (float[1, 256] x) => (float[1, 256] y) { y = MatMul(x, w) }")
    made.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    made = onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(made, tmp_path / "wide.onnx")
    return tmp_path / "wide.onnx"


@pytest.mark.parametrize("extension", [".onnx", ".hrg"])
@pytest.mark.parametrize(
    ("options", "is_quantized", "is_rounded"),
    [
        ({}, False, False),
        ({"power_preference": "default"}, False, False),
        ({"power_preference": "high-performance"}, False, False),
        ({"power_preference": "low-power"}, True, False),
        ({"power_preference": "low-power", "weights": "as-given"}, False, False),
        ({"power_preference": "low-power", "weights": "q8_0"}, True, True),
        ({"weights": "q8_0"}, True, True),
        ({"weights": "q8_0", "round_activations": False}, True, False),
    ],
)
def test_hints_mean_what_they_mean_to_a_webnn_context(
    wide, extension: str, options, is_quantized: bool, is_rounded: bool
) -> None:
    path = wide.with_suffix(extension)
    if extension == ".hrg":
        headrace.load(wide, device="cpu").save(path)
    model = headrace.load(path, accelerated=False, **options)
    text = str(model.graph)
    assert ("q8_0" in text, "round_a=true" in text) == (is_quantized, is_rounded)
    if extension == ".hrg" and "round_activations" not in options:
        context = webnn.ML().create_context(accelerated=False, **options)
        assert str(context.load_graph(path)) == text


def test_a_graph_of_quantized_weights_multiplies_exactly_unless_asked(wide, tmp_path) -> None:
    context = webnn.ML().create_context(accelerated=False)
    headrace.load(wide, device="cpu").save(tmp_path / "whole.hrg")
    context.load_graph(tmp_path / "whole.hrg").save(tmp_path / "small.hrg", quantized=True)
    graph = str(headrace.load(tmp_path / "small.hrg", device="cpu").graph)
    assert "q8_0" in graph and "round_a=true" not in graph


@pytest.mark.parametrize(
    "options",
    [
        {"accelerated": False},
        {"device_type": "cpu"},
        {"device_type": "cpu", "accelerated": True},
        {"device": "CPU", "accelerated": True, "device_type": "gpu"},
    ],
)
def test_the_cpu_is_taken_where_a_hint_says_so(path, options) -> None:
    model = headrace.load(path, **options)
    model(X)
    assert {node["device"] for node in model.session.stats["nodes"]} == {"CPU"}


def test_hints_that_name_other_devices_change_nothing(path) -> None:
    for options in ({}, {"device_type": "gpu"}, {"device_type": "npu"}, {"device_type": "auto"}):
        found = headrace.load(path, **options)(X)["y"]
        np.testing.assert_allclose(found, np.maximum(X @ W, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"power_preference": "lowest"}, "power preference 'lowest' is none of default, high-performance"),
        ({"weights": "q9_9"}, "weights 'q9_9' is none of as-given, q8_0, q4_0"),
        ({"device": "abacus"}, "there is no device 'abacus'"),
        ({"device_type": "tpu"}, "device type 'tpu' is none of auto, cpu, gpu, npu"),
        ({"threads": -1}, "threads is -1"),
        ({"memory": "lo"}, "memory 'lo' is none of normal, low"),
        ({"precision": "f16"}, "precision 'f16' is none of exact, fast"),
        ({"disabled_passes": ["typo"]}, "no pass is called 'typo'"),
        ({"most_iterations": 0}, "most_iterations is 0; at least 1 is needed"),
    ],
)
def test_bad_options_are_explained_whatever_the_model_is(path, options, message: str) -> None:
    for model in (path, SHAPED, "absent.onnx"):
        with pytest.raises(ValueError, match=message):
            headrace.load(model, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"thread": 1}, "load: there is no option 'thread'; did you mean 'threads'"),
        ({"dimension": {}}, "load: there is no option 'dimension'; did you mean 'dimensions'"),
        ({"q": 1}, "load: there is no option 'q'; there are accelerated, .*, weights"),
        ({"tuning": 1}, "load: tuning is 1, an int; it must be a str"),
        ({"device": 3}, "load: device is 3, an int; it must be a str"),
        ({"round_activations": "no"}, "load: round_activations is 'no', a str; it must be a bool"),
    ],
)
def test_options_that_are_not_there_or_of_another_type_are_named(path, options, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        headrace.load(path, **options)


def test_integers_of_numpy_are_numbers_of_threads(path) -> None:
    assert headrace.load(path, device="cpu", threads=np.int64(1))(X)["y"].shape == (5, 4)


def test_what_one_graph_has_is_missed_with_what_to_do() -> None:
    model = headrace.load(SHAPED, device="cpu")
    for name in ("session", "executable", "graph", "run"):
        with pytest.raises(AttributeError, match=rf"StructuredModel.* has no {name}; .*dimensions=\.\.\."):
            getattr(model, name)
    with pytest.raises(AttributeError, match="object has no attribute 'sesion'"):
        model.sesion  # noqa: B018
    assert headrace.load(SHAPED, dimensions={"a": 2}).session


@pytest.mark.parametrize("name", ["self.onnx", "SELF.ONNX"])
def test_a_graph_file_does_not_take_the_name_of_an_onnx_model(path, tmp_path, name: str) -> None:
    target = tmp_path / name
    target.write_bytes(path.read_bytes())
    with pytest.raises(
        ValueError, match=r"a graph file, which is no ONNX model; give it a name that ends in \.hrg"
    ):
        headrace.load(target, device="cpu").save(target)
    assert target.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m(), r"model\.onnx: input 'x' is missing; the input is x"),
        (lambda m: m(X, X), r"model\.onnx: 2 arrays are given; the input is x"),
        (lambda m: m(X, x=X), r"input 'x' is given twice"),
        (lambda m: m(z=X, x=X), r"there is no input 'z'; the input is x"),
        (lambda m: m(X[:0]), r"input 'x': seq \(dimension 0\) is 0; at least 1 is needed"),
        (lambda m: m(X[:, :2]), r"x"),
        (lambda m: m(np.array([["a"]])), r"input 'x' is str32; it must be float32"),
        (lambda m: m(None), r"input 'x' is object; it must be float32"),
    ],
)
def test_wrong_calls_are_explained(path, call, message: str) -> None:
    model = headrace.load(path, device="cpu")
    with pytest.raises(ValueError, match=message):
        call(model)


def test_numbers_that_the_input_does_not_hold_are_refused(tmp_path) -> None:
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (uint8[2] x) => (uint8[2] y) { y = Add(x, x) }'
    )
    loaded = headrace.load(model, device="cpu")
    assert loaded([3, 4])["y"].tolist() == [6, 8]
    for bad, wrong in (([-1, 2], "-1"), ([1, 300], "300"), ([1.5, 2.0], "1.5")):
        with pytest.raises(
            ValueError, match=rf"input 'x' is (int64|float64) and has {wrong}, which uint8 does not hold"
        ):
            loaded(bad)


@pytest.mark.parametrize(
    ("dimensions", "message"),
    [
        ({"batch": 1}, r"no input has a dimension 'batch'; run-time dimensions: seq"),
        ({"seq": "5"}, r"dimensions\['seq'\] is '5'; it must be a number"),
        ({"seq": -1}, r"dimensions\['seq'\] is -1"),
    ],
)
def test_dimensions_that_do_not_fit_are_named(path, dimensions, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        headrace.load(path, dimensions=dimensions)


def test_absent_files_and_devices_are_named(path, tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.onnx"):
        headrace.load(tmp_path / "absent.onnx")
    with pytest.raises(FileNotFoundError, match=r"absent\.hrg does not exist"):
        headrace.load(tmp_path / "absent.hrg")
    with pytest.raises(ValueError, match="TPU9"):
        headrace.load(path, device="TPU9")


def test_models_are_read_without_the_package_onnx(path) -> None:
    program = f"""
import sys
import headrace
model = headrace.load({str(path)!r}, device="cpu")
print(model([[1, 2, 3]])["flags"].shape, *({{"onnx", "google.protobuf"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(1, 4)"


# --- the command line -------------------------------------------------------------------------------------


def program(*arguments: object, fails: bool = False) -> str:
    command = [sys.executable, "-m", "headrace", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ))
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


@pytest.mark.parametrize("extension", [".hrg", ".webnn", ".json"])
def test_convert_writes_what_the_native_program_runs(path, tmp_path, extension: str) -> None:
    if extension != ".hrg":  # WebNN has no bool
        model = onnx.load(path)
        del model.graph.output[1]
        onnx.save(model, path)
    graph = tmp_path / f"converted{extension}"
    assert re.fullmatch(rf"{graph}: (\d+ bytes|\d+\.\d kB)\n", program("convert", path, graph))
    np.save(tmp_path / "x.npy", X)
    native = [ROOT / "build/bin/headrace", "run", graph, "--input", f"x={tmp_path}/x.npy", "--output"]
    subprocess.run([*native, f"y={tmp_path}/y.npy"], check=True, capture_output=True)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), np.maximum(X @ W, 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("extension", [".webnn", ".json"])
def test_activations_that_webnn_lacks_are_written_in_its_operators(tmp_path, extension: str) -> None:
    model = parser.parse_model("""<ir_version: 10, opset_import: ["" : 24]>
        g (float[2, 3] x) => (float[2, 3] y) {
        a = Gelu<approximate = "tanh">(x)
        b = Swish(a)
        y = Swish<alpha = 1.7>(b)
    }""")
    loaded = headrace.load(model, device="cpu")
    loaded.save(tmp_path / f"graph{extension}")
    again = headrace.load(tmp_path / f"graph{extension}", device="cpu")
    np.testing.assert_allclose(again(X[:2])["y"], loaded(X[:2])["y"], rtol=1e-5, atol=1e-6)


def test_convert_fixes_dimensions(path, tmp_path) -> None:
    program("convert", path, tmp_path / "fixed.hrg", "--dimension", "seq=2")
    assert headrace.load(tmp_path / "fixed.hrg").inputs[0].shape == [2, 3]


def test_a_model_that_needs_known_shapes_runs_on_those_of_its_inputs(tmp_path) -> None:
    path = tmp_path / "shaped.onnx"
    onnx.save(SHAPED, path)
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    assert "--dimension a=1" in program("run", path, fails=True)
    assert program("run", path, "--input", f"x={tmp_path}/x.npy").startswith("y: f32[2, 3]")
    assert program("run", path, "--shape", "x=2,3").startswith("y: f32[2, 3]")


def test_run_inspect_and_bench_take_the_model_itself(path) -> None:
    assert program("run", path, "--shape", "x=2,3").startswith("y: f32[2, 4]")
    assert program("run", path, "--dimension", "seq=2") == program("run", path, "--shape", "x=2,3")
    assert "gemm_f32" in program("inspect", path, "--dimension", "seq=2")
    assert program("bench", path, "--dimension", "seq=2", "--peer", "none", "--runs", 1).startswith("median")


def test_what_reads_graph_files_alone_says_how_to_convert(path) -> None:
    with pytest.raises(ValueError, match=r"`headrace convert model\.onnx model\.hrg`"):
        headrace.load_graph(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["convert", "{absent}", "{out}"], "absent.onnx"),
        (["convert", "{path}", "{out}", "--dimension", "seq"], "'seq' is not NAME=NUMBER"),
        (["convert", "{path}", "{out}", "--dimension", "q=1"], "no input has a dimension 'q'"),
        (["convert", "{path}"], "graph is required"),
        (["convert", "{path}", "/absent/folder/x.hrg"], "/absent/folder"),
        (["convert", "{path}", "{out}.xyz"], "convert writes .hrg, .webnn and .json files"),
        (["convert", "{path}", "{path}"], "convert writes .hrg, .webnn and .json files"),
        (["run", "{absent}"], "absent.onnx"),
    ],
)
def test_bad_arguments_are_explained(path, tmp_path, arguments, message: str) -> None:
    names = {"path": path, "absent": tmp_path / "absent.onnx", "out": tmp_path / "out.hrg"}
    printed = program(*[a.format(**names) for a in arguments], fails=True)
    assert message in printed and "Traceback" not in printed
    assert not (tmp_path / "out.hrg").exists()


def test_nothing_of_a_model_stays_when_it_has_been_read() -> None:
    program = """
import headrace.onnx
from onnx import parser
headrace.onnx.import_graph(parser.parse_model('''<ir_version: 9, opset_import: ["" : 17]>
g (float[1, 4] x, int64[1] count) => (float[k, 4] y) {
    four = Constant <value_ints = [4]> ()
    shape = Concat <axis = 0> (count, four)
    y = Expand (x, shape) }'''))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "leaked" not in done.stderr


def test_habits_of_onnx_runtime_are_told_what_is_here() -> None:
    summed = """<ir_version: 10, opset_import: ["" : 21]> g (float[2] a, float[2] b) => (float[2] y) {
        y = Add(a, b)
    }"""
    model = headrace.load(parser.parse_model(summed), device="cpu")
    with pytest.raises(TypeError, match=r"run: the inputs are NoneType; .* is model\(feeds\)"):
        model.run(None, {})
    with pytest.raises(AttributeError, match="no attribute 'get_inputs'; here it is `inputs`"):
        model.get_inputs()
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        _ = model.nonsense
    with pytest.raises(ValueError, match=r"is missing; .*model\(\*arrays\) gives several"):
        model([np.ones(2, np.float32), np.ones(2, np.float32)])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"version https://git-lfs.example/v1\noid sha256:1\n", "a pointer of Git LFS"),
        (b"<!DOCTYPE html><html></html>", "a web page"),
        (b"PK\x03\x04 and more", "a zip archive"),
        (b"GGUF\x03\x00\x00\x00", "a GGUF model; LanguageModel loads it"),
        (b"HDRGRAPH\x01\x00\x00\x00", "a graph file"),
    ],
)
def test_files_that_are_something_else_are_recognized(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(ValueError, match=f"no ONNX model: it is {told}"):
        headrace.load(tmp_path / "model.onnx")
