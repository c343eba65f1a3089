"""Turns a tagged part of a program into a graph of ours: what the delegate loads."""

from __future__ import annotations

import math
import re
from typing import final

import torch
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from headrace._core import graph_to_bytes
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind

from .buffers import Programs, shared_in, shared_states
from .gguf_weights import blocks_in
from .program_data import ProgramData
from .quantize import Stored, formats_in, stored
from .translate import Translator, Value, bytes_of, dtype_name, memory_order, translate

EXTERNAL = "external_weights"  # the compile spec that names the weights' file
ARGUMENT = re.compile(r"^in\d+$")  # what arguments are called, so that no state may be
ALIGNMENT = 64  # of weights in the file, so that kernels read them in place


class Part:
    """One delegate: the graph and the weights that it names."""

    def __init__(self, program: ExportedProgram, specs: list[CompileSpec]) -> None:
        self.program, self.translator, self.store = program, Translator(), NamedDataStore()
        self.data = ProgramData(program)
        self.formats = formats_in(specs)  # of the weights that are stored in blocks
        self.blocks = blocks_in(specs)  # of those, what a file has
        # the .ptd file of the weights; None: they are in the program
        self.external = next((spec.value.decode() for spec in specs if spec.key == EXTERNAL), None)
        self.states: dict[str, int] = {}  # by the buffer's qualified name
        self.mutated = set(self.data.mutated.values())
        self.mutated |= shared_in(specs) & set(self.data.buffers.values())
        self.arguments = 0
        self.handles: dict[str, tuple[int, ...]] = {}  # of the program's nodes, for profiling

    def placeholder(self, node: torch.fx.Node) -> None:
        data = self.data.of(node)
        if data is None:
            self._input(node)
            return
        name, tensor = data
        if name not in self.mutated and not node.users:
            return
        if name in self.mutated:
            self.translator.values[node] = self.states[name] = self._state(name, tensor)
            return
        if tensor.numel() == 0:
            self.translator.values[node] = self.translator.constant(tensor)
            return
        weight = self.stored(node, tensor, self.formats.get(name))
        self.translator.values[node] = self._constant(weight, self.kept(name, weight, self.external))

    def stored(self, node: torch.fx.Node, tensor: torch.Tensor, block_format: str | None) -> Stored:
        name, _ = self.data.of(node)
        if block_format is not None and name in self.blocks:
            content = self.blocks.content(name, tensor)
            return Stored(dtype_name(tensor.dtype), list(tensor.shape), content, block_format)
        return stored(node, tensor, dtype_name(tensor.dtype), block_format)

    def kept(self, name: str, weight: Stored, external: str | None = None) -> str:
        """The key of some bytes in the program's data, which methods that have them in common share."""
        key = weight.key(name)
        self.store.add_named_data(key, weight.content.tobytes(), alignment=ALIGNMENT, external_tag=external)
        return key

    def _state(self, name: str, tensor: torch.Tensor) -> Value:
        """Known by the buffer's name, so that methods which change one buffer share it."""
        initial, own = self.initial(tensor), ARGUMENT.sub(r"buffer.\g<0>", name)
        if initial is None:
            return self.translator.written("state", own, dtype_name(tensor.dtype), list(tensor.shape))
        key = self.kept(name, initial)
        return self.translator.written("state", own, initial.dtype, initial.shape, initial.content, key)

    def initial(self, tensor: torch.Tensor) -> Stored | None:
        """A state's first value; None: zeros, as most are, which take no room in the file."""
        content = bytes_of(tensor)
        return Stored(dtype_name(tensor.dtype), list(tensor.shape), content) if content.any() else None

    def _constant(self, weight: Stored, key: str) -> Value:
        t, dtype = self.translator, "f32" if weight.format else weight.dtype
        if not weight.is_flat:
            return t.written("constant", dtype, weight.shape, weight.content, key, weight.format)
        count = math.prod(weight.shape)
        flat = t.written("constant", dtype, [count], weight.content, key, weight.format)
        return t.cast(t.reshape(t.op("expand_blocks", flat), weight.shape), weight.dtype)

    def _input(self, node: torch.fx.Node) -> None:
        """Arguments are named by their place; those that are no tensors have no input."""
        val = node.meta["val"]
        if isinstance(val, torch.Tensor):
            self.argument(node, self.arguments)
        self.arguments += 1

    def argument(self, node: torch.fx.Node, place: int) -> None:
        order = memory_order(node.meta["val"])
        stored = self.translator.input(f"in{place}", node.meta["val"].permute(order))
        self.translator.values[node] = self.translator.transpose(
            stored, [order.index(i) for i in range(len(order))]
        )

    def output(self, node: torch.fx.Node) -> None:
        specs = self.program.graph_signature.output_specs
        written = [s.target if s.kind == OutputKind.BUFFER_MUTATION else None for s in specs]
        self.results(list(zip(node.args[0], written, strict=True)))

    def results(self, results: list[tuple[torch.fx.Node, str | None]]) -> None:
        """The nodes that others read, each the new value of a buffer where that is named."""
        values = [self._as_it_is_now(self.translator.value(node)) for node, _ in results]
        count = 0
        for (node, buffer), value in zip(results, values, strict=True):
            if buffer is not None:
                self.translator.op("assign", self.states[buffer], value)
                continue
            value = self.translator.transpose(value, memory_order(node.meta["val"]))
            self.translator.written("output", f"out{count}", value)
            count += 1

    def _as_it_is_now(self, value: Value) -> Value:
        """A state is overwritten before results are read."""
        return self.translator.op("identity", value) if value in self.states.values() else value


@final
class GgmlBackend(BackendDetails):
    """The delegate's name and its half at export time."""

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
        part = Part(edge_program, compile_specs)
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
