"""ATen ops that the catalog has as one op are translated to that op, and not spelled out."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import headrace
import torch
import torch.nn.functional as F
from executorch_ggml.translate import Translator, Unsupported, translate
from headrace._core import view
from layer_cases import LAYERS
from op_cases import GROUPS
from torch import nn


class Call(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def translated(function, *inputs: torch.Tensor) -> headrace.Graph | None:
    """The graph of a function that is one ATen op; None for others, and for what stays with ExecuTorch."""
    nodes = torch.export.export(Call(function), inputs).graph.nodes
    calls = [node for node in nodes if node.op == "call_function"]
    if len(calls) != 1 or not isinstance(calls[0].meta["val"], torch.Tensor):
        return None
    t = Translator()
    try:
        for node in calls[0].all_input_nodes:
            t.values[node] = t.input(node.name, node.meta["val"])
        translate(t, calls[0])
    except Unsupported:
        return None
    t.writer.output("y", t.op("identity", t.values[calls[0]]))
    return t.writer.finish()


X = torch.randn(2, 8)


@pytest.mark.parametrize(
    ("op", "function", "inputs"),
    [
        ("gelu", F.gelu, (X,)),
        ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), (X,)),
        ("silu", F.silu, (X,)),
        ("elu", F.elu, (X,)),
        ("hard_swish", F.hardswish, (X,)),
        ("gemm", torch.addmm, (torch.randn(4), X, torch.randn(8, 4))),
        ("matmul", torch.mm, (X, torch.randn(8, 4))),
        ("rms_norm", lambda x: F.rms_norm(x, (8,)), (X,)),
        ("log1p", torch.log1p, (X.abs(),)),
        ("expm1", torch.expm1, (X,)),
        ("atan2", torch.atan2, (X, X + 1)),
    ],
)
def test_an_op_of_the_catalog_is_one_node(op, function, inputs) -> None:
    assert [node.op for node in view(translated(function, *inputs)).nodes] == [op, "identity"]


def test_nothing_is_spelled_out_that_the_compiler_recognizes() -> None:
    torch.manual_seed(0)
    found, compiled = [], 0
    for group in [*GROUPS.values(), LAYERS]:
        for name, (function, make) in group.items():
            graph = translated(function, *make())
            if graph is None:
                continue
            compiled += 1
            passes = {p["name"]: p["counts"] for p in headrace.compile(graph).stats["passes"]}
            found += [f"{name}: {what}" for what, n in passes["recognize_compositions"].items() if n]
    assert compiled > 100
    assert not found
