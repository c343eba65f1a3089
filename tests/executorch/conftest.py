"""Exports a module and runs it through ExecuTorch's runtime on our delegate."""

from __future__ import annotations

import importlib.util
import logging
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # op_cases.py


class Lowered:
    """A program in the edge dialect and its runtime form."""

    def __init__(
        self,
        module: Any = None,
        inputs: tuple = (),
        exported: Any = None,
        core_only: bool = True,
        **options: Any,
    ) -> None:
        """exported: a program, or several by their methods' names, in place of a module to export."""
        import torch
        from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
        from executorch_ggml import GgmlPartitioner

        self.module, self.inputs = module, inputs
        partitioner = options.pop("partitioner", None) or GgmlPartitioner()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if exported is None:
                exported = torch.export.export(module.eval(), inputs, **options)
            # ops outside of core ATen, such as a median, may be delegated as well
            config = EdgeCompileConfig(_check_ir_validity=core_only)
            self.edge = to_edge_transform_and_lower(
                exported, partitioner=[partitioner], compile_config=config
            )
            self.nodes = [
                str(node.target)
                for method in self.edge.methods
                for node in self.edge.exported_program(method).graph.nodes
                if node.op == "call_function"
            ]
            self.program_manager = self.edge.to_executorch()
            self.buffer = self.program_manager.buffer

    @property
    def delegates(self) -> int:
        return sum("executorch_call_delegate" in name for name in self.nodes)

    @property
    def left(self) -> list[str]:
        return [name for name in self.nodes if "call_delegate" not in name and "getitem" not in name]

    def load(self, *methods: str) -> Any:
        """A function for each method; without names, for "forward" alone."""
        from executorch.runtime import Runtime

        self.program = Runtime.get().load_program(self.buffer)
        loaded = [self.program.load_method(name) for name in methods or ("forward",)]

        def call(method: Any, *inputs: Any) -> list:
            assert self.buffer  # a method reads the program's bytes, which nothing else keeps
            return method.execute(list(inputs))

        calls = [partial(call, method) for method in loaded]
        return calls[0] if len(calls) == 1 else calls

    def check(self, *inputs: Any, tolerance: float = 1e-4) -> None:
        """The runtime's results are eager PyTorch's, relative to their largest magnitude."""
        import torch

        inputs = inputs or self.inputs
        with torch.no_grad():
            expected = self.module(*inputs)
        expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
        actual = self.load()(*inputs)
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            assert a.shape == e.shape and a.dtype == e.dtype
            scale = max(1e-6, float(e.abs().max())) if e.is_floating_point() else 1.0
            assert float((a.double() - e.double()).abs().max()) <= tolerance * scale


@pytest.fixture(autouse=True)
def strict_about_defects() -> Iterator[None]:
    """A defect of ours must not look like an op that is left."""
    with pytest.MonkeyPatch.context() as patch:
        if importlib.util.find_spec("executorch"):
            patch.setattr("executorch_ggml.translate.raises_defects", True)
        yield


@pytest.fixture
def lower() -> type[Lowered]:
    logging.disable(logging.WARNING)
    return Lowered
