"""Casts between all dtypes: one answer, ONNX Runtime's on x86, at run time and while a model is read."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from headrace.onnx.source import DTYPES
from onnx import TensorProto, helper, numpy_helper
from peers import on_headrace, on_onnx_runtime

CODES = {name: code for code, name in DTYPES.items()}
# What arrays hold for dtypes that NumPy lacks; the model casts between them.
CARRIERS = {"bf16": "f32", "i4": "i8", "u4": "u8"}
FLOATS = ("f32", "f16", "bf16", "f64")
# fmt: off
EDGES = [
    0, -0.0, 0.5, -0.5, 0.75, -0.9, 0.49999997, 1.5, 2.5, -2.5, 3.5, 7, 8, 9, -8, -9, 15, 16, 17, -17,
    127.9, 128, -128.9, -129, 200, 255.9, 256, 300, -300, 32767.5, 32768, -32769, 65504, -40000, 65536,
    70000, 1e5, -1e5, 8388609, 2147483520, 2**31, -(2**31), -(2**31) - 65536, 3e9, -3e9, 4294967040, 2**32,
    5e9, 1e12, 2**63 - 2**39, 2**63, -(2**63), 1e19, 2**64, -1e19, 1e20, -1e20, 1e30, 1e39,
    np.inf, -np.inf, np.nan,
]
# fmt: on


def _array_dtype(name: str) -> np.dtype:
    return helper.tensor_dtype_to_np_dtype(CODES[CARRIERS.get(name, name)])


def _values(source: str, target: str) -> np.ndarray:
    dtype = _array_dtype(source)
    if source == "bool":
        return np.array([True, False])
    if source not in FLOATS:
        info = np.iinfo(dtype)
        spread = (*range(-20, 21), 100, 127, 128, 200, 255, 256, -129, 70000, 2**31, 2**40 + 3)
        ends = (info.min, info.max, info.max - 1, info.min + 1)
        return np.array([*ends, *(n for n in spread if info.min <= n <= info.max)], dtype)
    with np.errstate(over="ignore"):
        x = np.array(EDGES, np.float64).astype(helper.tensor_dtype_to_np_dtype(CODES[source])).astype(dtype)
    wide = x.astype(np.float64)
    # To u32, ONNX Runtime's ways beyond these depend on where an element lies.
    return x[(wide >= -(2**31)) & (wide < 2**32)] if target == "u32" else x


def _model(source: str, target: str, constant: np.ndarray | None) -> onnx.ModelProto:
    """One cast, between those to and from dtypes that arrays have."""
    carried, given = CODES[CARRIERS.get(target, target)], CODES[CARRIERS.get(source, source)]
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=CODES[source]),
        helper.make_node("Cast", ["a"], ["b"], "cast", to=CODES[target]),
        helper.make_node("Cast", ["b"], ["y"], to=carried),
    ]
    inputs = [helper.make_tensor_value_info("x", given, ["n"])] if constant is None else []
    constants = [] if constant is None else [numpy_helper.from_array(constant, "x")]
    results = [helper.make_tensor_value_info("y", carried, ["n"])]
    graph = helper.make_graph(nodes, "case", inputs, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _bits(x: np.ndarray) -> list:
    return [str(v) for v in x.tolist()]


@pytest.mark.parametrize("source", CODES)
def test_a_cast_has_one_answer_wherever_it_is_computed(source: str) -> None:
    for target in CODES:
        x = _values(source, target)
        if source != "bool" and target in ("i4", "u4") and source in ("i4", "u4"):
            x = x[(x >= 0) & (x < 8)]
        expected = on_onnx_runtime(_model(source, target, None), {"x": x})["y"]
        outcomes = {
            "at run time": on_headrace(_model(source, target, None), {"x": x})["y"],
            "as a constant": on_headrace(_model(source, target, x), {})["y"],
            "of many": on_headrace(_model(source, target, np.tile(x, 5000)), {})["y"][-len(x) :],
        }
        for what, actual in outcomes.items():
            wrong = [
                f"{v}: {a}, not {e}"
                for v, a, e in zip(x.tolist(), _bits(actual), _bits(expected), strict=True)
                if a != e
            ]
            assert actual.dtype == expected.dtype
            assert not wrong, f"{source} to {target} {what}: {wrong}"


def test_fractions_become_the_nearest_integer_of_four_bits() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 6.75, 7.5, 15.5, -8.75], np.float32)
    signed, unsigned = (on_headrace(_model("f32", to, None), {"x": x})["y"] for to in ("i4", "u4"))
    assert signed.tolist() == [1, 2, 3, -1, -2, 0, 7, -8, 0, 7]
    assert unsigned.tolist() == [1, 2, 3, 15, 14, 0, 7, 8, 0, 7]


def test_cast_like_casts_as_cast_does() -> None:
    x = np.array([300, -1.5, 3e9, np.nan], np.float32)
    for code in (TensorProto.UINT8, TensorProto.INT32, TensorProto.BOOL):
        node = helper.make_node("CastLike", ["x", "like"], ["y"])
        like = helper.make_tensor("like", code, [1], [1])
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
        results = [helper.make_tensor_value_info("y", code, ["n"])]
        graph = helper.make_graph([node], "case", [given], results, [like])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        np.testing.assert_array_equal(
            on_headrace(model, {"x": x})["y"], on_onnx_runtime(model, {"x": x})["y"]
        )
