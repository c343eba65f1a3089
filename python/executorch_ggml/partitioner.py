"""Chooses what of an exported program runs on ggml."""

from __future__ import annotations

from collections import Counter

import torch
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data, tag_mutated_buffer
from torch.export import ExportedProgram
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from . import ops  # noqa: F401  fills the table
from .backend import GgmlBackend
from .quantize import Filter, check_format, choose
from .translate import LOWERINGS, target_name, why_not

# Kept whole by export when every one of them in the program can be delegated: apart they are slower, and
# left behind an op that was kept whole is an error.
WHOLE = [
    torch.ops.aten.linear.default,
    torch.ops.aten.scaled_dot_product_attention.default,
    torch.ops.aten.layer_norm.default,
    torch.ops.aten.rms_norm.default,
    torch.ops.aten.group_norm.default,
    torch.ops.aten.silu.default,
    torch.ops.aten.gelu.default,
    torch.ops.aten.hardswish.default,
    torch.ops.aten.hardsigmoid.default,
    torch.ops.aten.max_pool2d.default,
    torch.ops.aten.adaptive_avg_pool2d.default,
    torch.ops.aten.upsample_nearest2d.vec,
    torch.ops.aten.conv3d.default,
    torch.ops.aten.conv_transpose3d.input,
]


class _Support(OperatorSupportBase):
    """The one predicate, and why it refused."""

    def __init__(self) -> None:
        self.reasons: dict[torch.fx.Node, str | None] = {}  # the partitioner asks about a node several times

    def is_node_supported(self, submodules: object, node: torch.fx.Node) -> bool:
        if node.op != "call_function":
            return False
        if not isinstance(node.meta.get("val"), (torch.Tensor, tuple, list)):
            return False  # arithmetic of extents stays outside
        if node not in self.reasons:
            self.reasons[node] = why_not(node)
        return self.reasons[node] is None


class GgmlPartitioner(Partitioner):
    """Tags what ggml runs; the rest stays with ExecuTorch's own kernels in the same program.

    report: print what was left and why. strict: raise when anything was.
    quantize: the block format in which weights of products, convolutions and embeddings are stored: "q8_0",
    "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k" or "q6_k". filter: called with a weight's qualified name
    and a tensor of its shape and dtype (the values are not there yet), says whether that is to be quantised.
    """

    def __init__(
        self,
        report: bool = False,
        strict: bool = False,
        quantize: str | None = None,
        filter: Filter | None = None,
    ) -> None:
        super().__init__()
        self.delegation_spec = DelegationSpec(GgmlBackend.__name__, [])
        self.report, self.strict = report, strict
        self.quantize, self.filter = check_format(quantize), filter
        if filter is not None and quantize is None:
            raise ValueError("filter chooses among quantised weights: it needs quantize")

    def ops_to_not_decompose(self, ep: ExportedProgram) -> tuple[list[torch._ops.OpOverload], None]:
        refused = {
            node.target
            for node in ep.graph.nodes
            if node.op == "call_function" and node.target in WHOLE and why_not(node) is not None
        }
        return [op for op in WHOLE if op not in refused], None

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        support = _Support()
        proposed = CapabilityBasedPartitioner(
            exported_program.graph_module, support, allows_single_node_partition=True
        ).propose_partitions()
        tags = {}
        for part in proposed:
            tag = f"ggml_{part.id}"
            tags[tag] = self.delegation_spec
            for node in part.nodes:
                node.meta["delegation_tag"] = tag
        if self.quantize:
            weights = choose(exported_program, self.quantize, self.filter)
            tags = dict.fromkeys(tags, DelegationSpec(GgmlBackend.__name__, weights.specs()))
            if self.report:
                print("GgmlPartitioner:", *weights.lines(), sep="\n")
        tag_constant_data(exported_program)
        tag_mutated_buffer(exported_program)
        self._tell(support, len(tags))
        return PartitionResult(tagged_exported_program=exported_program, partition_tags=tags)

    def _tell(self, support: _Support, parts: int) -> None:
        counted = Counter((target_name(node), reason) for node, reason in support.reasons.items() if reason)
        lines = [f"  {count} x {name}: {reason}" for (name, reason), count in sorted(counted.items())]
        if self.report:
            print(
                f"GgmlPartitioner: {parts} delegate(s); left to ExecuTorch: {sum(counted.values())} node(s)"
            )
            print(*lines, sep="\n", end="\n" if lines else "")
        if self.strict and lines:
            raise ValueError("GgmlPartitioner(strict=True): not delegated:\n" + "\n".join(lines))


def supported_ops() -> list[str]:
    """The ATen overloads that have a lowering."""
    return sorted(LOWERINGS)
