"""Models of a few kilobytes that ask for any amount of time or memory: a limit, or nothing until a call."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import headrace
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

SLOWEST = 30.0  # seconds
MOST_MEMORY = 8 << 30  # of addresses, 1 to 2 GB of which the program takes for itself

ROOT = Path(__file__).parents[2]


def model(body: str, opset: int = 21, functions: str = "") -> onnx.ModelProto:
    return parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : {opset}, "local" : 1]> g {body} {functions}'
    )


def chain(count: int, first: str, step: str) -> str:
    """t0 = first, and t1 to t{count} by a step that reads {0} and writes {1}."""
    return f"t0 = {first} " + " ".join(step.format(f"t{i}", f"t{i + 1}") for i in range(count))


def nested_functions() -> onnx.ModelProto:
    """Each calls the next one nine times."""
    calls = "a{0} = local.f{1}(a{2})"
    functions = ""
    for i in range(9):
        body = " ".join(calls.format(j + 1, i + 1, j) for j in range(9))
        functions += f'<domain: "local", opset_import: ["" : 21, "local" : 1]> f{i}(a0) => (a9) {{ {body} }}'
    functions += '<domain: "local", opset_import: ["" : 21]> f9(x) => (y) { y = Relu(x) }'
    return model("(float[2] x) => (float[2] y) { y = local.f0(x) }", functions=functions)


def deep_functions() -> onnx.ModelProto:
    functions = "".join(
        f'<domain: "local", opset_import: ["" : 21, "local" : 1]> f{i}(x) => (y) {{ y = local.f{i + 1}(x) }}'
        for i in range(80)
    )
    functions += '<domain: "local", opset_import: ["" : 21]> f80(x) => (y) { y = Relu(x) }'
    return model("(float[2] x) => (float[2] y) { y = local.f0(x) }", functions=functions)


def ranges() -> onnx.ModelProto:
    parts = " ".join(
        f"b{i} = Constant<value = int64 {{{16000000 + i}}}>() t{i} = Range(a, b{i}, c)" for i in range(90)
    )
    ends = "a = Constant<value = int64 {0}>() c = Constant<value = int64 {1}>()"
    return model(f"() => (int64[1] y) {{ {ends} {parts} y = Shape(t89) }}")


REFUSED = {
    "functions that call nine others, nine deep": (nested_functions, r"become more than 131072 nodes"),
    "functions 80 deep": (deep_functions, r"more than 64 deep in one another"),
    "many constants of 128 MB": (
        ranges,
        r"\(Range, .*: constants that are made while the model is read have more",
    ),
    "axes that are fed": (
        lambda: model("(float[2, 3] x, int64[2147483647] axes) => (float[n] y) { y = Unsqueeze(x, axes) }"),
        "2147483647 axes are given; tensors have 8 dimensions at most",
    ),
    "axes that a slice is fed": (
        lambda: model(
            "(float[3] x, int64[50000000] s, int64[50000000] e) => (float[n] y) { y = Slice(x, s, e) }"
        ),
        "50000000 axes are given; tensors have 8 dimensions at most",
    ),
    "axes that a sum is fed": (
        lambda: model(
            "(float[3] x, int64[50000000] axes) => (float[n] y) { y = ReduceSum<keepdims = 0>(x, axes) }"
        ),
        "50000000 axes are given; tensors have 8 dimensions at most",
    ),
    "axes that a border is fed": (
        lambda: model(
            "(float[3] x, int64[100000000] p, int64[50000000] axes) => (float[n] y) { y = Pad(x, p, , axes) }"
        ),
        "50000000 axes are given; tensors have 8 dimensions at most",
    ),
    "a shape that is fed": (
        lambda: model("(float[3] x, int64[50000000] s) => (float[n] y) { y = Reshape(x, s) }"),
        "50000000 extents of the result are given; tensors have 8 dimensions at most",
    ),
    "a shape to expand to that is fed": (
        lambda: model("(float[3] x, int64[50000000] s) => (float[n] y) { y = Expand(x, s) }"),
        "50000000 extents of the result are given; tensors have 8 dimensions at most",
    ),
    "sizes that are fed": (
        lambda: model("(int64[50000000] s) => (float[n] y) { y = ConstantOfShape(s) }"),
        "50000000 extents are asked for; 4096 are the most",
    ),
    "scales that are fed": (
        lambda: model("(float[1, 1, 2] x, float[50000000] s) => (float[n] y) { y = Resize(x, , s) }"),
        "50000000 places along an extent would be laid out; 16777216 are the most",
    ),
    "planes of a filter": (
        lambda: model(
            "(float[1, 1, 2000000000, 1, 1] x, float[1, 1, 1000000000, 1, 1] w) => (float[1] y) "
            "{ y = Conv(x, w) }"
        ),
        "1000000000 places along an extent would be laid out; 16777216 are the most",
    ),
    "parts of a product of integers": (
        lambda: model(
            "(uint8[1, 8000000000000] x, uint8[8000000000000, 1] w) => (int32[1] y) "
            "{ y = MatMulInteger(x, w) }"
        ),
        r"it would become more than \d+ operations",
    ),
    "a sequence backwards": (
        lambda: model("(float[8000000000, 1] x, int64[1] l) => (float[1] y) { y = ReverseSequence(x, l) }"),
        "8000000000 places along an extent would be laid out; 16777216 are the most",
    ),
    "an image that goes on": (
        lambda: model("""(float[1000000000000] x) => (float[1] y) {
            s = Constant<value = int64[2] {1, 1}>() y = Pad<mode = "wrap">(x, s) }"""),
        "places along an extent would be laid out",
    ),
    "weights of an image that shrinks": (
        lambda: model("""(float[1, 1, 16000000, 2] x) => (float[1] y) {
            s = Constant<value = float[4] {1, 1, 0.0000001, 1}>()
            y = Resize<mode = "linear", antialias = 1>(x, , s) }"""),
        "mode is linear with antialias=1, and the scale 1.0.*Export the model with antialias=0",
    ),
    "places of many signals that grow": (
        lambda: model(
            "(float[1, 1, 2] x) => (float[a, b, c] y) { s = Constant<value = float[3] {1, 1, 8000000}>() "
            + " ".join(f't{i} = Resize<mode = "nearest">(x, , s)' for i in range(40))
            + " y = Identity(t39) }"
        ),
        r"\(Resize, .*: constants that are made while the model is read have more",
    ),
    "weights of a signal that grows": (
        lambda: model("""(float[1, 1, 2] x) => (float[a, b, c] y) {
            s = Constant<value = float[3] {1, 1, 8000000}>() y = Resize<mode = "linear">(x, , s) }"""),
        "mode is linear with antialias=0, and the scale 8000000 .*Export the model with a scale nearer",
    ),
    "shapes with no elements behind them": (
        lambda: _with_initializer([2**40, 2**20]),
        "initializer 'w' cannot be read",
    ),
    "negative shapes": (lambda: _with_initializer([-2, -1024]), r"\[-2, -1024\]"),
}


def _with_initializer(dims: list[int]) -> onnx.ModelProto:
    made = model("(float[2] x) => (float[2] y) { y = Add(x, w) }")
    made.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=b"1234")
    return made


def doubled(times: int, rest: str) -> onnx.ModelProto:
    steps = chain(times, "Constant<value = float[2] {1, 2}>()", "{1} = Concat<axis = 0>({0}, {0})")
    return model(f"(float[2] x) => (float[q] y) {{ {steps} {rest} }}")


READ = {
    "a shape squared 70 times": lambda: model(
        "(float[n, m] x) => (float[a, b] y) { "
        + chain(70, "Shape(x)", "{1} = Mul({0}, {0})")
        + " y = Reshape(x, t70) }"
    ),
    "a loop of 10^9 iterations": lambda: model("""(float[2] x) => (float[2] y) {
        n = Constant<value = int64 {1000000000}>() c = Constant<value = bool {1}>()
        y = Loop(n, c, x) <body = b (int64 i, bool d, float[2] v) => (bool e, float[2] w) {
            e = Identity(d) w = Relu(v) }> }"""),
    "a constant doubled 40 times": lambda: doubled(40, "y = Identity(t40)"),
    "its first elements": lambda: doubled(
        40, "a = Constant<value = int64[1] {0}>() b = Constant<value = int64[1] {2}>() y = Slice(t40, a, b)"
    ),
    "400 constants of 64 MB": lambda: doubled(
        23,
        "u0 = Identity(t23) "
        + " ".join(f"u{i + 1} = Neg(u{i})" for i in range(400))
        + " y = ReduceSum(u400)",
    ),
    "a shape squared 70 times, given out": lambda: model(
        "(float[n, m] x) => (int64[2] y) { "
        + chain(70, "Shape(x)", "{1} = Mul({0}, {0})")
        + " y = Identity(t70) }"
    ),
    "a number beside an open extent squared 70 times": lambda: model(
        "(float[n] x) => (int64[2] y) { s = Shape(x) k = Constant<value = int64[1] {3}>() "
        + chain(70, "Concat<axis = 0>(s, k)", "{1} = Mul({0}, {0})")
        + " y = Identity(t70) }"
    ),
    "products of sums of extents": lambda: model(
        "(float[a, b, c, d, e, f] x) => (int64[1] y) { s = Shape(x) "
        + chain(70, "ReduceSum(s)", "{1} = Mul({0}, {0})")
        + " y = Identity(t70) }"
    ),
    "outer products of lists of numbers": lambda: model(
        "() => (int64[a, b] y) { k = Constant<value = int64[1] {2000}>() "
        "m = Constant<value = int64[2] {2000, 1}>() "
        "v = ConstantOfShape<value = int64[1] {3}>(k) w = Reshape(v, m) "
        + " ".join(f"t{i} = Mul(v, w)" for i in range(100))
        + f" y = Sum({', '.join(f't{i}' for i in range(100))}) }}"
    ),
    "10^12 zeros": lambda: model(
        "() => (float[a, b] y) { s = Constant<value = int64[2] {1000000, 1000000}>() y = ConstantOfShape(s) }"
    ),
    "10^14 times one element": lambda: model(
        "(float[1] x) => (float[a, b] y) { s = Constant<value = int64[2] {100000000, 1000000}>() "
        "y = Expand(x, s) }"
    ),
    "2 * 10^12 elements of two": lambda: model(
        "() => (float[a] y) { s = Constant<value = int64[1] {10000}>() "
        + chain(3, "Constant<value = float[2] {1, 2}>()", "{1} = Tile({0}, s)")
        + " y = Identity(t3) }"
    ),
    "padding of 10^12 elements": lambda: model("""() => (float[b] y) {
        s = Constant<value = int64[2] {1000000000000, 1000000000000}>()
        k = Constant<value = float[2] {1, 2}>() y = Pad(k, s) }"""),
    "an image grown 8 000 000 times": lambda: model("""(float[1, 1, 2, 2] x) => (float[a, b, c, d] y) {
        s = Constant<value = float[4] {1, 1, 8000000, 8000000}>() y = Resize<mode = "linear">(x, , s) }"""),
    "names of extents within one another": lambda: model(
        "(float[1, 1, a, b] x) => (float[p, q, r, s] t30) { t0 = Relu(x) "
        + " ".join(
            f"u{i} = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(t{i}) "
            f"t{i + 1} = Concat<axis = 2>(u{i}, u{i})"
            for i in range(30)
        )
        + " }"
    ),
    "20,000 nodes in a row": lambda: _row("Relu", ["t0"], 20_000),
    "2,000 constants in a row": lambda: _row("Exp", [], 2_000),
    "branches 30 deep": lambda: _branches(30),
    "places of maxima in large windows": lambda: model(
        "(float[1, 1, 4096, 4096] x) => (float[1] y, int64[1] z) "
        "{ y, z = MaxPool<kernel_shape = [4000, 4000]>(x) }"
    ),
}


def _row(op: str, inputs: list[str], count: int) -> onnx.ModelProto:
    nodes = [helper.make_node(op, [f"t{i}"], [f"t{i + 1}"]) for i in range(count)]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("t0", f"t{count}")]
    constants = [] if inputs else [numpy_helper.from_array(np.ones(2, np.float32), "t0")]
    graph = helper.make_graph(nodes, "g", info[: len(inputs)], info[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _branches(depth: int) -> onnx.ModelProto:
    inner = "y0 = Identity(x)"
    for i in range(depth):
        inner = f"""y{i + 1} = If (c) <
            then_branch = t () => (float[2] y{i}) {{ {inner} }},
            else_branch = e () => (float[2] z{i}) {{ z{i} = Neg(x) }}>"""
    return model(f"(float[2] x) => (float[2] y{depth}) {{ c = Constant<value = bool {{1}}>() {inner} }}")


def test_no_small_model_takes_much_time_or_memory(tmp_path) -> None:
    """In a program of its own, which may have so much memory and no more."""
    builders = {**READ, **{name: build for name, (build, _) in REFUSED.items()}}
    for i, build in enumerate(builders.values()):
        (tmp_path / f"{i}.onnx").write_bytes(build().SerializeToString())
    script = f"""
