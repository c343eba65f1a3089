"""headrace.load: a model file as something that is called with arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ._core import (
    Executable,
    Graph,
    Session,
    TensorInfo,
    compile,
    hinted_options,
    load_graph,
    save_graph,
)


class Model:
    """A compiled graph; load() makes it.

    model(a, b) takes arrays in the order of `inputs`, model(x=a) and model({"x": a}) by name. The result is a
    dict of arrays by name, in the order of `outputs`. Threads may call it at the same time: each call has a
    session of its own, unless the graph has states, for which calls take turns.

    executable: what was compiled. session: the one that has the graph's states; its run() also takes arrays
    for results, and times nodes.
    """

    def __init__(
        self,
        executable: Executable,
        graph: Graph,
        title: str,
        declared: Mapping[str, np.dtype] | None = None,
    ) -> None:
        """declared: dtypes of outputs that the executable gives in wider ones."""
        self.executable, self._source, self._title = executable, graph, title
        self._declared = dict(declared or {})
        self.inputs: list[TensorInfo] = executable.inputs
        self.outputs: list[TensorInfo] = executable.outputs
        self.session = Session(executable)
        self._idle = [self.session]
        self._has_states = bool(executable.states)

    def __call__(self, *arrays: Any, **named: Any) -> dict[str, np.ndarray]:
        """Runs the model. Errors: ValueError for missing, unknown or unfit inputs."""
        if len(arrays) == 1 and isinstance(arrays[0], Mapping):
            named = {**arrays[0], **named}
            arrays = ()
        names = [tensor.name for tensor in self.inputs]
        if len(arrays) > len(names):
            raise ValueError(f"{self._title} has {len(names)} inputs, {names}; {len(arrays)} are given")
        given = dict(zip(names, arrays, strict=False))
        twice, unknown = sorted(set(given) & set(named)), sorted(set(named) - set(names))
        missing = [name for name in names if name not in given and name not in named]
        for found, what in ((twice, "is given twice"), (unknown, "is no input"), (missing, "is missing")):
            if found:
                raise ValueError(f"{self._title}: input '{found[0]}' {what}; there are {names}")
        results = self._run({**given, **named})
        for name, dtype in self._declared.items():
            results[name] = results[name].astype(dtype)
        return results

    def _run(self, feeds: dict[str, Any]) -> dict[str, np.ndarray]:
        if self._has_states:
            return self.session.run(feeds)
        try:
            session = self._idle.pop()
        except IndexError:
            session = Session(self.executable)
        try:
            return session.run(feeds)
        finally:
            self._idle.append(session)

    @property
    def graph(self) -> Graph:
        """After all passes; str() prints it."""
        return self.executable.graph

    def save(self, path: str | Path) -> None:
        """Writes a graph file; the extension chooses the form (docs/graph-files.md)."""
        save_graph(self._source, path)

    def __repr__(self) -> str:
        def listed(tensors: list[TensorInfo]) -> str:
            return ", ".join(repr(tensor).removeprefix("TensorInfo(").removesuffix(")") for tensor in tensors)

        return f"Model({self._title}: {listed(self.inputs)} -> {listed(self.outputs)})"


def load(
    path: Any,
    *,
    device: str | None = None,
    accelerated: bool = True,
    device_type: str = "auto",
    power_preference: str = "default",
    weights: str = "",
    host_timeout_ms: int = 60000,
    dimensions: Mapping[str, int | list[int]] | None = None,
    **options: Any,
) -> Model:
    """A model that can be called: an ONNX model (`.onnx`) or a graph file (`.hrg`, `.webnn`, `.json`).

    path: the file; of ONNX models also its bytes or an onnx.ModelProto. device: a name of headrace.devices();
    None takes the best GPU, or else the CPU, which accelerated=False or device_type="cpu" takes at once.
    weights: how constant matrices of products are stored: "as-given", "q8_0" or "q4_0" (blocks of 32), with
    which products round their other operand to 8 bits, too; "" is as given, or for the power preference
    "low-power" "q8_0" and products in float32. host_timeout_ms: a remote host that is silent for that long is
    lost. dimensions: numbers for an ONNX model's named dimensions, which otherwise stay open until the model
    is called, or an input's whole shape by its name. options: others of headrace.compile, such as threads=2.

    Errors: OSError for a file that cannot be read, FileNotFoundError where there is none; ImportError without
    the package onnx; ValueError for what is no valid model, or for what it has that cannot be expressed, with
    the node, its operator and what to do; MemoryError where the machine has not enough.
    """
    hinted = hinted_options(
        power_preference=power_preference,
        accelerated=accelerated,
        device_type=device_type,
        device="cpu" if (device or "").lower() == "cpu" else device or "",
        host_timeout_ms=host_timeout_ms,
        weights=weights,
    )
    is_path = isinstance(path, (str, os.PathLike))
    title = os.path.basename(os.fspath(path)) if is_path else "the ONNX model"
    graph, declared = _read(path, dimensions)
    executable = compile(graph, host_timeout_ms=host_timeout_ms, **(hinted | options))
    # Where weights are quantised, nothing shall hold the others.
    is_as_given = hinted["weights"] == "as-given"
    return Model(executable, graph if is_as_given else executable.graph, title, declared)


def is_onnx(path: Any) -> bool:
    """Whether load() reads it as an ONNX model."""
    return not isinstance(path, (str, os.PathLike)) or Path(path).suffix.lower() == ".onnx"


def read_graph(path: Any, dimensions: Mapping[str, int | list[int]] | None = None) -> Graph:
    """load()'s graph, before it is compiled."""
    return _read(path, dimensions)[0]


def _read(path: Any, dimensions: Mapping[str, int | list[int]] | None) -> tuple[Graph, dict[str, np.dtype]]:
    """The graph, and the dtypes of outputs that it gives in wider ones."""
    if is_onnx(path):
        from .onnx import read

        return read(path, dimensions)
    if dimensions:
        raise ValueError(
            f"{path}: dimensions are for ONNX models; a graph file keeps those it was saved with"
        )
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist")
    return load_graph(path), {}
