"""The parameters, buffers and constants of an exported program."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram


class ProgramData:
    """What placeholders hold that are no run-time inputs.

    A program's signature makes each of its tables anew whenever it is asked for one, so this asks once.
    """

    def __init__(self, program: ExportedProgram) -> None:
        signature = program.graph_signature
        self.buffers = dict(signature.inputs_to_buffers)
        """Qualified names by the placeholders' names."""
        self.mutated = dict(signature.buffers_to_mutate)
        """Qualified names of buffers by the names of the nodes that are their new values."""
        constants = dict(signature.inputs_to_lifted_tensor_constants)
        self._names = {**constants, **self.buffers, **signature.inputs_to_parameters}
        self._constants = set(constants.values()) | set(signature.non_persistent_buffers)
        self._program = program

    def of(self, node: torch.fx.Node) -> tuple[str, torch.Tensor] | None:
        """The qualified name and value of a placeholder; None of a run-time input."""
        name = self._names.get(node.name)
        if name is None:
            return None
        held = self._program.constants if name in self._constants else self._program.state_dict
        return name, held[name]
