"""Graphs of several random operations give what NumPy gives, and so do they exported to ONNX."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnxruntime
import webnn
from headrace import _onnx_export
from headrace._core import view
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

onnxruntime.set_default_logger_severity(3)
CONTEXT = webnn.ML().create_context(accelerated=False)

bounded = settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@dataclass
class Value:
    """An operand with what NumPy says that it holds; floats are kept in float64."""

    operand: webnn.MLOperand
    array: np.ndarray


Step = Callable[[webnn.MLGraphBuilder, Value, st.DataObject], Value]

UNARY = {
    "abs": np.abs,
    "neg": np.negative,
    "relu": lambda x: np.maximum(x, 0),
    "identity": lambda x: x,
}
REAL_UNARY = {
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sin": np.sin,
    "softsign": lambda x: x / (1 + np.abs(x)),
}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
REDUCTIONS = {"reduce_sum": np.sum, "reduce_max": np.max, "reduce_min": np.min}
COMPARISONS = {"greater": np.greater, "equal": np.equal, "lesser_or_equal": np.less_equal}


def is_real(value: Value) -> bool:
    return value.operand.data_type == "float32"


def unary(b: webnn.MLGraphBuilder, x: Value, data: st.DataObject) -> Value:
    functions = UNARY | (REAL_UNARY if is_real(x) else {})
    name = data.draw(st.sampled_from(sorted(functions)))
    return Value(getattr(b, name)(x.operand), functions[name](x.array))


def with_constant(b: webnn.MLGraphBuilder, x: Value, data: st.DataObject) -> Value:
    """A binary operation whose constant has some of the dimensions, and extents of 1 among them."""
    name = data.draw(st.sampled_from(sorted(BINARY)))
    kept = data.draw(st.integers(0, x.array.ndim))
    shape = [extent if data.draw(st.booleans()) else 1 for extent in x.array.shape[x.array.ndim - kept :]]
    seed = data.draw(st.integers(0, 99))
    constant = np.asarray(np.random.default_rng(seed).integers(-2, 3, shape).astype(x.operand.data_type))
    operands = [x.operand, b.constant(constant)]
    arrays = [x.array, constant.astype(x.array.dtype)]
    if data.draw(st.booleans()):
        operands.reverse()
        arrays.reverse()
    return Value(getattr(b, name)(*operands), BINARY[name](*arrays))


def with_itself(b: webnn.MLGraphBuilder, x: Value, data: st.DataObject) -> Value:
    name = data.draw(st.sampled_from(sorted(BINARY)))
    return Value(getattr(b, name)(x.operand, x.operand), BINARY[name](x.array, x.array))


def reduce(b: webnn.MLGraphBuilder, x: Value, data: st.DataObject) -> Value:
    name = data.draw(st.sampled_from(sorted(REDUCTIONS)))
    axes = data.draw(st.lists(st.integers(0, x.array.ndim - 1), unique=True)) if x.array.ndim else []
    keep = data.draw(st.booleans())
    y = getattr(b, name)(x.operand, axes=axes, keep_dimensions=keep)
    kwargs = {"dtype": x.array.dtype} if name == "reduce_sum" else {}
    return Value(y, np.asarray(REDUCTIONS[name](x.array, axis=tuple(axes), keepdims=keep, **kwargs)))


def transpose(b: webnn.MLGraphBuilder, x: Value, data: st.DataObject) -> Value:
    order = data.draw(st.permutations(range(x.array.ndim)))
    return Value(b.transpose(x.operand, permutation=list(order)), x.array.transpose(order))


def reshape(b: webnn.MLGraphBuilder, x: Value, data: st.DataObject) -> Value:
    left, shape = x.array.size, []
    while left > 1 and len(shape) < 3:
        shape.append(data.draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0])))
        left //= shape[-1]
    shape.append(left)
    return Value(b.reshape(x.operand, shape), x.array.reshape(shape))


def slice_(b: webnn.MLGraphBuilder, x: Value, data: st.DataObject) -> Value:
    starts = [data.draw(st.integers(0, extent - 1)) for extent in x.array.shape]
    sizes = [data.draw(st.integers(1, e - s)) for e, s in zip(x.array.shape, starts, strict=True)]
    strides = [data.draw(st.integers(1, 2)) for _ in starts]
    parts = tuple(slice(s, s + n, k) for s, n, k in zip(starts, sizes, strides, strict=True))
    return Value(b.slice(x.operand, starts, sizes, strides=strides), x.array[parts])


def concat(b: webnn.MLGraphBuilder, x: Value, data: st.DataObject) -> Value:
    if not x.array.ndim:
        return unary(b, x, data)
    axis = data.draw(st.integers(0, x.array.ndim - 1))
    other = b.neg(x.operand)
    return Value(b.concat([x.operand, other], axis), np.concatenate([x.array, -x.array], axis))


def matmul(b: webnn.MLGraphBuilder, x: Value, data: st.DataObject) -> Value:
    if not is_real(x) or x.array.ndim < 2:
        return unary(b, x, data)
    columns, seed = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 99))
    weight = np.random.default_rng(seed).uniform(-1, 1, (x.array.shape[-1], columns)).astype(np.float32)
    return Value(b.matmul(x.operand, b.constant(weight)), x.array @ weight.astype(np.float64))


def select(b: webnn.MLGraphBuilder, x: Value, data: st.DataObject) -> Value:
    """A comparison that chooses between the value and its negation; not with nearly equal numbers."""
    name = data.draw(st.sampled_from(sorted(COMPARISONS)))
    limit = np.asarray(0.4375 if is_real(x) else 1, x.operand.data_type)
    flags = COMPARISONS[name](x.array, limit)
    if is_real(x) and np.any(np.abs(x.array - limit) < 1e-3):
        return unary(b, x, data)
    chosen = b.where(getattr(b, name)(x.operand, b.constant(limit)), x.operand, b.neg(x.operand))
    return Value(chosen, np.where(flags, x.array, -x.array))


def softmax(b: webnn.MLGraphBuilder, x: Value, data: st.DataObject) -> Value:
    if not is_real(x) or not x.array.ndim:
        return unary(b, x, data)
    axis = data.draw(st.integers(0, x.array.ndim - 1))
    powers = np.exp(x.array - x.array.max(axis, keepdims=True))
    return Value(b.softmax(x.operand, axis), powers / powers.sum(axis, keepdims=True))


STEPS: list[Step] = [
    unary,
    with_constant,
    with_itself,
    reduce,
    transpose,
    reshape,
    slice_,
    concat,
    matmul,
    select,
    softmax,
]


def assert_close(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.shape == expected.shape
    if actual.dtype == np.float32:
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4 * scale)
    else:
        np.testing.assert_array_equal(actual, expected)


def onnx_runtime(graph: webnn.MLGraph, x: np.ndarray) -> dict[str, np.ndarray]:
    model, weights = _onnx_export.export(view(graph))
    for tensor, data in weights:
        tensor.raw_data = data.tobytes()
        model.graph.initializer.append(tensor)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"x": x}), strict=True))


@bounded
@given(st.data())
def test_random_graphs_equal_numpy_and_onnx_runtime(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["float32", "float32", "int32", "int64", "int8"]))
    shape = data.draw(st.lists(st.integers(1, 4), max_size=4))
    array = np.asarray(np.random.default_rng(data.draw(st.integers(0, 99))).integers(-8, 9, shape)) / 4
    array = np.asarray(array.astype(dtype))
    builder = CONTEXT.create_graph_builder()
    x = Value(builder.input("x", shape, dtype), array.astype(np.float64) if dtype == "float32" else array)
    first = last = unary(builder, x, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # integers that wrap
        for step in data.draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=6)):
            if last.array.size > 500 or (np.abs(last.array.astype(np.float64)).max() > 1e6 and is_real(last)):
                break
            last = step(builder, last, data)
    graph = builder.build({"first": first.operand, "last": last.operand})
    results = CONTEXT.compute(graph, {"x": array})
    exported = onnx_runtime(graph, array)
    for name, value in (("first", first), ("last", last)):
        assert_close(results[name], value.array)
        assert_close(exported[name], value.array)
