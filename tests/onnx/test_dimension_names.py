"""Names of dimensions that look like expressions, or like nothing at all, are names."""

from __future__ import annotations

import subprocess
import sys

import headrace
import numpy as np
import onnx
from headrace._core import Extent
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

NAMES = [
    "floor", "a*b", "2", "min(a,b)", "Max(a, 2)", "(n)", "n-1", "n//2", "floor(n*0.7)", "it's", "'n'",
    "batch size", " n ", "batch-size", "x.0", "a=b", 'say "n"', "back\\slash", "größe", "#", "...#",
    "x" * 600, "count0", "-", "Mod", "two\nlines", "{n}", "%d",
]  # fmt: skip
pieces = st.sampled_from(
    ["n", "2", "floor", "(", ")", "'", "*", "//", " + ", "-", ",", " ", "=", '"', "\\", "Max("]
)
names = st.one_of(st.sampled_from(NAMES), st.lists(pieces, min_size=1, max_size=6).map("".join))


def _model(first: str, second: str) -> onnx.ModelProto:
    """y: rows twice, each column with its neighbour; z: half of the columns. Of x [first, second]."""
    node, number = helper.make_node, lambda name, *values: helper.make_tensor(name, 7, [len(values)], values)
    nodes = [
        node("Concat", ["x", "x"], ["twice"], axis=0),
        node("Slice", ["twice", "one", "end", "one"], ["after"]),
        node("Slice", ["twice", "zero", "minus", "one"], ["before"]),
        node("Add", ["after", "before"], ["y"]),
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "one"], ["columns"]),
        node("Div", ["columns", "two"], ["half"]),
        node("Slice", ["x", "zero", "half", "one"], ["z"]),
    ]
    constants = {"zero": [0], "one": [1], "two": [2], "minus": [-1], "end": [2**62]}
    graph = helper.make_graph(
        nodes,
        "named",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [first, second])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "yz"],
        [number(name, *values) for name, values in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _check(model: headrace.Model) -> None:
    for rows, columns in ((2, 5), (3, 4)):
        x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        results = model(x)
        twice = np.concatenate([x, x])
        np.testing.assert_array_equal(results["y"], twice[:, 1:] + twice[:, :-1])
        np.testing.assert_array_equal(results["z"], x[:, : columns // 2])


@settings(max_examples=25, deadline=None, derandomize=True)
@given(names, names)
def test_any_name_survives_a_model_and_its_graph_files(tmp_path_factory, first: str, second: str) -> None:
    if first == second:
        second += "'"
    folder = tmp_path_factory.mktemp("names")
    model = headrace.load(_model(first, second), device="cpu")
    _check(model)
    for extension in ("hrg", "json", "webnn"):
        model.save(folder / f"graph.{extension}")
        again = headrace.load(folder / f"graph.{extension}", device="cpu")
        _check(again)
        assert again.inputs[0].shape == model.inputs[0].shape
        if len(first) < 500:
            assert again.inputs[0].shape[0] == first
    fixed = headrace.load(_model(first, second), device="cpu", dimensions={first: 2})
    assert fixed.inputs[0].shape[0] == 2
    np.testing.assert_array_equal(fixed(np.ones((2, 3), np.float32))["y"], np.full((4, 2), 2, np.float32))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(names, names)
def test_arithmetic_with_any_name_has_the_values_of_numbers(first: str, second: str) -> None:
    a, b = Extent.named(first), Extent.named(second)
    assert a.equals(b) is (True if first == second else None)
    sizes = {a.symbols[0]: 7, b.symbols[0]: 5} if first != second else {a.symbols[0]: 7}
    other = 5 if first != second else 7
    if len(first) < 500:
        assert a.names == [first]
    whole = Extent.largest([a * 3 - b, a // 2]) + (a * b + 1) // 4
    assert whole.evaluate(sizes) == max(21 - other, 3) + (7 * other + 1) // 4
    assert str(Extent.symbol(str(whole))) == str(whole)


def test_sums_of_other_dimensions_are_sums() -> None:
    """Exporters write the length of a cache after a step so."""
    node = helper.make_node("Add", ["scores", "mask"], ["y"])
    shapes = {"scores": ["past + 1"], "mask": ["past+1"], "x": ["past"]}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    results = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "sums", inputs, results)
    model = headrace.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), device="cpu")
    assert model.inputs[0].shape == model.inputs[1].shape == ["(past+1)"]
    one = np.ones(4, np.float32)
    np.testing.assert_array_equal(model(one, one, one[1:])["y"], one * 2)


def test_an_error_says_the_name_and_the_option_as_they_are_written(tmp_path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_model("a b", "it's"), path)
    program = [sys.executable, "-m", "headrace", "convert", str(path), str(tmp_path / "g.hrg")]
    done = subprocess.run(
        [*program, "--dimension", "a b=2", "--dimension", "it's=4"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert headrace.load(tmp_path / "g.hrg", device="cpu").inputs[0].shape == [2, 4]
    done = subprocess.run([*program, "--dimension", "ab=2"], capture_output=True, text=True)
    assert done.returncode == 1 and "a b, it's" in done.stderr
