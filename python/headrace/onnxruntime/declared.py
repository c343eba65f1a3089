"""What an ONNX model says of its inputs and outputs, in the words of ONNX Runtime."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace._core import OnnxModel, OnnxValue


@dataclass
class Declared:
    """An input or output. kinds: from the outside in, ("optional", "seq", "tensor")."""

    name: str
    kinds: tuple[str, ...] = ("tensor",)
    element_type: int = 0
    shape: list[int | str | None] | None = None  # None: the model gives none; of an extent: it has no name
    denotations: list[str] = field(default_factory=list)

    @property
    def is_tensor(self) -> bool:
        return self.kinds == ("tensor",)

    @property
    def is_optional(self) -> bool:
        return self.kinds[0] == "optional"

    @property
    def is_sequence(self) -> bool:
        return "seq" in self.kinds


class Interface:
    """What one session declares, which adds what it knows better.

    inputs: what a caller has to give. overridable: initializers that are listed as inputs.
    """

    def __init__(self, model: OnnxModel) -> None:
        self.inputs = [_declared(value) for value in model.inputs]
        self.overridable = [_declared(value) for value in model.overridable_initializers]
        self.outputs = [_declared(value) for value in model.outputs]


def _declared(value: OnnxValue) -> Declared:
    kinds = ["seq" if kind == "sequence" else kind for kind in value.kind.split(" of ")]
    if kinds[-1] in ("seq", "optional"):
        kinds.append("tensor")
    shape = None
    if value.shape is not None:
        named = zip(value.shape, value.dimension_names, strict=True)
        shape = [_extent(extent) if isinstance(extent, int) else name or None for extent, name in named]
    return Declared(value.name, tuple(kinds), value.element_type, shape, value.denotations)


def _extent(size: int) -> int | None:
    return size if size >= 0 else None  # -1 is what some exporters write for an open extent
