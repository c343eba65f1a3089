"""Casts between all dtypes: one answer, ONNX Runtime's on x86, at run time and while a model is read."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from headrace._arrays import dtype_of
from onnx import TensorProto, helper, numpy_helper
from peers import on_headrace, on_onnx_runtime

# fmt: off
CODES = {
    "f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16,
    "f64": TensorProto.DOUBLE, "bool": TensorProto.BOOL, "i4": TensorProto.INT4, "u4": TensorProto.UINT4,
    "i8": TensorProto.INT8, "u8": TensorProto.UINT8, "i16": TensorProto.INT16, "u16": TensorProto.UINT16,
    "i32": TensorProto.INT32, "u32": TensorProto.UINT32, "i64": TensorProto.INT64, "u64": TensorProto.UINT64,
}
# fmt: on
SMALL_FLOATS = {
    "f8e4m3fn": TensorProto.FLOAT8E4M3FN,
    "f8e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ,
    "f8e5m2": TensorProto.FLOAT8E5M2,
    "f8e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ,
    "f8e8m0": TensorProto.FLOAT8E8M0,
    "f4e2m1": TensorProto.FLOAT4E2M1,
}
# Which ONNX Runtime's Python does not have, or not yet.
NARROW = {**SMALL_FLOATS, "i2": TensorProto.INT2, "u2": TensorProto.UINT2}
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


def _narrow_cast(x: np.ndarray, name: str, is_constant: bool, saturate: int = 1) -> np.ndarray:
    """There and back, by NumPy's type for it."""
    code = NARROW[name]
    given = helper.np_dtype_to_tensor_dtype(x.dtype)
    options = {"saturate": saturate} if name.startswith("f8") else {}
    node = helper.make_node("Cast", ["x"], ["y"], to=code, **options)
    inputs = [] if is_constant else [helper.make_tensor_value_info("x", given, ["n"])]
    constants = [numpy_helper.from_array(x, "x")] if is_constant else []
    results = [helper.make_tensor_value_info("y", code, ["n"])]
    graph = helper.make_graph([node], "case", inputs, results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    y = on_headrace(model, {} if is_constant else {"x": x})["y"]
    assert y.dtype == dtype_of(name)
    return y.astype(np.float32)


@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("name", [name for name in SMALL_FLOATS if name != "f8e8m0"])
def test_floats_of_few_bits_are_the_nearest_ones(name: str, is_constant: bool) -> None:
    """ml_dtypes does not saturate; numbers within the range are the same."""
    dtype = dtype_of(name)
    every = np.arange(16 if name == "f4e2m1" else 256).astype(np.uint8).view(dtype).astype(np.float32)
    every = np.unique(every[np.isfinite(every)])
    between = (every[:-1] + every[1:]) / 2
    x = np.concatenate(
        [every, between, np.nextafter(between, np.float32(9e9)), np.nextafter(between, -every[-1:])]
    )
    x = x.astype(np.float32)
    np.testing.assert_array_equal(_narrow_cast(x, name, is_constant), x.astype(dtype).astype(np.float32))
    beyond = np.array([1e6, -1e6, np.inf, -np.inf], np.float32)
    largest = every.max()
    assert _narrow_cast(beyond, name, is_constant).tolist() == [largest, -largest, largest, -largest]


def test_floats_of_eight_bits_that_do_not_saturate() -> None:
    beyond = np.array([1e6, -np.inf], np.float32)
    assert _narrow_cast(beyond, "f8e5m2", False, 0).tolist() == [np.inf, -np.inf]
    for name in ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2fnuz"):
        assert np.isnan(_narrow_cast(beyond, name, False, 0)).all()


@pytest.mark.parametrize("is_constant", [False, True])
def test_integers_of_two_bits_keep_the_low_bits(is_constant: bool) -> None:
    x = np.array([0, 1, 2, 3, 4, 5, -1, -2, -3], np.int32)
    assert _narrow_cast(x, "u2", is_constant).tolist() == [0, 1, 2, 3, 0, 1, 3, 2, 1]
    assert _narrow_cast(x, "i2", is_constant).tolist() == [0, 1, -2, -1, 0, 1, -1, -2, 1]


def test_the_bits_of_a_type_are_read_as_another() -> None:
    x = np.array([1.0, -0.0, np.inf], np.float32)
    for code, dtype in ((TensorProto.INT32, np.int32), (TensorProto.UINT32, np.uint32)):
        node = helper.make_node("BitCast", ["x"], ["y"], to=code)
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
        results = [helper.make_tensor_value_info("y", code, ["n"])]
        graph = helper.make_graph([node], "case", [given], results)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13)
        y = on_headrace(model, {"x": x})["y"]
        assert y.dtype == dtype and np.array_equal(y, x.view(dtype))
