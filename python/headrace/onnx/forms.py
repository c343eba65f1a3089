"""What a model's outputs are made of: sequences and optionals of the tensors that a graph gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Tensors = Mapping[str, np.ndarray]


@dataclass
class OfTensor:
    name: str  # of the graph's output

    def value(self, tensors: Tensors) -> np.ndarray:
        return tensors[self.name]


@dataclass
class OfSequence:
    items: list[Any]

    def value(self, tensors: Tensors) -> list[Any]:
        return [item.value(tensors) for item in self.items]


@dataclass
class OfTable:
    """A sequence of unknown length: all elements, and the shapes."""

    elements: str
    shapes: str
    ranks: str | None = None  # how many of the dimensions each has, where that is not one number

    def value(self, tensors: Tensors) -> list[np.ndarray]:
        shapes = list(tensors[self.shapes])
        if self.ranks is not None:
            shapes = [shape[:rank] for shape, rank in zip(shapes, tensors[self.ranks], strict=True)]
        return list(self._parts(tensors[self.elements], shapes))

    @staticmethod
    def _parts(elements: np.ndarray, shapes: list[np.ndarray]) -> Iterator[np.ndarray]:
        begin = 0
        for shape in shapes:
            count = int(np.prod(shape, dtype=np.int64))
            yield elements[begin : begin + count].reshape(shape)
            begin += count


@dataclass
class OfOptional:
    item: Any  # None where it is empty
    flag: str | None  # an output that says whether it is there

    def value(self, tensors: Tensors) -> Any:
        if self.item is None or (self.flag is not None and not tensors[self.flag].reshape(-1)[0]):
            return None
        return self.item.value(tensors)


@dataclass
class Output:
    """One of the model's."""

    name: str
    form: OfTensor | OfSequence | OfTable | OfOptional
