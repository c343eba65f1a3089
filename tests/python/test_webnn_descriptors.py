"""The specification's descriptors and spellings, where Python has parameters."""

import numpy as np
import pytest
import webnn

FOUR = np.arange(4, dtype=np.float32).reshape(2, 2)
SQUARE = {"dataType": "float32", "shape": [2, 2]}


def values(context, builder, constant):
    return context.compute(builder.build({"y": builder.identity(constant)}), {})["y"]


@pytest.mark.parametrize("given", [{"powerPreference": "low-power"}, {"power_preference": "low-power"}])
def test_contexts_take_options_as_a_dictionary_or_by_name(given):
    assert webnn.ML().create_context(given).power_preference == "low-power"
    assert webnn.ML().createContext(**given, accelerated=False).power_preference == "low-power"


def test_a_dictionary_of_options_may_have_those_that_are_ours():
    assert webnn.ML().create_context({"accelerated": False, "device": "cpu", "threads": 1}).device == "cpu"


def test_operators_take_their_options_as_a_dictionary_too(context, builder):
    x = builder.input("x", [1, 1, 2, 2], "float32")
    w = builder.constant(np.ones((1, 1, 2, 2), np.float32))
    y = builder.conv2d(x, w, {"padding": [1, 1, 1, 1], "label": "grown"})
    assert y.shape == [1, 1, 3, 3]


def test_inputs_take_numpys_dtypes(builder):
    assert builder.input("x", [2], np.float16).data_type == "float16"


def test_inputs_take_a_descriptor(context, builder):
    x = builder.input("x", {"dataType": "int32", "shape": [{"name": "n", "maxSize": 4}]})
    scalar = builder.input("s", {"dataType": "int32"})
    graph = builder.build({"y": builder.add(x, scalar)})
    result = context.compute(graph, {"x": np.array([1, 2], np.int32), "s": np.int32(3)})["y"]
    assert (result.tolist(), result.dtype) == ([4, 5], np.int32)


@pytest.mark.parametrize("data", [FOUR, FOUR.reshape(-1), FOUR.tolist(), FOUR.tobytes(), bytearray(FOUR)])
def test_constants_and_constant_tensors_take_a_descriptor_and_data(context, builder, data):
    np.testing.assert_array_equal(values(context, builder, builder.constant(SQUARE, data)), FOUR)
    tensor = context.createConstantTensor(SQUARE, data)
    np.testing.assert_array_equal(values(context, builder, builder.constant(tensor)), FOUR)


def test_bytes_of_four_bit_elements_are_packed(context, builder):
    nibbles = builder.constant({"dataType": "int4", "shape": [3]}, bytes([0xF1, 0x02]))
    given = context.compute(builder.build({"y": builder.cast(nibbles, "int32")}), {})["y"]
    assert given.tolist() == [1, -1, 2]


def test_scalars_take_a_data_type_and_a_number(context, builder):
    result = values(context, builder, builder.constant("int8", -3))
    assert (result.item(), result.dtype, result.shape) == (-3, np.int8, ())


REFUSED = [
    (lambda c, b: webnn.ML().create_context(power="low"), TypeError, "unknown option 'power'"),
    (lambda c, b: webnn.ML().create_context(thread=1), TypeError, "did you mean 'threads'"),
    (lambda c, b: b.constant(np.ones(3)), ValueError, "the array is float64, which WebNN does not have"),
    (lambda c, b: b.input("x", ["batch", 3], "float32"), TypeError, r"shape\[0\] is 'batch'.*maxSize"),
    (
        lambda c, b: webnn.ML().create_context({"powerPreference": "low"}),
        ValueError,
        "power preference 'low'",
    ),
    (lambda c, b: webnn.ML().create_context(host_timeout_ms=-1), ValueError, "host_timeout_ms is -1"),
    (lambda c, b: b.input("x", {"shape": [2]}), TypeError, "input: the descriptor .* lacks dataType"),
    (lambda c, b: b.input("x", SQUARE, "float32"), TypeError, "brings its own data type"),
    (lambda c, b: b.input("x", [2]), TypeError, "input: data_type is missing"),
    (lambda c, b: b.input("x", {"dataType": "int8", "shape": 2}), TypeError, "shape is 2"),
    (lambda c, b: b.constant(SQUARE), TypeError, "constant: after a descriptor comes the data"),
    (lambda c, b: b.constant(SQUARE, FOUR, "float32"), TypeError, "and nothing else"),
    (lambda c, b: b.constant("float32"), TypeError, "after the data type float32 comes a number"),
    (lambda c, b: b.constant({"datatype": "int8"}, 1), TypeError, "constant: unknown option 'datatype'"),
    (lambda c, b: b.constant(SQUARE, b"123"), ValueError, r"3 bytes, but float32\[2, 2\] has 16"),
    (lambda c, b: b.constant(SQUARE, [1, 2, 3]), ValueError, r"3 elements, but float32\[2, 2\] has 4"),
    (lambda c, b: b.constant({"dataType": "f4", "shape": []}, 1), ValueError, "unknown data type 'f4'"),
    (lambda c, b: b.constant({"dataType": "int8", "shape": [-1]}, [1]), ValueError, "the shape has -1"),
    (lambda c, b: b.constant({"dataType": "uint8", "shape": [1]}, [300]), ValueError, "300"),
    (lambda c, b: c.create_constant_tensor(SQUARE), TypeError, "data is missing after the descriptor"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_wrong_descriptors_are_named(context, builder, call, error, message):
    with pytest.raises(error, match=message):
        call(context, builder)
