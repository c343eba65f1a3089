"""What is changed of a program before export takes it apart: ATen ops outside of core ATen, which export
refuses before a partitioner is asked, and constants without elements, which no program holds that it can
load.
"""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec

# A sum of so many products of bytes is a whole number of at most 2^24, and f32 has all of those.
EXACT_COLUMNS = 2**24 // 128**2


def _int_mm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The exact product of matrices of int8, as int32."""
    total = None
    for start in range(0, a.shape[1], EXACT_COLUMNS):
        end = min(start + EXACT_COLUMNS, a.shape[1])
        part = torch.mm(a[:, start:end].float(), b[start:end].float()).int()
        total = part if total is None else total + part
    return total


TABLE = {torch.ops.aten._int_mm.default: _int_mm}


CONSTANTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def decompose(program: ExportedProgram) -> ExportedProgram:
    """The program itself where it has none of these."""
    found = {node.target for node in program.graph.nodes if node.op == "call_function"} & set(TABLE)
    if found:
        program = program.run_decompositions({op: TABLE[op] for op in found})
    if not _empty_constants(program):
        return program
    program = program.run_decompositions({})  # the caller's stays as it is
    program._state_dict, program._constants = dict(program.state_dict), dict(program.constants)
    for spec in _empty_constants(program):
        _compute(program, spec)
    program.graph_module.recompile()
    return program


def _empty_constants(program: ExportedProgram) -> list[InputSpec]:
    """Those that nothing changes. A program whose only constants have no elements has no room for them, and
    ExecuTorch then refuses to load it from a file."""
    mutated = set(program.graph_signature.buffers_to_mutate.values())
    vals = {node.name: node.meta["val"] for node in program.graph.find_nodes(op="placeholder")}
    return [
        spec
        for spec in program.graph_signature.input_specs
        if spec.kind in CONSTANTS and spec.target not in mutated and vals[spec.arg.name].numel() == 0
    ]


def _compute(program: ExportedProgram, spec: InputSpec) -> None:
    """Makes the constant a result of the graph."""
    graph, signature = program.graph, program.graph_signature
    placeholder = next(n for n in graph.find_nodes(op="placeholder") if n.name == spec.arg.name)
    val = placeholder.meta["val"]
    with graph.inserting_after(graph.find_nodes(op="placeholder")[-1]):
        full = graph.call_function(
            torch.ops.aten.full.default,
            (list(val.shape), 0),
            {"dtype": val.dtype, "device": val.device, "pin_memory": False},
        )
    full.meta["val"] = val
    with program.graph_module._set_replace_hook(signature.get_replace_hook()):
        placeholder.replace_all_uses_with(full)
    graph.erase_node(placeholder)
    signature.input_specs.remove(spec)
    for values in (program.state_dict, program.constants):
        values.pop(spec.target, None)
