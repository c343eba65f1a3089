"""Turns a tagged part of a program into a graph of ours: what the delegate loads."""

from __future__ import annotations

import math
from typing import final

import torch
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind

from .quantize import Stored, data_of, formats_in, stored
from .translate import Translator, Value, bytes_of, dtype_name, memory_order, translate

EXTERNAL = "external_weights"  # the compile spec that names the weights' file
ALIGNMENT = 64  # of weights in the file, so that kernels read them in place


class _Part:
    """One delegate: the graph and the weights that it names."""

    def __init__(self, program: ExportedProgram, formats: dict[str, str], external: str | None) -> None:
        self.program, self.translator, self.store = program, Translator(), NamedDataStore()
        self.formats = formats  # of the weights that are quantised here
        self.external = external  # the .ptd file of the weights; None: they are in the program
        self.states: dict[str, int] = {}  # by the buffer's qualified name
        self.mutated = set(program.graph_signature.buffers_to_mutate.values())
        self.arguments = 0
        self.handles: dict[str, tuple[int, ...]] = {}  # of the program's nodes, for profiling

    def placeholder(self, node: torch.fx.Node) -> None:
        data = data_of(self.program, node)
        if data is None:
            self._input(node)
            return
        name, tensor = data
        if tensor.numel() == 0:
            self.translator.values[node] = self.translator.constant(tensor)
            return
        if name in self.mutated:
            self.translator.values[node] = self.states[name] = self._state(name, tensor)
            return
        weight = stored(node, tensor, dtype_name(tensor.dtype), self.formats.get(name))
        self.translator.values[node] = self._constant(weight, self._kept(name, weight, self.external))

    def _kept(self, name: str, weight: Stored, external: str | None = None) -> str:
        """The key of some bytes in the program's data, which methods that have them in common share."""
        key = weight.key(name)
        self.store.add_named_data(key, weight.content.tobytes(), alignment=ALIGNMENT, external_tag=external)
        return key

    def _state(self, name: str, tensor: torch.Tensor) -> Value:
        """Known by the buffer's name, so that methods which change one buffer share it."""
        initial = Stored(dtype_name(tensor.dtype), list(tensor.shape), bytes_of(tensor))
        if not initial.content.any():  # zeros, as most are, take no room in the file
            return self.translator.writer.state(name, initial.dtype, initial.shape)
        key = self._kept(name, initial)
        return self.translator.writer.state(name, initial.dtype, initial.shape, initial.content, key)

    def _constant(self, weight: Stored, key: str) -> Value:
        t = self.translator
        if not weight.is_flat:
            return t.writer.constant(weight.dtype, weight.shape, weight.content, key, weight.format)
        count = math.prod(weight.shape)
        flat = t.writer.constant(weight.dtype, [count], weight.content, key, weight.format)
        return t.reshape(t.op("expand_blocks", flat), weight.shape)

    def _input(self, node: torch.fx.Node) -> None:
        """Arguments are named by their place; those that are no tensors have no input."""
        val = node.meta["val"]
        if isinstance(val, torch.Tensor):
            order = memory_order(val)
            stored = self.translator.input(f"in{self.arguments}", val.permute(order))
            self.translator.values[node] = self.translator.transpose(
                stored, [order.index(i) for i in range(val.dim())]
            )
        self.arguments += 1

    def output(self, node: torch.fx.Node) -> None:
        count = 0
        for spec, argument in zip(self.program.graph_signature.output_specs, node.args[0], strict=True):
            value = self.translator.values[argument]
            if spec.kind == OutputKind.BUFFER_MUTATION:
                self.translator.op("assign", self.states[spec.target], value)
                continue
            value = self.translator.transpose(value, memory_order(argument.meta["val"]))
            self.translator.writer.output(f"out{count}", value)
            count += 1


@final
class GgmlBackend(BackendDetails):
    """The delegate's name and its half at export time."""

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
        external = next((spec.value.decode() for spec in compile_specs if spec.key == EXTERNAL), None)
        part = _Part(edge_program, formats_in(compile_specs), external)
        for node in edge_program.graph.nodes:
            if node.op == "placeholder":
                part.placeholder(node)
            elif node.op == "call_function":
                translate(part.translator, node)
                if "debug_handle" in node.meta:
                    part.handles[node.name] = (node.meta["debug_handle"],)
            elif node.op == "output":
                part.output(node)
        return PreprocessResult(
            processed_bytes=part.translator.writer.finish(),
            debug_handle_map=part.handles,
            data_store_output=part.store.get_named_data_store_output(),
        )
