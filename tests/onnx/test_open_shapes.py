"""What follows from shapes is computed when they are known: the same as ONNX Runtime at every shape."""

from __future__ import annotations

import headrace
import numpy as np
import open_shape_networks  # noqa: F401  (adds cases)
import pytest
from onnx import parser
from open_shape_cases import CASES, Case
from peers import assert_same, on_onnx_runtime


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operands_follow_from_open_shapes(case: Case) -> None:
    model = case.model()
    loaded = headrace.load(model, device="cpu")
    assert any(isinstance(d, str) for tensor in loaded.inputs for d in tensor.shape)
    for i in range(len(case.shapes)):
        feeds = case.feeds(i)
        actual = loaded(feeds)
        for name, expected in on_onnx_runtime(model, feeds).items():
            assert_same(actual[name], expected, case.tolerance)


def test_the_same_mask_counts_its_places_once() -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[n] x) => (float[k] y) {
        zero = Constant<value_floats = [0.0]>() m = Greater(x, zero) a = NonZero(m) b = NonZero(m)
        ta = Transpose(a) tb = Transpose(b) u = GatherND(x, ta) v = GatherND(x, tb) y = Add(u, v) }"""
    loaded = headrace.load(parser.parse_model(text), device="cpu")
    x = np.array([1, -2, 3, 0, 5], np.float32)
    np.testing.assert_array_equal(loaded(x)["y"], [2, 6, 10])
    assert loaded.outputs[0].shape == ["count1"]


@pytest.mark.parametrize("sizes", [(2, 3, 3, 1, 4, 2), (2, 3, 3, 4, 4, 2), (2, 1, 3, 4, 1, 2)])
def test_a_letter_of_einsum_may_be_one_of_an_operand_whatever_its_names(sizes: tuple[int, ...]) -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[a, b] x, float[c, d] y, float[e, f] z) => (float w) {
        w = Einsum<equation = "ab,bc,ca->">(x, y, z) }"""
    model, rng = parser.parse_model(text), np.random.default_rng(0)
    arrays = [rng.normal(size=sizes[i : i + 2]).astype(np.float32) for i in (0, 2, 4)]
    feeds = dict(zip("xyz", arrays, strict=True))
    actual = headrace.load(model, device="cpu")(feeds)["w"]
    np.testing.assert_allclose(actual, on_onnx_runtime(model, feeds)["w"], rtol=1e-5)


def test_extents_of_a_letter_of_einsum_that_differ_are_named() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[2, 3] x, float[4, 5] y) => (float[2, 5] w) { w = Einsum<equation = "ab,bc->ac">(x, y) }"""
    with pytest.raises(ValueError, match=r"Einsum, .*'b' stands for the extents 3 and 4"):
        headrace.load(parser.parse_model(text), device="cpu")
