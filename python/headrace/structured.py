"""ONNX models that need a graph for each form of their inputs.

That are those with sequences or optionals, and those that cannot be read as long as dimensions are open or
the model does not say how many there are.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ._arrays import dtype_of
from ._core import OnnxModel, OnnxValue
from .loading import loaded
from .model import Model, named_inputs

_KEPT = 16  # graphs of the forms that were given last
# For all open dimensions: whether a model can be read once these are known. Small ones are what lists have of
# axes, boxes of edges and parts of outputs.
_TRIED = (1, 2, 4, 8, 64, 256, 3, 6, 12, 5, 10)
_TRIED_RANKS = (2, 4, 3, 1, 0)  # of inputs without a shape


def of_each_shape(
    source: OnnxModel,
    title: str,
    dimensions: Mapping[str, Any] | None,
    most_iterations: int | None,
    options: dict[str, Any],
    why_not_open: str,
) -> StructuredModel | None:
    """What reads a model for the shapes of each call. None: knowing them is no help.

    why_not_open: the error of reading it with open dimensions.
    """
    given = dimensions or {}
    names = _open_dimensions(source, given)
    shapeless = _shapeless(source, given)
    for number, rank in product(_TRIED if names or shapeless else (), _TRIED_RANKS if shapeless else (0,)):
        shapes = {name: [number] * rank for name in shapeless}
        try:
            source.read({**given, **dict.fromkeys(names, number), **shapes})
        except ValueError:
            continue
        return StructuredModel(source, title, dimensions, most_iterations, options, why_not_open)
    return None


def _open_dimensions(source: OnnxModel, given: Mapping[str, Any]) -> list[str]:
    """Names of those of tensors."""
    names = []
    for info in source.inputs:
        if info.kind == "tensor" and info.name not in given:
            names += [d for d in info.shape or () if isinstance(d, str)]
    return [name for name in dict.fromkeys(names) if name not in given]


def _shapeless(source: OnnxModel, given: Mapping[str, Any]) -> list[str]:
    """Names of tensors whose number of dimensions the model does not say."""
    return [
        info.name
        for info in source.inputs
        if info.kind == "tensor" and info.shape is None and info.name not in given
    ]


@dataclass(frozen=True)
class Declared:
    """An input or output as a model declares it.

    kind: "tensor", or "sequence" or "optional" of such. shape: numbers and names; None where the model does
    not say the number of dimensions. dtype: None where it says none.
    """

    name: str
    kind: str
    shape: list[str | int] | None
    dtype: np.dtype | None


def _declared(info: OnnxValue, given: Mapping[str, Any]) -> Declared:
    shape = info.shape
    if shape is not None and info.kind == "tensor":
        shape = list(given.get(info.name) or [given.get(d, d) for d in shape])
    return Declared(info.name, info.kind, shape, None if info.type is None else dtype_of(info.type))


class StructuredModel:
    """A model that takes lists of arrays for sequences and None for optionals that are empty, and gives such.

    How many arrays there are, how many dimensions they have and which optionals are empty decides on a graph,
    which is made when it is first needed. Is called as a Model.

    inputs, outputs: what the model declares, with the numbers of `dimensions`.
    """

    def __init__(
        self,
        source: OnnxModel,
        title: str,
        dimensions: Mapping[str, Any] | None,
        most_iterations: int | None,
        options: dict[str, Any],
        why_not_open: str = "",
    ) -> None:
        """why_not_open: where the tensors' shapes, too, decide on a graph."""
        self._why_not_open = why_not_open
        self._source, self._title, self._dimensions = source, title, dict(dimensions or {})
        self._most_iterations, self._options = most_iterations, options
        self._names = [info.name for info in source.inputs]
        self.inputs = [_declared(info, self._dimensions) for info in source.inputs]
        self.outputs = [_declared(info, self._dimensions) for info in source.outputs]
        self._models: OrderedDict[Any, Model] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, *arrays: Any, **named: Any) -> dict[str, Any]:
        """Runs the model. Errors: ValueError for missing, unknown or unfit inputs, and headrace.load's."""
        given = named_inputs(self._title, self._names, arrays, named)
        forms, feeds = {}, {}
        for info in self._source.inputs:
            value = given[info.name]
            if info.kind == "tensor":
                feeds[info.name] = value
                if self._why_not_open:
                    forms[info.name] = list(np.shape(value))
            elif info.name not in self._dimensions:
                forms[info.name] = _form(info.name, value, feeds)
            else:
                _form(info.name, value, feeds)
        return self._model(forms)(feeds)

    def _model(self, forms: dict[str, Any]) -> Model:
        key = repr(forms)
        with self._lock:
            if key not in self._models:
                dimensions = {**self._dimensions, **forms}
                self._models[key] = loaded(
                    self._source, self._title, dimensions, self._most_iterations, self._options
                )
            self._models.move_to_end(key)
            while len(self._models) > _KEPT:
                self._models.popitem(last=False)
            return self._models[key]

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there: what a Model has of its one graph."""
        if name not in ("executable", "graph", "profiled", "run", "session"):
            raise AttributeError(f"'StructuredModel' object has no attribute {name!r}")
        what = "dimensions" if self._why_not_open else "the shapes of its sequences' tensors"
        raise AttributeError(
            f"{self._title} is a StructuredModel, which reads the model anew for the inputs of each call and "
            f"has no {name}; headrace.load with {what} (dimensions=...) makes a Model, which has"
        )

    def save(self, path: str | Path) -> None:
        """Errors: ValueError; a graph is of one form."""
        if self._why_not_open:
            names = _open_dimensions(self._source, self._dimensions)
            shapes = [f"{name!r}: [1, 2]" for name in _shapeless(self._source, self._dimensions)]
            numbers = ", ".join([*shapes, *(f"{name!r}: 1" for name in names)])
            raise ValueError(
                f"{self._title} is read anew for the shapes of each call, and a graph file is of one reading;"
                f" to save one, load the model with the numbers that you need, dimensions={{{numbers}}}."
                f" With open dimensions it cannot be read: {self._why_not_open}"
            )
        raise ValueError(
            f"{self._title} has inputs that are sequences or optionals; load it with the shapes of their"
            " tensors, dimensions={'x': [[2, 'n'], [2, 3]]}, to save a graph"
        )

    def __repr__(self) -> str:
        return f"StructuredModel({self._title}: {', '.join(self._names)})"


def _form(name: str, value: Any, feeds: dict[str, Any]) -> Any:
    """A value as the shapes of its tensors, with names for extents. Adds the tensors to the feeds."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [_form(f"{name}[{i}]", item, feeds) for i, item in enumerate(value)]
    feeds[name] = array = np.asarray(value)
    return [f"{name}.{axis}" if extent else 0 for axis, extent in enumerate(array.shape)]
