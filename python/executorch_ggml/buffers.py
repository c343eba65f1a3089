"""Who has a program's mutated buffers: delegates, as states that all methods share, or ExecuTorch.

The partitioner sees one method at a time. What only it knows goes into a compile spec, and which methods
share a buffer shows when the delegates of all of them are made.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

import torch
from executorch.exir.backend.compile_spec_schema import CompileSpec
from torch.export import ExportedProgram

from .program_data import ProgramData

SPEC, SHARED = "buffers", "shared_states"
TAG = "delegation_tag"
REMEDIES = {
    "its new value is a result, too": "return a copy of it (.clone())",
    "it becomes a result or another buffer as it is": "hand on a copy of it (.clone())",
    "not one delegate alone reads and writes it": "report=True says what is left between its uses",
}


@dataclass
class Buffers:
    """The buffers of one method that no delegate has as a state, by their qualified names."""

    kept: dict[str, str] = field(default_factory=dict)  # changed, but ExecuTorch keeps them; with the reason
    frozen: list[str] = field(default_factory=list)  # only read, and not by one delegate alone

    def specs(self) -> list[CompileSpec]:
        if not self.kept and not self.frozen:
            return []
        return [CompileSpec(SPEC, json.dumps({"kept": self.kept, "frozen": self.frozen}).encode())]


def buffers_in(specs: list[CompileSpec]) -> Buffers:
    found = next((json.loads(spec.value) for spec in specs if spec.key == SPEC), {})
    return Buffers(**found)


def tag_states(program: ExportedProgram) -> Buffers:
    """Gives a mutated buffer to the part that alone reads and writes it. ExecuTorch keeps the others, as
    arguments. It would start them as zeros unless it is told to store what they hold."""
    held = ProgramData(program)
    results = Counter(program.graph.output_node().args[0])
    found = Buffers()
    for node in program.graph.nodes:
        buffer = held.buffers.get(node.name) if node.op == "placeholder" else None
        if buffer is None:
            continue
        written = [n for n in results if held.mutated.get(getattr(n, "name", None)) == buffer]
        involved = [user for user in node.users if user.op != "output"] + written
        tags = {other.meta.get(TAG) for other in involved}
        if not written:
            if node in results or len(tags) > 1 or None in tags:
                found.frozen.append(buffer)
            continue
        if results[written[0]] > 1:
            found.kept[buffer] = "its new value is a result, too"
        elif node in results:
            found.kept[buffer] = "it becomes a result or another buffer as it is"
        elif len(tags) > 1 or None in tags:
            found.kept[buffer] = "not one delegate alone reads and writes it"
        else:
            node.meta[TAG] = tags.pop()
            continue
        node.meta["et_init_buffer"] = True
    return found


Programs = dict[str, list[ExportedProgram]]  # the delegates of each method


def shared_states(programs: Programs, specs: dict[str, list[list[CompileSpec]]]) -> CompileSpec:
    """The buffers that any method changes in a delegate: they are states of those that only read them, too.
    Raises where a method would go on with the first value of what another one changes."""
    methods = {method: buffers_in(found[0]) if found else Buffers() for method, found in specs.items()}
    writers, values = {}, {}
    for method, parts in programs.items():
        for part in parts:
            for name in part.graph_signature.buffers_to_mutate.values():
                writers[name], values[name] = method, _buffers(part)[name]
    for method, found in methods.items():
        for name, reason in found.kept.items():
            _check_alone(method, name, reason, programs, methods)
        for name in found.frozen:
            if name in writers:
                raise ValueError(
                    f"method {method!r} reads buffer {name!r}, which method {writers[name]!r} changes, and "
                    "not in one delegate alone: it would see the first value always. Let one delegate read "
                    "it (report=True says what is left), and where it is a result return a copy (.clone())"
                )
        for part in programs[method]:
            for name, value in _buffers(part).items():
                if name in values and not _is_same(value, values[name]):
                    raise ValueError(
                        f"methods {writers[name]!r} and {method!r} have a buffer {name!r} each, and they "
                        "differ in type or first value: give them different names, or export both methods "
                        "with equal values where they are to share it"
                    )
    return CompileSpec(SHARED, json.dumps(sorted(writers)).encode())


def shared_in(specs: list[CompileSpec]) -> set[str]:
    return set(next((json.loads(spec.value) for spec in specs if spec.key == SHARED), []))


def _buffers(part: ExportedProgram) -> dict[str, torch.Tensor]:
    held = ProgramData(part)
    nodes = [node for node in part.graph.find_nodes(op="placeholder") if node.name in held.buffers]
    return dict(map(held.of, nodes))


def _is_same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)


def _check_alone(
    method: str, name: str, reason: str, programs: Programs, methods: dict[str, Buffers]
) -> None:
    for other, parts in programs.items():
        found = methods[other]
        has_it = name in found.kept or name in found.frozen or any(name in _buffers(part) for part in parts)
        if other != method and has_it:
            raise ValueError(
                f"methods {method!r} and {other!r} share buffer {name!r}, but ExecuTorch keeps it for "
                f"{method!r} alone: {reason}; {REMEDIES[reason]}"
            )
