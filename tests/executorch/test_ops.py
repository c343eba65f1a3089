"""ATen ops against eager PyTorch. The ops of a group are independent parts of one program: one export."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import torch
from executorch_ggml import GgmlPartitioner, _runtime
from executorch_ggml.partitioner import WHOLE
from executorch_ggml.translate import overload_name, target_name
from layer_cases import DECOMPOSED, LAYERS
from op_cases import GROUPS
from torch import nn

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)


class Calls(nn.Module):
    """All functions of a group, each with its own inputs."""

    def __init__(self, functions: list) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, *inputs):
        return [function(*part) for function, part in zip(self.functions, inputs, strict=True)]


def flatten(results) -> list[torch.Tensor]:
    if isinstance(results, torch.Tensor):
        return [results]
    return [tensor for result in results for tensor in flatten(result)]


def difference(actual: torch.Tensor, expected: torch.Tensor) -> str | None:
    """How two tensors differ beyond the tolerance; NaN and infinities must be at the same places."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"is {actual.dtype} {list(actual.shape)}, not {expected.dtype} {list(expected.shape)}"
    if torch.allclose(actual.double(), expected.double(), atol=1e-5, rtol=1e-4, equal_nan=True):
        return None
    return f"is {actual.flatten()[:8].tolist()}, not {expected.flatten()[:8].tolist()}"


class Recording(GgmlPartitioner):
    """Remembers which ops programs have, and keeps none whole where `apart` says so."""

    def __init__(self, apart: bool) -> None:
        super().__init__()
        self.apart = apart
        self.seen: set[str] = set()

    def ops_to_not_decompose(self, ep):
        return ([], None) if self.apart else super().ops_to_not_decompose(ep)

    def partition(self, exported_program):
        nodes = exported_program.graph.nodes
        self.seen |= {target_name(node) for node in nodes if node.op == "call_function"}
        return super().partition(exported_program)


ALL = {(name, False): cases for name, cases in GROUPS.items()} | {
    ("layers", apart): LAYERS for apart in (False, True)
}


@pytest.fixture(scope="module")
def seen() -> dict[tuple[str, bool], set[str]]:
    """The ops that each group has been tested with."""
    return {}


@pytest.mark.parametrize(("group", "apart"), ALL)
def test_ops_are_delegated_and_equal_eager(group, apart, lower, seen):
    torch.manual_seed(0)
    cases, partitioner = ALL[group, apart], Recording(apart)
    inputs = tuple(make() for _, make in cases.values())
    module = Calls([function for function, _ in cases.values()])
    program = lower(module, inputs, core_only=False, partitioner=partitioner)
    assert (program.delegates, program.left) == (1, [])
    run = program.load()
    actual = run(*flatten(inputs))
    wrong = {}
    for name, expected in zip(cases, module(*inputs), strict=True):
        for tensor in flatten(expected):
            if text := difference(actual.pop(0), tensor):
                wrong[name] = text
    assert (wrong, actual) == ({}, [])
    seen[group, apart] = partitioner.seen


def test_the_cases_have_every_op_of_the_models_whole_and_taken_apart(seen):
    if len(seen) < len(ALL):
        pytest.skip("needs the groups of test_ops_are_delegated_and_equal_eager before it")
    tested = set().union(*seen.values())
    assert {overload_name(op) for op in WHOLE} | set(DECOMPOSED) <= tested


class Sequence(nn.Module):
    """Ops over a length that is known at run time."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("positions", torch.randn(1, 64, 8))
        self.mix = nn.Conv1d(8, 8, 3, padding=1)

    def forward(self, x):
        length = x.shape[1]
        y = x + self.positions[:, :length] + self.mix(x.transpose(1, 2)).transpose(1, 2)
        places = torch.arange(length) + torch.full((length,), 2)
        return y.flip(1)[:, ::1], y[:, -1], y[:, -2:], y[:, 1, 2:6], places, y.amax(1), x.unflatten(2, (2, 4))


def test_lowerings_take_extents_that_are_known_at_run_time(lower):
    torch.manual_seed(0)
    length = torch.export.Dim("length", min=4, max=64)
    program = lower(Sequence(), (torch.randn(2, 9, 8),), dynamic_shapes=({1: length},))
    assert (program.delegates, program.left) == (1, [])
    for n in (4, 9, 64):
        program.check(torch.randn(2, n, 8))


EMPTY = {
    "an activation before a sum": (lambda x: (x * 2).sum(), (0, 4)),
    "a sorted list of nothing": (lambda x: x.sort()[0] + 1, (3, 0)),
    "an LSTM without steps' batch": (nn.LSTM(4, 3), (3, 0, 4)),
    "a product of nothing": (lambda x: x @ x.T, (0, 4)),
}


@pytest.mark.parametrize("what", EMPTY)
def test_tensors_without_elements_run(lower, what):
    """ggml would abort on a graph whose activations need no memory."""
    function, shape = EMPTY[what]
    module = function if isinstance(function, nn.Module) else Calls([function])
    inputs = (torch.zeros(shape),) if isinstance(function, nn.Module) else ((torch.zeros(shape),),)
    program = lower(module, inputs)
    assert program.delegates == 1
    actual = program.load()(*flatten(inputs))
    for ours, eager in zip(flatten(actual), flatten(module(*inputs)), strict=True):
        assert difference(ours, eager) is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_rms_norm_takes_the_epsilon_that_pytorch_computes_with(lower, dtype):
    module = nn.RMSNorm(64, dtype=dtype)  # eps=None
    x = (torch.randn(3, 64) * 0.01).to(dtype)
    actual = lower(module, (x,)).load()(x)[0]
    torch.testing.assert_close(actual, module(x), rtol=1e-2 if dtype != torch.float32 else 1e-5, atol=1e-3)


def test_a_number_that_the_dtype_cannot_say_is_left_to_executorch(lower):
    x = torch.tensor([-128, 0, 127], dtype=torch.int8)
    program = lower(Calls([lambda x: x < 300]), ((x,),))
    assert torch.equal(program.load()(x)[0], x < 300)


def test_addmm_without_its_bias_ignores_what_is_in_it(lower):
    bias, a, b = torch.full((2, 3), torch.nan), torch.randn(2, 4), torch.randn(4, 3)
    program = lower(Calls([lambda c, a, b: torch.addmm(c, a, b, beta=0)]), ((bias, a, b),))
    torch.testing.assert_close(program.load()(bias, a, b)[0], a @ b)


def test_tensors_made_like_others_without_values_are_delegated(lower):
    x = torch.randn(3, 4)
    program = lower(Calls([lambda x: torch.empty_like(x).fill_(2) + x]), ((x,),), core_only=False)
    assert (program.delegates, program.left) == (1, [])
    torch.testing.assert_close(program.load()(x)[0], x + 2)
