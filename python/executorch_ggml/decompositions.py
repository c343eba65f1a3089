"""ATen ops outside of core ATen, in core ATen: export refuses them before a partitioner is asked."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram

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


def decompose(program: ExportedProgram) -> ExportedProgram:
    """The program itself where it has none of these."""
    found = {node.target for node in program.graph.nodes if node.op == "call_function"} & set(TABLE)
    return program.run_decompositions({op: TABLE[op] for op in found}) if found else program
