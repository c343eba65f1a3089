"""Turns a tagged part of a program into a graph of ours: what the delegate loads."""

from __future__ import annotations

import hashlib
from typing import final

import numpy as np
import torch
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from torch._export.utils import (
    get_buffer,
    get_lifted_tensor_constant,
    get_param,
    is_buffer,
    is_lifted_tensor_constant,
    is_param,
)
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind

from .translate import Translator, bytes_of, dtype_name, translate

ALIGNMENT = 64  # of weights in the file, so that kernels read them in place


def _data(program: ExportedProgram, node: torch.fx.Node) -> tuple[str, torch.Tensor] | None:
    """The qualified name and value of a placeholder that is not a run-time input."""
    signature = program.graph_signature
    if is_param(program, node):
        return signature.inputs_to_parameters[node.name], get_param(program, node)
    if is_buffer(program, node):
        return signature.inputs_to_buffers[node.name], get_buffer(program, node)
    if is_lifted_tensor_constant(program, node):
        name = signature.inputs_to_lifted_tensor_constants[node.name]
        return name, get_lifted_tensor_constant(program, node)
    return None


class _Part:
    """One delegate: the graph and the weights that it names."""

    def __init__(self, program: ExportedProgram) -> None:
        self.program, self.translator, self.store = program, Translator(), NamedDataStore()
        self.states: dict[str, int] = {}  # by the buffer's qualified name
        self.mutated = set(program.graph_signature.buffers_to_mutate.values())
        self.arguments = 0

    def placeholder(self, node: torch.fx.Node) -> None:
        data = _data(self.program, node)
        if data is None:
            self._input(node)
            return
        name, tensor = data
        content = bytes_of(tensor)
        if content.size == 0:
            self.translator.values[node] = self.translator.constant(tensor)
            return
        writer, dtype, shape = self.translator.writer, dtype_name(tensor.dtype), list(tensor.shape)
        if name not in self.mutated:
            self.translator.values[node] = writer.constant(dtype, shape, content, self._stored(name, content))
            return
        # A state is known by the buffer's name, so that methods which change one buffer can share it.
        if content.any():
            state = writer.state(name, dtype, shape, content, self._stored(name, content))
        else:
            state = writer.state(name, dtype, shape)  # zeros, as most are, take no room in the file
        self.translator.values[node] = self.states[name] = state

    def _stored(self, name: str, content: np.ndarray) -> str:
        """The key of some bytes in the program's data, which methods that have them in common share."""
        key = f"{name}-{hashlib.sha256(content).hexdigest()[:16]}"
        self.store.add_named_data(key, content.tobytes(), alignment=ALIGNMENT)
        return key

    def _input(self, node: torch.fx.Node) -> None:
        """Arguments are named by their place; those that are no tensors have no input."""
        val = node.meta["val"]
        if isinstance(val, torch.Tensor):
            self.translator.values[node] = self.translator.input(f"in{self.arguments}", val)
        self.arguments += 1

    def output(self, node: torch.fx.Node) -> None:
        count = 0
        for spec, argument in zip(self.program.graph_signature.output_specs, node.args[0], strict=True):
            value = self.translator.values[argument]
            if spec.kind == OutputKind.BUFFER_MUTATION:
                self.translator.op("assign", self.states[spec.target], value)
                continue
            self.translator.writer.output(f"out{count}", value)
            count += 1


@final
class GgmlBackend(BackendDetails):
    """The delegate's name and its half at export time."""

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
        part = _Part(edge_program)
        for node in edge_program.graph.nodes:
            if node.op == "placeholder":
                part.placeholder(node)
            elif node.op == "call_function":
                translate(part.translator, node)
            elif node.op == "output":
                part.output(node)
        return PreprocessResult(
            processed_bytes=part.translator.writer.finish(),
            debug_handle_map={},
            data_store_output=part.store.get_named_data_store_output(),
        )
