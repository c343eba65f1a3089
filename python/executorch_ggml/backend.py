"""Turns a tagged part of a program into a graph of ours: what the delegate loads."""

from __future__ import annotations

import math
from typing import final

import torch
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from headrace._core import graph_to_bytes
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind

from .buffers import Programs, shared_in, shared_states
from .quantize import Stored, data_of, formats_in, stored
from .translate import Translator, Value, bytes_of, dtype_name, memory_order, translate

EXTERNAL = "external_weights"  # the compile spec that names the weights' file
ALIGNMENT = 64  # of weights in the file, so that kernels read them in place


class _Part:
    """One delegate: the graph and the weights that it names."""

    def __init__(self, program: ExportedProgram, specs: list[CompileSpec]) -> None:
        self.program, self.translator, self.store = program, Translator(), NamedDataStore()
        self.formats = formats_in(specs)  # of the weights that are quantised here
        # the .ptd file of the weights; None: they are in the program
        self.external = next((spec.value.decode() for spec in specs if spec.key == EXTERNAL), None)
        self.states: dict[str, int] = {}  # by the buffer's qualified name
        signature = program.graph_signature
        self.mutated = set(signature.buffers_to_mutate.values())
        self.mutated |= shared_in(specs) & set(signature.inputs_to_buffers.values())
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
        t, dtype = self.translator, "f32" if weight.format else weight.dtype
        if not weight.is_flat:
            return t.writer.constant(dtype, weight.shape, weight.content, key, weight.format)
        count = math.prod(weight.shape)
        flat = t.writer.constant(dtype, [count], weight.content, key, weight.format)
        return t.cast(t.reshape(t.op("expand_blocks", flat), weight.shape), weight.dtype)

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
        specs = self.program.graph_signature.output_specs
        values = [self._as_it_is_now(self.translator.values[argument]) for argument in node.args[0]]
        count = 0
        for spec, argument, value in zip(specs, node.args[0], values, strict=True):
            if spec.kind == OutputKind.BUFFER_MUTATION:
                self.translator.op("assign", self.states[spec.target], value)
                continue
            value = self.translator.transpose(value, memory_order(argument.meta["val"]))
            self.translator.writer.output(f"out{count}", value)
            count += 1

    def _as_it_is_now(self, value: Value) -> Value:
        """A state is overwritten before results are read."""
        return self.translator.op("identity", value) if value in self.states.values() else value


@final
class GgmlBackend(BackendDetails):
    """The delegate's name and its half at export time."""

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
        part = _Part(edge_program, compile_specs)
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
            processed_bytes=graph_to_bytes(part.translator.writer.finish()),
            debug_handle_map=part.handles,
            data_store_output=part.store.get_named_data_store_output(),
        )

    @classmethod
    def preprocess_multimethod(
        cls, edge_programs: Programs, compile_specs: dict[str, list[list[CompileSpec]]]
    ) -> dict[str, list[PreprocessResult]]:
        """Tells each delegate which buffers any method of the program changes."""
        shared = shared_states(edge_programs, compile_specs)
        return {
            method: [
                cls.preprocess(part, [*specs, shared])
                for part, specs in zip(parts, compile_specs[method], strict=True)
            ]
            for method, parts in edge_programs.items()
        }
