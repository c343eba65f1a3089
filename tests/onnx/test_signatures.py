"""Attributes and numbers of operands that an operator does not have are refused.

The tables of src/doors/onnx say what ONNX's and ONNX Runtime's own declarations say.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import headrace
import numpy as np
import onnx
import pytest
from headrace import _core
from onnx import TensorProto, helper
from onnx.defs import OpSchema
from onnxruntime.capi import onnxruntime_pybind11_state as onnxruntime_state

NEWEST = 28
WITHOUT_BOUND = 2**31 - 1
TYPES = {"TYPE_PROTO": "type", "SPARSE_TENSOR": "sparse"}  # the others by their own names
SURPLUS = "surplus_of_no_operator"


class Signature(NamedTuple):
    inputs: tuple[int, int]
    outputs: tuple[int, int]
    attributes: frozenset[str]


def declared(schema: OpSchema) -> Signature:
    kinds = {name: str(a.type).rpartition(".")[2] for name, a in schema.attributes.items()}
    return Signature(
        (schema.min_input, schema.max_input),
        (schema.min_output, schema.max_output),
        frozenset(f"{name} {TYPES.get(kind, kind.lower())}" for name, kind in kinds.items()),
    )


def message_of(op: str, domain: str, opset: int, inputs: int, outputs: int, **attributes: object) -> str:
    """What is said of a node; "" where it can be read."""
    node = helper.make_node(
        op, ["x"] * inputs, [f"y{i}" for i in range(outputs)], domain=domain, **attributes
    )
    sets = [helper.make_opsetid("", opset)]
    if domain:
        sets.append(helper.make_opsetid(domain, 1))
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y0", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=sets, ir_version=10)
    try:
        headrace.load(model.SerializeToString())
    except (ValueError, NotImplementedError) as error:
        return str(error)
    return ""


def bounds_in(message: str, what: str) -> tuple[int, int]:
    found = re.search(rf"it has \d+ {what}s?; \w+ has (at least )?(\d+)(?: to (\d+))? in this", message)
    assert found, message
    least = int(found[2])
    return least, WITHOUT_BOUND if found[1] else int(found[3] or least)


def read_signature(op: str, domain: str, opset: int, wanted: Signature) -> Signature:
    """By what the messages of wrong nodes say; what no number of operands can break is `wanted`'s."""
    inputs, outputs = wanted.inputs, wanted.outputs
    if inputs[0] > 0:
        inputs = bounds_in(message_of(op, domain, opset, inputs[0] - 1, 1), "input")
    elif inputs[1] < WITHOUT_BOUND:
        inputs = bounds_in(message_of(op, domain, opset, inputs[1] + 1, 1), "input")
    if outputs[1] < WITHOUT_BOUND:
        made = message_of(op, domain, opset, wanted.inputs[0], outputs[1] + 1)
        outputs = bounds_in(made, "output")
    message = message_of(op, domain, opset, wanted.inputs[0], max(wanted.outputs[0], 1), **{SURPLUS: 1})
    found = re.search(rf"attribute '{SURPLUS}' is not known; \w+ has (.*?) in this operator set", message)
    assert found, message
    attributes = frozenset() if found[1] == "none" else frozenset(found[1].split(", "))
    return Signature(inputs, outputs, attributes)


def differences(schemas: list[OpSchema], domain: str, opset_of) -> list[str]:
    ours = {name for of, name, _ in _core.onnx_operators() if of == domain}
    wrong = []
    for schema in schemas:
        if schema.name not in ours or schema.deprecated:
            continue
        wanted = declared(schema)
        made = read_signature(schema.name, domain, opset_of(schema), wanted)
        if made != wanted:
            wrong.append(f"{schema.name} {schema.since_version}: {made} instead of {wanted}")
    return wrong


def test_each_operator_set_has_the_signatures_of_onnx() -> None:
    first = {name: since for domain, name, since in _core.onnx_operators() if domain == ""}
    schemas = [
        s
        for s in onnx.defs.get_all_schemas_with_history()
        if s.domain == "" and s.since_version <= NEWEST and s.since_version >= first.get(s.name, NEWEST + 1)
    ]
    assert len(schemas) > 500
    assert differences(schemas, "", lambda s: s.since_version) == []


@pytest.mark.parametrize(("domain", "least"), [("com.microsoft", 101), ("com.microsoft.nchwc", 8)])
def test_operators_of_onnx_runtime_have_its_signatures(domain: str, least: int) -> None:
    schemas = [s for s in onnxruntime_state.get_all_operator_schema() if s.domain == domain]
    assert len(schemas) >= least
    assert differences(schemas, domain, lambda _: 21) == []


def test_an_unknown_attribute_names_node_operator_and_what_there_is() -> None:
    message = message_of("LeakyRelu", "", 21, 1, 1, alhpa=0.5)
    assert "node of output 'y0' (LeakyRelu, ai.onnx opset 21)" in message
    assert "attribute 'alhpa' is not known; LeakyRelu has alpha float in this operator set" in message
    assert "did you mean alpha?" in message


def test_an_attribute_of_another_operator_set_is_unknown() -> None:
    assert message_of("Clip", "", 6, 1, 1, max=1.0) == ""
    assert "attribute 'max' is not known; Clip has none in this" in message_of("Clip", "", 13, 1, 1, max=1.0)


def test_an_attribute_of_another_type_is_refused_even_where_nothing_reads_it() -> None:
    assert "attribute 'stash_type' is of the type string; it must be of int" in message_of(
        "LayerNormalization", "", 17, 2, 1, stash_type="float"
    )


def test_attributes_that_begin_with_two_underscores_are_anybodys_own() -> None:
    assert message_of("Relu", "", 21, 1, 1, __from_where="layer 3") == ""


def test_a_whole_number_is_read_where_a_float_belongs() -> None:
    assert message_of("LeakyRelu", "", 21, 1, 1, alpha=1) == ""


@pytest.mark.parametrize(
    ("inputs", "outputs", "said"),
    [
        (["x"], ["y"], "it has 1 input; Sub has 2 in this operator set"),
        (["x", "x", "x"], ["y"], "it has 3 inputs; Sub has 2 in this operator set"),
        (["x", "x"], ["y", "z"], "it has 2 outputs; Sub has 1 in this operator set"),
    ],
)
def test_operands_beyond_what_the_operator_has_are_refused(
    inputs: list[str], outputs: list[str], said: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        headrace.load(subtraction(inputs, outputs))


def test_what_is_left_out_at_the_end_does_not_count() -> None:
    model = headrace.load(subtraction(["x", "x", "", ""], ["y", ""]))
    assert (model(x=np.ones(2, np.float32))["y"] == 0).all()


def subtraction(inputs: list[str], outputs: list[str]) -> bytes:
    graph = helper.make_graph(
        [helper.make_node("Sub", inputs, outputs)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    sets = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10).SerializeToString()
