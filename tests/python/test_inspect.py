"""pywebnn's debugging calls, and the graph view behind them."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest
import webnn
from headrace._core import view
from headrace._onnx_export.constants import constant_array


@pytest.fixture
def graph(builder):
    """Operands: x, its sum (a scalar), a scalar constant, their product (a scalar), x + the product."""
    x = builder.input("x", [2, {"name": "n", "maxSize": 9}], "float32")
    total = builder.reduce_sum(x)
    scaled = builder.mul(total, builder.constant(2.0))
    return builder.build({"y": builder.add(x, scaled, label="last")})


def test_shapes_are_counted_by_kind(graph):
    assert graph.count_empty_shapes() == 3
    assert graph.count_scalar_constants() == 1
    assert graph.count_unknown_shapes() == 2
    assert graph.count_unknown_shapes_excluding_scalar_ops() == 1


def test_operands_describe_themselves(graph):
    assert graph.debug_operand(0) == "Operand[0]: name='x', kind=input, type=float32, shape=[2, 9]"
    assert graph.debug_operand(2) == "Operand[2]: name=None, kind=constant, type=float32, shape=[]"
    assert graph.debug_operand(99) == "Operand[99]: not found"
    assert graph.debug_operand(-1) == "Operand[-1]: not found"


def test_scalars_are_listed_with_their_operation_and_its_inputs(graph):
    assert graph.debug_unknown_shapes() == [
        "operand_1 (id=1, op=reduce_sum, inputs=[x[2, 9]])",
        "operand_3 (id=3, op=mul, inputs=[operand_1[], operand_2[]])",
    ]
    assert graph.debug_unknown_shapes_structured()[0] == {
        "id": 1,
        "name": "operand_1",
        "op": "reduce_sum",
        "inputs": [{"id": 0, "name": "x", "shape": [2, 9]}],
    }


def test_a_scalar_input_has_no_operation(builder):
    graph = builder.build({"y": builder.neg(builder.input("s", [], "float32"))})
    assert graph.debug_unknown_shapes()[0] == "s (id=0, op=<none>)"
    assert graph.debug_unknown_shapes_structured()[0] == {"id": 0, "name": "s", "op": None, "inputs": []}


def test_the_view_has_nodes_with_their_attributes(builder):
    x = builder.input("x", [1, 1, 4, 4], "float32")
    weight = builder.constant(np.ones((1, 1, 3, 3), np.float32))
    graph = builder.build({"y": builder.conv2d(x, weight, pads=[1, 1, 1, 1], label="stem")})
    seen = view(graph)
    (node,) = seen.nodes
    assert (node.op, node.label, node.inputs, node.outputs) == ("conv2d", "stem", [0, 1], [2])
    assert node.attributes["padding"] == [1, 1, 1, 1] and node.attributes["input_layout"] == "nchw"
    assert [seen.values[i].kind for i in range(3)] == ["input", "constant", "result"]
    assert seen.inputs == [0] and seen.outputs == [("y", 2)]


def test_dynamic_extents_are_names_with_their_largest_value(graph):
    assert view(graph).values[0].shape == [2, ("n", 9)]


def test_constants_are_read_only_and_outlive_the_graph(context):
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    builder = context.create_graph_builder()
    x = builder.input("x", [2, 3], "float32")
    graph = builder.build({"y": builder.add(x, builder.constant(value))})
    constant = constant_array(view(graph).values[1])
    del graph, builder, x
    gc.collect()
    np.testing.assert_array_equal(constant, value)
    assert not constant.flags.writeable


def test_constants_that_nobody_can_write_are_shared(builder):
    value = np.arange(6, dtype=np.float32)
    value.flags.writeable = False
    x = builder.input("x", [6], "float32")
    graph = builder.build({"y": builder.add(x, builder.constant(value))})
    assert np.shares_memory(constant_array(view(graph).values[1]), value)


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4])
def test_four_bit_constants_are_unpacked(builder, dtype):
    value = np.array([[1, 2, 3]]).astype(dtype)
    x = builder.input("x", [1, 3], np.dtype(dtype).name)
    graph = builder.build({"y": builder.concat([x, builder.constant(value)], 0)})
    constant = constant_array(view(graph).values[1])
    assert constant.dtype == value.dtype and constant.tolist() == value.tolist()


def test_core_ml_is_a_runtime_error(context, graph):
    with pytest.raises(RuntimeError, match="Core ML is not available"):
        context.convert_to_coreml(graph, "model.mlmodel")
    with pytest.raises(RuntimeError, match="Core ML is not available"):
        context.execute_with_coreml(graph, {})


def test_the_listed_classes_are_exported():
    assert {"ML", "MLContext", "MLGraphBuilder", "MLOperand", "MLGraph", "MLTensor"} <= set(webnn.__all__)
    assert {"AsyncMLContext", "Hub"} <= set(webnn.__all__)
