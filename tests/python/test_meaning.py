"""Arrays of another dtype than a graph's: what is converted, and what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import webnn

CALLS = ("compute", "dispatch", "write_tensor", "constant", "state", "write_state")


def taken(call: str, data_type: str, value: object) -> list:
    """What a graph that passes `value` on gives for it."""
    context = webnn.ML().create_context(accelerated=False)
    builder = context.create_graph_builder()
    shape = list(np.shape(value))
    result = np.zeros(shape, webnn_dtype(data_type))
    if call == "constant":
        graph = builder.build({"y": builder.identity(builder.constant(value, shape, data_type))})
        return context.compute(graph, {})["y"].tolist()
    if call in ("state", "write_state"):
        state = builder.state("s", shape, data_type, value if call == "state" else None)
        graph = builder.build({"y": builder.identity(state)})
        if call == "write_state":
            graph.write_state("s", value)
        return context.compute(graph, {})["y"].tolist()
    graph = builder.build({"y": builder.identity(builder.input("x", shape, data_type))})
    if call == "compute":
        return context.compute(graph, {"x": value})["y"].tolist()
    if call == "write_tensor":
        tensor = context.create_tensor(shape, data_type, readable=True, writable=True)
        context.write_tensor(tensor, value)
        return context.read_tensor(tensor).tolist()
    context.dispatch(graph, {"x": value}, {"y": result})
    return result.tolist()


def webnn_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name) if name in ("int4", "uint4") else name)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("data_type", "value", "wrong"),
    [
        ("uint8", np.array([1, 300]), "300"),
        ("uint8", np.array([-1, 2], np.int8), "-1"),
        ("uint8", [1.0, 1.7], "1.7"),
        ("int32", np.array([1, np.nan], np.float32), "nan"),
        ("int32", np.array([2.0**31, 1]), "2147483648.0"),
        ("int64", np.array([2.0**63]), r"9.223372036854776e\+18"),
        ("uint64", np.array([-1]), "-1"),
        ("int64", np.array([2**64 - 1], np.uint64), "18446744073709551615"),
        ("int4", np.array([7, 8]), "8"),
        ("int8", np.array([0.5], ml_dtypes.bfloat16), "0.5"),
    ],
)
def test_numbers_that_an_integer_type_does_not_hold_are_refused(call, data_type, value, wrong) -> None:
    with pytest.raises(ValueError, match=rf"has ({wrong}), which {data_type} does not hold; .*astype"):
        taken(call, data_type, value)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("data_type", "value", "expected"),
    [
        ("uint8", np.array([1, 255]), [1, 255]),
        ("uint8", [True, False], [1, 0]),
        ("int32", np.array([-2.0, 3.0]), [-2, 3]),
        ("int64", np.array([2**63 - 1], np.uint64), [2**63 - 1]),
        ("int4", np.array([-8, 7]), [-8, 7]),
        ("int32", np.array([3, -4], ml_dtypes.bfloat16), [3, -4]),
        ("float32", np.array([1, 2**24 + 1]), [1.0, float(2**24)]),
        ("float32", np.array([0.1]), [float(np.float32(0.1))]),
        ("float16", np.array([1, 2], np.uint64), [1.0, 2.0]),
    ],
)
def test_numbers_that_keep_their_meaning_are_converted(call, data_type, value, expected) -> None:
    assert taken(call, data_type, value) == expected


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_floats_beyond_a_float_type_become_infinite_as_numpys_do() -> None:
    assert taken("compute", "float32", np.array([1e300, -1e300])) == [np.inf, -np.inf]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("value", [np.array(["1"]), np.array([1j]), np.array([None])])
def test_what_is_no_number_is_refused(call, value) -> None:
    with pytest.raises(ValueError, match=r"is .*; it must be float32"):
        taken(call, "float32", value)
