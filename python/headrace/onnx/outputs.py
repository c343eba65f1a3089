"""What an ONNX model's outputs are made of: sequences and optionals of the tensors that a graph gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from headrace._arrays import dtype_of
from headrace._core import OnnxOutput

Tensors = Mapping[str, np.ndarray]


class Outputs:
    """A model's, made of what a run of its graph gives."""

    def __init__(self, outputs: list[OnnxOutput], declared: Mapping[str, str]) -> None:
        """declared: the model's types of those tensors whose elements the graph gives in another one."""
        self._declared = {name: dtype_of(type_) for name, type_ in declared.items()}
        self._made = {output.name: _maker(output) for output in outputs}

    def of(self, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
        for name, dtype in self._declared.items():
            tensors[name] = tensors[name].astype(dtype)
        return {name: made(tensors) for name, made in self._made.items()}


def _maker(output: OnnxOutput) -> Callable[[Tensors], Any]:
    if output.kind == "table":
        elements, shapes, ranks = output.tensor, output.shapes, output.ranks
        return lambda tensors: _split(
            tensors[elements], tensors[shapes], None if ranks is None else tensors[ranks]
        )
    parts = [_maker(part) for part in output.parts]
    if output.kind == "sequence":
        return lambda tensors: [part(tensors) for part in parts]
    if output.kind == "optional":
        flag = output.is_there
        return lambda tensors: parts[0](tensors) if parts and _holds(tensors, flag) else None
    name = output.tensor
    return lambda tensors: tensors[name]


def _holds(tensors: Tensors, flag: str | None) -> bool:
    return flag is None or bool(tensors[flag].reshape(-1)[0])


def _split(elements: np.ndarray, shapes: np.ndarray, ranks: np.ndarray | None) -> list[np.ndarray]:
    """The parts of a sequence of unknown length: all elements, one tensor after another. ranks: how many
    of the dimensions each has.
    """
    found, begin = [], 0
    for i, whole in enumerate(shapes):
        shape = whole if ranks is None else whole[: ranks[i]]
        count = int(np.prod(shape, dtype=np.int64))
        found.append(elements[begin : begin + count].reshape(shape))
        begin += count
    return found
