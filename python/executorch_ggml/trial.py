"""Builds a part of a program before it is taken, without the weights' values: what cannot be built, or could
not be loaded, is left to ExecuTorch."""

from __future__ import annotations

import numpy as np
import torch
from executorch.exir.backend.compile_spec_schema import CompileSpec
from headrace._core import check_graph, graph_to_bytes
from torch.export import ExportedProgram

from .backend import ALIGNMENT, Part
from .buffers import TAG
from .program_data import ProgramData
from .quantize import FORMATS, Stored, is_filter
from .translate import check_argument, dtype_name, is_extent, reason_of, translate

Refusal = tuple[torch.fx.Node | None, str]  # the node that is in the way, where it is one, and why


class _Zeros:
    """Room for any weight, which is never touched and so takes no memory."""

    def __init__(self) -> None:
        self.room = np.zeros(0, np.uint8)

    def bytes(self, count: int) -> np.ndarray:
        if count > self.room.size:
            whole = np.zeros(count + ALIGNMENT, np.uint8)
            self.room = whole[-whole.ctypes.data % ALIGNMENT :]
        return self.room[:count]


ZEROS = _Zeros()


class TrialPart(Part):
    """Programs are partitioned before they have their weights."""

    def __init__(self, program: ExportedProgram, specs: list[CompileSpec]) -> None:
        super().__init__(program, specs)
        self.weights: dict[str, np.ndarray] = {}

    def kept(self, name: str, weight: Stored, external: str | None = None) -> str:
        self.weights[name] = weight.content
        return name

    def stored(self, node: torch.fx.Node, tensor: torch.Tensor, block_format: str | None) -> Stored:
        elements, bytes_ = FORMATS[block_format] if block_format else (1, tensor.element_size())
        content = ZEROS.bytes(tensor.numel() // elements * bytes_)
        dtype, is_flat = dtype_name(tensor.dtype), block_format is not None and is_filter(node)
        return Stored(dtype, list(tensor.shape), content, block_format or "", is_flat)

    def initial(self, tensor: torch.Tensor) -> Stored | None:
        return None


def refusal(program: ExportedProgram, nodes: list[torch.fx.Node], specs: list[CompileSpec]) -> Refusal | None:
    """Why nodes that are tagged as one part cannot be a delegate; None: they can."""
    part, inside = TrialPart(program, specs), set(nodes)
    for node in nodes:
        if is_extent(node) and any(user not in inside for user in node.users):
            return node, "an extent that others use, too"  # a delegate returns tensors only
        if isinstance(node.meta.get("val"), (tuple, list)) and any(user not in inside for user in node.users):
            return node, "not all of its results can be had"
        try:
            for operand in node.all_input_nodes:
                if operand not in inside and operand not in part.translator.values:
                    _bring(part, operand, nodes[0].meta[TAG])
            translate(part.translator, node)
        except Exception as error:  # nothing that export gives may end the lowering
            return node, reason_of(error)
    try:
        part.results(_results(program, nodes))
        check_graph(graph_to_bytes(part.translator.written("finish")), part.weights)
    except Exception as error:
        return None, reason_of(error)
    return None


def _bring(part: Part, operand: torch.fx.Node, tag: str) -> None:
    """A constant or state of the part, or an argument."""
    if operand.op == "placeholder" and operand.meta.get(TAG) == tag:
        part.placeholder(operand)
        return
    check_argument(operand)
    if isinstance(operand.meta.get("val"), torch.Tensor):
        part.argument(operand, part.arguments)
        part.arguments += 1


def _results(program: ExportedProgram, nodes: list[torch.fx.Node]) -> list[tuple[torch.fx.Node, str | None]]:
    held, inside, tag = ProgramData(program), set(nodes), nodes[0].meta[TAG]
    results: list[tuple[torch.fx.Node, str | None]] = []
    states = {
        held.buffers[node.name]
        for node in program.graph.find_nodes(op="placeholder")
        if node.meta.get(TAG) == tag and node.name in held.buffers
    }
    for node in nodes:
        buffer = held.mutated.get(node.name)
        if buffer in states:
            results.append((node, buffer))
        if any(user not in inside and (user.op != "output" or buffer not in states) for user in node.users):
            results.append((node, None))
    return results
