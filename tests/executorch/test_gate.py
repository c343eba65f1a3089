"""What goes wrong in a lowering, or in building a part, leaves nodes to ExecuTorch and is reported."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import torch
from executorch_ggml import GgmlPartitioner, _runtime, translate, trial
from executorch_ggml.backend import Part
from executorch_ggml.translate import LOWERINGS
from headrace._core import graph_to_bytes
from torch import nn

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)


class Call(nn.Module):
    def __init__(self, function, **buffers) -> None:
        super().__init__()
        self.function = function
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor)

    def forward(self, *inputs):
        return self.function(self, *inputs)


@pytest.fixture
def tolerant(monkeypatch) -> None:
    """As it is outside of tests."""
    monkeypatch.setattr(translate, "raises_defects", False)


def broken(t, node):
    return {}["no such key"]


def test_a_defect_in_a_lowering_is_raised_in_tests(lower, monkeypatch):
    monkeypatch.setitem(LOWERINGS, "aten.exp.default", broken)
    with pytest.raises(KeyError):
        lower(Call(lambda m, x: x.exp() + 1), (torch.randn(3),))


def test_a_defect_in_a_lowering_leaves_its_node_and_is_reported(lower, monkeypatch, tolerant, capsys):
    monkeypatch.setitem(LOWERINGS, "aten.exp.default", broken)
    partitioner = GgmlPartitioner(report=True)
    program = lower(Call(lambda m, x: (x * 2).exp() + 1), (torch.randn(3),), partitioner=partitioner)
    message = "1 x aten.exp.default: a defect of executorch_ggml, KeyError: 'no such key'"
    assert message in capsys.readouterr().out
    assert program.delegates == 2 and any("exp" in name for name in program.left)
    program.check()


def test_an_op_that_export_would_keep_whole_is_taken_apart_where_its_lowering_is_broken(
    lower, monkeypatch, tolerant
):
    monkeypatch.setitem(LOWERINGS, "aten.silu.default", broken)
    program = lower(nn.Sequential(nn.Linear(4, 4), nn.SiLU()), (torch.randn(2, 4),))
    assert program.delegates == 1 and not any("silu" in name for name in program.left)
    program.check()


def test_a_lowering_that_is_broken_beside_others_only_makes_a_part_of_its_own(lower, monkeypatch, tolerant):
    exp = LOWERINGS["aten.exp.default"]

    def broken_beside_others(t, node):
        if len(t.values) > 1:
            raise IndexError("beside others")
        return exp(t, node)

    monkeypatch.setitem(LOWERINGS, "aten.exp.default", broken_beside_others)
    program = lower(Call(lambda m, x: ((x * 2).exp() + 1).sin()), (torch.randn(3),))
    assert (program.delegates, program.left) == (3, [])
    program.check()


def test_a_part_that_cannot_be_finished_is_halved_until_it_can(lower, monkeypatch, tolerant, capsys):
    results = Part.results

    def refuse_sines(part, nodes):
        names = [node.name for node in part.translator.values]
        if any("sin" in name for name in names) and isinstance(part, trial.TrialPart):
            raise RuntimeError("a sine in it")
        return results(part, nodes)

    monkeypatch.setattr(Part, "results", refuse_sines)
    module = Call(lambda m, x: torch.topk((x * 2).exp().sin() + 1, 2)[0].cos())
    program = lower(module, (torch.randn(5),), partitioner=GgmlPartitioner(report=True))
    assert re.search(
        r"1 x aten\.sin\.default: a defect of executorch_ggml, RuntimeError: a sine", capsys.readouterr().out
    )
    assert program.delegates >= 2 and [name for name in program.left if "alloc" not in name] != []
    assert not any("exp" in name or "cos" in name for name in program.left)
    program.check()


def test_a_part_that_could_not_be_loaded_is_left(lower, monkeypatch, tolerant, capsys):
    def refuse(graph, weights):
        raise ValueError("damaged")

    monkeypatch.setattr(trial, "check_graph", refuse)
    program = lower(
        Call(lambda m, x: x.exp() + 1), (torch.randn(3),), partitioner=GgmlPartitioner(report=True)
    )
    assert program.delegates == 0
    assert "aten.exp.default: a defect of executorch_ggml, ValueError: damaged" in capsys.readouterr().out
    program.check()


def test_a_graph_is_checked_as_a_program_is_loaded(lower):
    writer = translate.GraphWriter()
    weight = writer.constant("f32", [4], torch.ones(4).numpy(), "w")
    writer.output("out0", writer.op("exp", [weight])[0])
    graph = graph_to_bytes(writer.finish())
    trial.check_graph(graph, {"w": torch.ones(4).numpy()})
    with pytest.raises(ValueError, match="16"):
        trial.check_graph(graph, {"w": torch.ones(3).numpy()})
    with pytest.raises(ValueError):
        trial.check_graph(graph[: len(graph) // 2], {"w": torch.ones(4).numpy()})
    with pytest.raises(OSError, match="no weights named 'w'"):
        trial.check_graph(graph, {})


def test_a_buffer_may_have_the_name_of_an_argument(lower):
    def forward(m, x):
        m.in0.add_(x)
        return m.in0 * 2

    module = Call(forward, in0=torch.ones(3))
    program = lower(module, (torch.ones(3),))
    assert (program.delegates, program.left) == (1, [])
    run = program.load()
    for expected in (4.0, 6.0):
        torch.testing.assert_close(run(torch.ones(3))[0], torch.full((3,), expected))