import sys, time, headrace
for i in range({len(builders)}):
    started, said = time.perf_counter(), ""
    try:
        headrace.load(r"{tmp_path}/%d.onnx" % i, device="cpu")
    except ValueError as error:
        said = str(error)
    except BaseException as error:
        said = "another error: " + type(error).__name__
    print(i, round(time.perf_counter() - started, 1), said.replace("\\n", " "), flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        timeout=600,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY)),
    )
    assert done.returncode == 0, (done.returncode, done.stdout[-300:], done.stderr[-2000:])
    for name, line in zip(builders, done.stdout.splitlines(), strict=True):
        _, seconds, said = line.split(" ", 2)
        assert float(seconds) < SLOWEST, (name, line)
        assert "another error" not in said and "not enough memory" not in said, (name, line)
        assert bool(said) == (name in REFUSED), (name, line)


@pytest.mark.parametrize("name", REFUSED)
def test_the_limit_is_named(name: str) -> None:
    build, message = REFUSED[name]
    started = time.perf_counter()
    with pytest.raises(ValueError, match=message):
        headrace.load(build(), device="cpu")
    assert time.perf_counter() - started < SLOWEST


def test_numbers_that_grow_beyond_what_is_followed_are_computed_at_run_time() -> None:
    made = READ["a number beside an open extent squared 70 times"]()
    wrapped = pow(3, 2**70, 2**64)  # which is 1
    assert headrace.load(made, device="cpu")(np.ones(1, np.float32))["y"].tolist() == [1, wrapped]
    made = READ["products of sums of extents"]()
    assert headrace.load(made, device="cpu")(np.ones((1,) * 6, np.float32))["y"].shape == (1,)


