"""Parts of a program that could be delegates, until all of them can be."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from .translate import first_refused, is_extent, target_name, why_not

Part = list[torch.fx.Node]


def has_tensors(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), (torch.Tensor, tuple, list))


class Support(OperatorSupportBase):
    """The one predicate, and why it refused."""

    def __init__(self) -> None:
        self.reasons: dict[torch.fx.Node, str | None] = {}  # the partitioner asks about a node several times

    def is_node_supported(self, submodules: object, node: torch.fx.Node) -> bool:
        if node.op != "call_function":
            return False
        if node not in self.reasons:
            self.reasons[node] = why_not(node) if has_tensors(node) or is_extent(node) else "no tensor"
        return self.reasons[node] is None


class Proposal:
    """The parts, and those nodes that were refused in one."""

    def __init__(self, program: ExportedProgram) -> None:
        self.program, self.support = program, Support()
        self._order = {node: place for place, node in enumerate(program.graph.nodes)}
        self._apart: list[Part] = []  # parts of nodes that were refused beside others

    def parts(self) -> list[Part]:
        partitioner = CapabilityBasedPartitioner(
            self.program.graph_module, self.support, allows_single_node_partition=True
        )
        found = [sorted(p.nodes, key=self._order.__getitem__) for p in partitioner.propose_partitions()]
        return sorted(found + self._apart, key=lambda part: self._order[part[0]])

    def refuse(self, part: Part, node: torch.fx.Node | None, reason: str) -> None:
        """Leaves the node out. One that is possible alone is a part of its own, and so are those before and
        after one in a part of that kind. Where no node is in the way, halves of the part are tried."""
        group = part if node is None else [node] if is_extent(node) else _with_results(node)
        for member in group:
            self.support.reasons[member] = reason
        if part in self._apart:
            self._apart.remove(part)
            if node is not None:
                place = part.index(group[0])
                rest = [part[:place], [other for other in part[place:] if other not in group]]
                self._apart += [nodes for nodes in rest if nodes]
        elif node is not None and not is_extent(node) and first_refused(group)[0] is None:
            self._apart.append(group)
        if node is None:
            self._apart += _halves(part)


def _with_results(node: torch.fx.Node) -> Part:
    """A node with those that take its results apart."""
    if target_name(node) == "getitem":
        node = node.args[0]
    return [node, *(user for user in node.users if target_name(user) == "getitem")]


def _halves(part: Part) -> list[Part]:
    """In the order of the program, which keeps delegates from waiting for one another in a circle."""
    for step in (1, -1):
        middle = len(part) // 2
        while 0 < middle < len(part) and target_name(part[middle]) == "getitem":
            middle += step
        if 0 < middle < len(part):
            return [part[:middle], part[middle:]]
    return []
