"""Mutated buffers that several methods of a program share."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import torch
import torch.nn as nn
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Method, Runtime
from executorch_ggml import GgmlPartitioner, _runtime
from executorch_ggml.translate import LOWERINGS

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


class Read(Total):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.total + x


class Get(Total):
    def forward(self) -> torch.Tensor:
        return self.total.clone()


class GetItself(Get):
    def forward(self) -> torch.Tensor:
        return self.total


class AddAndReturn(Total):
    """The new value is a result: ExecuTorch keeps such a buffer."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total


class ReadTwice(Total):
    """Around a node that ExecuTorch runs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.atanh((self.total + x) * 0.1) + self.total


class StartsAtOne(Total):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.ones(3))

    forward = Read.forward


def program_of(partitioner: GgmlPartitioner | None = None, **modules: nn.Module) -> bytes:
    """A program with a method for each module, which take three numbers if they take any."""
    methods = {
        name: torch.export.export(module.eval(), () if isinstance(module, Get) else (torch.ones(3),))
        for name, module in modules.items()
    }
    edge = to_edge_transform_and_lower(methods, partitioner=[partitioner or GgmlPartitioner()])
    return edge.to_executorch().buffer


@pytest.fixture(scope="module")
def program() -> bytes:
    return program_of(add=Add(), subtract=Subtract())


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


# --- methods that only read what another method changes --------------------------------------------------


def test_a_method_that_only_reads_a_buffer_sees_what_another_writes():
    loaded = Runtime.get().load_program(program := program_of(add=Add(), read=Read(), get=Get()))
    assert program  # which the methods read
    read, get, add = (loaded.load_method(name) for name in ("read", "get", "add"))
    assert total_after(read, 7) == 7
    assert total_after(add, 5) == 5
    assert total_after(read, 7) == 12
    assert total_after(add, 1) == 6
    assert get.execute([])[0].tolist() == [6, 6, 6]


def test_a_method_that_reads_before_any_other_is_loaded_sees_the_first_value():
    add, read = Add(), Read()
    for module in (add, read):
        module.total = torch.full((3,), 2.0)
    loaded = Runtime.get().load_program(program := program_of(add=add, read=read))
    assert program
    method = loaded.load_method("read")
    assert total_after(method, 1) == 3
    assert total_after(loaded.load_method("add"), 4) == 6
    assert total_after(method, 1) == 7


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (
            {"add": Add, "read": StartsAtOne},
            "methods 'add' and 'read' have a buffer 'total' each, and they differ",
        ),
        (
            {"add": AddAndReturn, "read": Read},
            "share buffer 'total', but ExecuTorch keeps it for 'add' alone",
        ),
        ({"add": AddAndReturn, "subtract": Subtract}, "its new value is a result, too; return a copy of it"),
        ({"add": Add, "read": ReadTwice}, "method 'read' reads buffer 'total', which method 'add' changes"),
    ],
    ids=["other values", "kept and read", "kept and written", "read by ExecuTorch"],
)
def test_a_buffer_that_methods_cannot_share_is_refused_by_name(modules, message, monkeypatch):
    monkeypatch.delitem(LOWERINGS, "aten.atanh.default")
    with pytest.raises(ValueError, match=message):
        program_of(**{name: module() for name, module in modules.items()})


def test_a_method_that_returns_the_buffer_itself_is_warned_of():
    with pytest.warns(UserWarning, match=r"returns buffer 'total'.*return a copy \(\.clone\(\)\)"):
        program_of(add=Add(), get=GetItself())
