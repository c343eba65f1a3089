"""Chooses what of an exported program runs on ggml."""

from __future__ import annotations

import warnings
from collections import Counter
from functools import cache

import torch
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from executorch.extension.pybindings.portable_lib import _get_operator_names
from torch.export import ExportedProgram

from .backend import EXTERNAL, GgmlBackend
from .buffers import TAG, Buffers, tag_states
from .decompositions import decompose
from .gguf_weights import GgufWeights
from .ops import creation, movement  # the package fills the table
from .program_data import ProgramData
from .proposal import Part, Proposal, has_tensors
from .quantize import Choice, Filter, check_format, choose
from .translate import LOWERINGS, first_refused, is_extent, overload_name, target_name, why_not
from .trial import refusal

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
    torch.ops.aten.lstm.input,
    torch.ops.aten.upsample_nearest2d.vec,
    torch.ops.aten.conv3d.default,
    torch.ops.aten.conv_transpose3d.input,
]


# The work that decides how fast a program is: ExecuTorch's own kernels are hundreds of times slower at it.
PRODUCTS = {
    "aten.linear.default",
    "aten.mm.default",
    "aten.bmm.default",
    "aten.matmul.default",
    "aten.addmm.default",
    "aten.baddbmm.default",
    "aten.conv1d.default",
    "aten.conv2d.default",
    "aten.conv3d.default",
    "aten.convolution.default",
    "aten.scaled_dot_product_attention.default",
}
# Lowerings that compute nothing: a part with no others is not worth a call of the delegate.
IDLE = {
    movement.same,
    movement.reshape,
    *(f for f in LOWERINGS.values() if f.__module__ == creation.__name__),
}


NO_KERNEL = "; nor has ExecuTorch's Python runtime a kernel for it, so the program will not load there"


@cache
def _kernel_names() -> frozenset[str]:
    return frozenset(_get_operator_names())


def _is_without_kernel(node: torch.fx.Node) -> bool:
    """Whether what is left to ExecuTorch is not in its runtime of this process."""
    if not isinstance(node.target, EdgeOpOverload):
        return False
    try:
        return node.target.to_out_variant().name() not in _kernel_names()
    except RuntimeError:  # it has no form with results that are given, which is the one that programs call
        return True


def _is_idle(part: Part) -> bool:
    names = [target_name(node) for node in part if not is_extent(node)]
    return all(name == "getitem" or LOWERINGS[name] in IDLE for name in names)


def _tag_constants(program: ExportedProgram, has_parts: bool) -> None:
    """Gives constants to the parts that use them, and those that nothing uses to any part, which drops them.
    One that is also a result of the program stays with it."""
    tag_constant_data(program)
    held = ProgramData(program)
    mutated = set(held.mutated.values())
    for node in program.graph.find_nodes(op="placeholder"):
        data = held.of(node)
        if has_parts and not node.users and data is not None and data[0] not in mutated:
            node.meta[TAG] = "ggml_0"
    for node in program.graph.output_node().all_input_nodes:
        if node.op == "placeholder":
            node.meta.pop(TAG, None)


def _untag(program: ExportedProgram) -> None:
    for node in program.graph.nodes:
        node.meta.pop(TAG, None)
        node.meta.pop("et_init_buffer", None)