def test_where_reading_takes_more_memory_than_there_is_the_node_is_named(tmp_path) -> None:
    """In a program of its own, which may have little more than it takes for itself."""
    made = model("""() => (int64[1] y) {
        a = Constant<value = int64 {0}>() b = Constant<value = int64 {16000000}>()
        c = Constant<value = int64 {1}>() t = Range(a, b, c) y = Shape(t) }""")
    (tmp_path / "made.onnx").write_bytes(made.SerializeToString())
    small = model("(float[2] x) => (float[2] y) { y = Relu(x) }")
    (tmp_path / "small.onnx").write_bytes(small.SerializeToString())
    script = f"""
import resource, headrace
headrace.load(r"{tmp_path}/small.onnx", device="cpu")  # loads what Python loads at the first time
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + (100 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
try:
    headrace.load(r"{tmp_path}/made.onnx", device="cpu")
except MemoryError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert "(Range, ai.onnx opset 21): there is not enough memory" in done.stdout, done.stdout


@pytest.mark.parametrize("field", ["domain", "op_type", "input", "node_name", "dim_param", "initializer"])
def test_names_that_are_no_utf8_are_named(field: str) -> None:
    made = model("(float[QQ] x) => (float[n] y) <float w = {1}> { y = Add(x, w) }")
    made.opset_import.add(domain="QQ" if field == "domain" else "ab", version=1)
    made.graph.node[0].name = "QQ" if field == "node_name" else "n"
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "QQ" if field == "dim_param" else "n"
    if field == "op_type":
        made.graph.node[0].op_type = "QQ"
    if field == "input":
        made.graph.node[0].input[0] = "QQ"
    if field == "initializer":
        made.graph.initializer[0].name = "QQ"
    made.doc_string = "a comment"
    content = made.SerializeToString()
    assert content.count(b"QQ") == 1
    with pytest.raises(ValueError, match=r"of an? \w+ '.*' is no UTF-8; the file is damaged"):
        headrace.load(content.replace(b"QQ", b"\xff\xfe"))
    assert headrace.load(
        model("(float[n] x) => (float[n] y) { y = Relu(x) }").SerializeToString() + b"\x32\x02\xff\xfe"
    )
