"""Operators that the catalog has as one op are imported as that op, and not spelled out."""

from __future__ import annotations

from collections import Counter

import headrace
import operator_cases as cases
import pytest
from headrace._core import view
from headrace.onnx import import_graph
from onnx import TensorProto, helper

MICROSOFT = cases.MICROSOFT
X = [("x", [2, 8])]
# What an operator is called in the catalog, with the attributes and other operands for which that holds.
SAME = [
    ("Gelu", "gelu", {}, X),
    ("Gelu", "gelu_tanh", {"approximate": "tanh"}, X),
    ("Swish", "silu", {}, X),
    ("Celu", "elu", {}, X),
    ("Celu", "elu", {"alpha": 1.0}, X),
    ("Elu", "elu", {"alpha": 0.5}, X),
    ("HardSwish", "hard_swish", {}, X),
    ("Softplus", "softplus", {}, X),
    ("Gemm", "gemm", {"transB": 1}, [*X, ("b", [4, 8]), ("c", [4])]),
    ("Gemm", "gemm", {}, [*X, ("b", [8, 4])]),
    ("MatMul", "matmul", {}, [*X, ("b", [8, 4])]),
    ("LayerNormalization", "layer_normalization", {}, [*X, ("scale", [8]), ("bias", [8])]),
    ("RMSNormalization", "rms_norm", {}, [*X, ("scale", [8])]),
    ("Attention", "scaled_dot_product_attention", {}, [(name, [1, 2, 3, 8]) for name in "qkv"]),
    (f"{MICROSOFT}.Gelu", "gelu", {}, X),
    (f"{MICROSOFT}.FastGelu", "gelu_tanh", {}, X),
    (f"{MICROSOFT}.QuickGelu", "silu", {"alpha": 1.0}, X),
]


def imported(name: str, attributes: dict, operands: list) -> list[str]:
    """The ops of the graph before any pass, without the copy that every output is."""
    domain, _, op = name.rpartition(".")
    names = [operand for operand, _ in operands]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in operands]
    node = helper.make_node(op, names, ["y"], domain=domain, **attributes)
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    opsets = [helper.make_opsetid("", 24), helper.make_opsetid(MICROSOFT, 1)]
    made = helper.make_graph([node], "g", infos, [output])
    model = helper.make_model(made, opset_imports=opsets, ir_version=10)
    return [node.op for node in view(import_graph(model)).nodes if node.op != "identity"]


@pytest.mark.parametrize(("name", "op", "attributes", "operands"), SAME, ids=lambda v: str(v)[:40])
def test_an_operator_of_the_catalog_is_one_node(name, op, attributes, operands) -> None:
    assert imported(name, attributes, operands) == [op]


def test_nothing_is_spelled_out_that_the_compiler_recognizes() -> None:
    """Every case of every operator, with its extents and with open ones."""
    found, compiled = Counter(), 0
    for case in cases.CASES:
        for dims in (False, True):
            try:
                graph = import_graph(case.model(dims=dims))
            except ValueError:
                continue  # refused with open extents: test_operators.py
            compiled += 1
            passes = {p["name"]: p["counts"] for p in headrace.compile(graph).stats["passes"]}
            for what, count in passes["recognize_compositions"].items():
                if count:
                    found[f"{case.label}: {what}"] += count
    assert compiled > 1000
    assert not found
