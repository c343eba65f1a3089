"""A model as headrace.load has it, for whatever shapes ONNX Runtime would take."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from headrace._core import OnnxModel, Tensor
from headrace._options import OptionError
from headrace.loading import load
from headrace.model import Model

from .declared import Declared
from .errors import InvalidArgument, of_loading, of_running

_KEPT = 16  # models of the shapes that were given last


class Program:
    """headrace.load takes a name of two extents as one number, which is at least 1. ONNX Runtime does not: a
    model is loaded once more with a name for each extent where a call's sizes differ, and for the shapes of
    the call where one is 0 or the model does not tell how many extents there are.
    """

    def __init__(
        self,
        source: OnnxModel,
        inputs: list[Declared],
        dimensions: dict[str, int],
        options: dict[str, Any],
    ) -> None:
        """dimensions: numbers for names of inputs' extents. Errors: OnnxRuntimeError."""
        self._source, self._options = source, options
        self._tensors = [info for info in inputs if info.is_tensor]
        self._dimensions = dimensions
        self._by_shapes: OrderedDict[Any, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._separated: Any = None
        self._model: Any = None
        try:
            self._model = self._load(dimensions)
        except OptionError as error:
            raise InvalidArgument.of(str(error)) from error
        except ValueError as error:
            self._model = self._separately()
            if self._model is None and all(info.shape is not None for info in self._tensors):
                raise of_loading(error, source.operator_sets) from error

    @property
    def model(self) -> Any:
        """With open dimensions; None where there is one only for the shapes of a call."""
        return self._model

    def _load(self, dimensions: dict[str, Any]) -> Any:
        return load(self._source, dimensions=dimensions or None, **self._options)

    def _separately(self) -> Any:
        """With a name for each open extent; None where it cannot be read so."""
        if self._separated is None:
            shapes = {
                info.name: [
                    self._dimensions.get(d, f"{info.name}.{axis}") if not isinstance(d, int) else d
                    for axis, d in enumerate(info.shape)
                ]
                for info in self._tensors
                if info.shape
            }
            try:
                self._separated = self._load(shapes)
            except ValueError:
                self._separated = False
        return self._separated or None

    def _of_shapes(self, feeds: dict[str, Any]) -> Any:
        shapes = {info.name: list(np.shape(feeds[info.name])) for info in self._tensors}
        key = repr(shapes)
        with self._lock:
            if key not in self._by_shapes:
                self._by_shapes[key] = self._load(shapes)
            self._by_shapes.move_to_end(key)
            while len(self._by_shapes) > _KEPT:
                self._by_shapes.popitem(last=False)
            return self._by_shapes[key]

    def run(
        self, feeds: dict[str, Any], profiles: bool = False, into: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], list[dict]]:
        """Results by name, and times of nodes. into: arrays and tensors for some of them, which are in the
        place of the results where these could be written there; a dtype is a new tensor's.

        Errors: OnnxRuntimeError.
        """
        try:
            if self._model is None:
                return _timed(self._of_shapes(feeds), feeds, profiles, into)
            try:
                return _timed(self._model, feeds, profiles, into)
            except ValueError:
                model = self._other_model(feeds)
                if model is None:
                    raise
                return _timed(model, feeds, profiles, into)
        except (ValueError, RuntimeError, MemoryError) as error:
            raise of_running(error) from error

    def _other_model(self, feeds: dict[str, Any]) -> Any:
        """For shapes that the first one does not take; None where it is not because of these."""
        sizes: dict[str, set[int]] = {}
        for info in self._tensors:
            for name, size in zip(info.shape or (), np.shape(feeds[info.name]), strict=False):
                if not isinstance(name, int):
                    sizes.setdefault(name or "", set()).add(size)
        if any(0 in found for found in sizes.values()):
            return self._of_shapes(feeds)
        if any(len(found) > 1 for name, found in sizes.items() if name):
            with self._lock:
                separate = self._separately()
            if separate is None:
                return self._of_shapes(feeds)
            self._model = separate  # a model whose names mean nothing once will do so again
            return separate
        return None


def _timed(
    model: Any, feeds: dict[str, Any], profiles: bool, into: dict[str, Any] | None
) -> tuple[dict[str, Any], list[dict]]:
    if not isinstance(model, Model):
        return model(feeds), []
    if profiles:
        return model.profiled(feeds)
    fitting: dict[str, Any] = {}
    for info in model.outputs if into else ():
        place = into.get(info.name)
        if isinstance(place, np.dtype) and place == info.dtype:
            fitting[info.name] = Tensor
        elif isinstance(place, (np.ndarray, Tensor)) and place.dtype == info.dtype:
            fitting[info.name] = place
    return model.run(feeds, fitting), []
