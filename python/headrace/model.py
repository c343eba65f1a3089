"""What headrace.load makes of a file: something that is called with arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._core import (
    Executable,
    Graph,
    Session,
    TensorInfo,
    save_graph,
)

if TYPE_CHECKING:
    from pathlib import Path

    from .onnx.outputs import Outputs


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
        outputs: Outputs | None = None,
        most_iterations: int | None = None,
    ) -> None:
        """outputs: of an ONNX model, which may have other dtypes, or be sequences and optionals."""
        self.executable, self._source, self._title = executable, graph, title
        self._made = outputs
        self._limits = {} if most_iterations is None else {"most_iterations": most_iterations}
        self.inputs: list[TensorInfo] = executable.inputs
        self.outputs: list[TensorInfo] = executable.outputs
        self.session = Session(executable)
        self._idle = [self.session]
        self._has_states = bool(executable.states)

    def __call__(self, *arrays: Any, **named: Any) -> dict[str, Any]:
        """Runs the model. Errors: ValueError for missing, unknown or unfit inputs."""
        return self.run(named_inputs(self._title, self.input_names, arrays, named))

    def run(self, feeds: dict[str, Any], outputs: dict[str, Any] | None = None) -> dict[str, Any]:
        """Runs the model on arrays and Tensors by name. outputs: arrays and Tensors that results are written
        into where these have the graph's own dtype, by the names that `self.outputs` has; the class Tensor
        makes one. Errors: ValueError.
        """
        if not isinstance(feeds, Mapping):
            raise TypeError(
                f"run: the inputs are {type(feeds).__name__}; a dict of arrays by name is needed. ONNX "
                "Runtime's run(names, feeds) is model(feeds), whose result has the arrays by name"
            )
        return self._as_declared(self._run(feeds, outputs))

    def profiled(self, feeds: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Runs the model on arrays by name: its results, and times of nodes as Session.stats has them."""
        results = self.session.run(feeds, profile=True, **self._limits)
        return self._as_declared(results), self.session.stats["nodes"]

    def _as_declared(self, results: dict[str, Any]) -> dict[str, Any]:
        return results if self._made is None else self._made.of(results)

    def _run(self, feeds: dict[str, Any], outputs: dict[str, Any] | None) -> dict[str, Any]:
        if self._has_states:
            return self.session.run(feeds, outputs, **self._limits)
        try:
            session = self._idle.pop()
        except IndexError:
            session = Session(self.executable)
        try:
            return session.run(feeds, outputs, **self._limits)
        finally:
            self._idle.append(session)

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there: what an InferenceSession of ONNX Runtime has."""
        ours = {"get_inputs": "inputs", "get_outputs": "outputs", "end_profiling": "profiled"}.get(name)
        remedy = f"; here it is `{ours}`. headrace.onnxruntime has ONNX Runtime's own calls" if ours else ""
        raise AttributeError(f"'Model' object has no attribute {name!r}{remedy}")

    @property
    def input_names(self) -> list[str]:
        return [tensor.name for tensor in self.inputs]

    @property
    def output_names(self) -> list[str]:
        return [tensor.name for tensor in self.outputs]

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


def named_inputs(
    title: str, names: list[str], arrays: tuple[Any, ...], named: Mapping[str, Any]
) -> dict[str, Any]:
    """A call's arguments by name. Errors: ValueError."""
    if len(arrays) == 1 and isinstance(arrays[0], Mapping):
        named = {**arrays[0], **named}
        arrays = ()
    known = f"the input{' is' if len(names) == 1 else 's are'} {', '.join(names)}"
    if len(names) > 1 and len(arrays) == 1 and not named and isinstance(arrays[0], (list, tuple)):
        known += "; a list is one input: model(a, b) or model(*arrays) gives several"
    if len(arrays) > len(names):
        raise ValueError(f"{title}: {len(arrays)} arrays are given; {known}")
    given = dict(zip(names, arrays, strict=False))
    twice, unknown = sorted(set(given) & set(named)), sorted(set(named) - set(names))
    missing = [name for name in names if name not in given and name not in named]
    if unknown:
        raise ValueError(f"{title}: there is no input '{unknown[0]}'; {known}")
    for found, what in ((twice, "given twice"), (missing, "missing")):
        if found:
            raise ValueError(f"{title}: input '{found[0]}' is {what}; {known}")
    return {**given, **named}
