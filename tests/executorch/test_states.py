"""Mutated buffers that several methods of a program share."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import torch
import torch.nn as nn
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Method, Runtime
from executorch_ggml import GgmlPartitioner, _runtime

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)


class Total(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))


class Add(Total):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total * 1


class Subtract(Total):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.sub_(x)
        return self.total * 1


@pytest.fixture(scope="module")
def program() -> bytes:
    methods = {
        name: torch.export.export(module.eval(), (torch.ones(3),))
        for name, module in (("add", Add()), ("subtract", Subtract()))
    }
    edge = to_edge_transform_and_lower(methods, partitioner=[GgmlPartitioner()])
    return edge.to_executorch().buffer


def total_after(method, x: int) -> float:
    result = method.execute([torch.full((3,), float(x))])[0]
    assert len(set(result.tolist())) == 1
    return result[0].item()


def test_methods_of_a_program_share_a_buffer_of_the_same_name(program):
    loaded = Runtime.get().load_program(program)
    add, subtract = loaded.load_method("add"), loaded.load_method("subtract")
    assert total_after(add, 5) == 5
    assert total_after(subtract, 2) == 3
    assert total_after(add, 1) == 4


def test_two_loads_of_a_program_share_nothing(program):
    first, second = Runtime.get().load_program(program), Runtime.get().load_program(program)
    add, other = first.load_method("add"), second.load_method("subtract")
    assert total_after(add, 5) == 5
    assert total_after(other, 2) == -2


def test_a_method_that_is_loaded_again_has_a_state_of_its_own_which_later_methods_share(program):
    # The native program: the Python class gives the same method when asked a second time.
    native = Runtime.get().load_program(program)._program
    adds = [Method(native.load_method("add")) for _ in range(2)]
    subtracts = [Method(native.load_method("subtract")) for _ in range(2)]
    assert [total_after(add, x) for add, x in zip(adds, (5, 7), strict=True)] == [5, 7]
    assert [total_after(subtract, 1) for subtract in subtracts] == [4, 6]


def test_a_state_lives_as_long_as_any_method_of_the_load(program):
    loaded = Runtime.get().load_program(program)
    add = loaded.load_method("add")
    subtract = loaded.load_method("subtract")
    assert total_after(add, 5) == 5
    del add
    assert total_after(subtract, 1) == 4
    assert total_after(loaded.load_method("add"), 1) == 5