class GgmlPartitioner(Partitioner):
    """Tags what ggml runs; the rest stays with ExecuTorch's own kernels in the same program.

    Nothing is taken of a graph all of whose matrix products would be left: another backend can have it whole.
    Neither are parts that only reshape, copy or cast.

    report: print what was left and why. strict: raise when a node was.
    quantize: the block format in which weights of products, convolutions and embeddings are stored: "q8_0",
    "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k" or "q6_k". filter: called with a weight's qualified name
    and a tensor of its shape and dtype (the values are not there yet), says whether that is to be quantised.
    gguf: weights that are stored in the blocks that a GGUF file has, whatever quantize and filter say.
    external_weights: the name, without ".ptd", of a file of their own for the weights, which several programs
    can share; write_tensor_data_to_file(folder) makes it.
    """

    def __init__(
        self,
        report: bool = False,
        strict: bool = False,
        quantize: str | None = None,
        filter: Filter | None = None,
        gguf: GgufWeights | None = None,
        external_weights: str | None = None,
    ) -> None:
        super().__init__()
        if external_weights is not None and not external_weights.isidentifier():
            raise ValueError(
                f"external_weights is {external_weights!r}; a file's name of letters and digits is wanted"
            )
        if gguf is not None and not isinstance(gguf, GgufWeights):
            raise TypeError(
                f"gguf is {gguf!r}; it must be a GgufWeights, which says which tensors of a file are which"
                " weights: GgufWeights('model.gguf', {'lm_head.weight': 'output.weight'})"
            )
        specs = [] if external_weights is None else [CompileSpec(EXTERNAL, external_weights.encode())]
        self.delegation_spec = DelegationSpec(GgmlBackend.__name__, specs)
        self.report, self.strict = report, strict
        self.quantize, self.filter, self.gguf = check_format(quantize), filter, gguf
        self._changed: set[str] = set()  # buffers, by any method that was partitioned
        self._returned: set[str] = set()  # those of methods without a delegate
        if filter is not None and quantize is None:
            raise ValueError("filter chooses among quantised weights: it needs quantize")

    def transform_for_pre_decomposition(self, exported_program: ExportedProgram) -> ExportedProgram:
        return decompose(exported_program)

    def ops_to_not_decompose(self, ep: ExportedProgram) -> tuple[list[torch._ops.OpOverload], None]:
        """An op that is kept whole must then be delegated, so every one of them in the program has to be
        possible, and none of them in a branch or a loop body, which are not delegated. Export asks again with
        the program in the edge dialect, about ops that were left."""
        nodes = [node for node in ep.graph.nodes if node.op == "call_function"]
        products = [node for node in nodes if target_name(node) in PRODUCTS]
        if products and all(why_not(node) is not None for node in products):
            return [], None
        # By itself it must be possible without what others know of its extents.
        whole = {overload_name(op): op for op in WHOLE}
        refused = {
            name for node in nodes if (name := target_name(node)) in whole and first_refused([node])[0]
        }
        for module in ep.graph_module.modules():
            if isinstance(module, torch.fx.GraphModule) and module is not ep.graph_module:
                refused |= {target_name(node) for node in module.graph.nodes if node.op == "call_function"}
        return [op for name, op in whole.items() if name not in refused], None

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        nodes = [node for node in exported_program.graph.nodes if node.op == "call_function"]
        proposal = Proposal(exported_program)
        while True:
            parts = self._worthwhile(proposal.parts(), nodes)
            weights, buffers = self._tag(exported_program, parts)
            specs = [*self.delegation_spec.compile_specs, *weights.specs(), *buffers.specs()]
            if weights.from_file:
                specs.append(self.gguf.spec(weights.from_file))
            refusals = [(part, refusal(exported_program, part, specs)) for part in parts]
            if not any(why for _, why in refusals):
                break
            _untag(exported_program)
            for part, why in refusals:
                if why:
                    proposal.refuse(part, *why)
        self._tell_weights(weights)
        if self.report:
            for buffer, reason in buffers.kept.items():
                print(f"GgmlPartitioner: ExecuTorch keeps buffer {buffer}: {reason}")
        taken = {node for part in parts for node in part}
        reasons = proposal.support.reasons
        left = {node: reasons.get(node) for node in nodes if node not in taken and has_tensors(node)}
        self._tell(left, len(parts))
        self._changed |= set(exported_program.graph_signature.buffers_to_mutate.values())
        self._returned |= set() if parts else set(buffers.frozen)
        for buffer in sorted(self._changed & self._returned):
            warnings.warn(
                f"a method that computes nothing returns buffer {buffer!r}, and it will return the first "
                "value always, although another method changes it: return a copy (.clone())",
                stacklevel=2,
            )
        spec = DelegationSpec(GgmlBackend.__name__, specs)
        tags = {f"ggml_{i}": spec for i in range(len(parts))}
        return PartitionResult(tagged_exported_program=exported_program, partition_tags=tags)

    def _tag(self, program: ExportedProgram, parts: list[Part]) -> tuple[Choice, Buffers]:
        """Marks the parts, their constants and their states."""
        for i, part in enumerate(parts):
            for node in part:
                node.meta[TAG] = f"ggml_{i}"
        weights = Choice()
        if self.quantize or self.gguf:
            weights = choose(program, self.quantize, self.filter, self.gguf)
        _tag_constants(program, bool(parts))
        return weights, tag_states(program)

    def _tell_weights(self, weights: Choice) -> None:
        if not self.quantize and not self.gguf:
            return
        if self.gguf:
            left = sorted(set(self.gguf.names) - set(weights.from_file))
            if left:
                warnings.warn(
                    f"{self.gguf.path.name}: no blocks of the file are stored for {', '.join(left[:8])}: no "
                    "product or look-up of a delegate reads it, or the file has it in another type",
                    stacklevel=3,
                )
        elif not weights.formats:
            why = "; ".join(weights.outcomes) or "no delegate has a weight"
            warnings.warn(f"quantize={self.quantize!r} changes nothing: {why}", stacklevel=3)
        if self.report:
            first, *others = weights.lines()
            print(f"GgmlPartitioner: {first}", *others, sep="\n")

    def _worthwhile(self, parts: list[Part], nodes: Part) -> list[Part]:
        taken = {node for part in parts for node in part}
        products = [node for node in nodes if target_name(node) in PRODUCTS]
        whole = {overload_name(op) for op in WHOLE}
        if products and not taken.intersection(products):
            # One that was kept whole has to be taken all the same.
            return [part for part in parts if any(target_name(node) in whole for node in part)]
        is_everything = len(taken) == len(nodes)
        return [
            part for part in parts if any(map(has_tensors, part)) and (is_everything or not _is_idle(part))
        ]

    def _tell(self, left: dict[torch.fx.Node, str | None], parts: int) -> None:
        spared = "alone not worth a delegate, or in a graph whose matrix products cannot be delegated"
        counted = Counter(
            (target_name(node), (reason or spared) + (NO_KERNEL if _is_without_kernel(node) else ""))
            for node, reason in left.items()
        )
        lines = [f"  {count} x {name}: {reason}" for (name, reason), count in sorted(counted.items())]
        if self.report:
            print(f"GgmlPartitioner: {parts} delegate(s); left to ExecuTorch: {len(left)} node(s)")
            print(*lines, sep="\n", end="\n" if lines else "")
        if self.strict and lines:
            raise ValueError("GgmlPartitioner(strict=True): not delegated:\n" + "\n".join(lines))


def supported_ops() -> list[str]:
    """The ATen overloads that have a lowering."""
    return sorted(LOWERINGS)
