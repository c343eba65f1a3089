"""Models in Ray Data pipelines: a callable class for Dataset.map_batches, one loaded model in each actor."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headrace.language_model import LanguageModel, LanguageModelError
from headrace.loading import load

from .request import Request, RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Batch = dict[str, np.ndarray]

FORMATS = {
    ".gguf": "language models and embedding models",
    ".pte": "ExecuTorch programs",
    ".onnx": "ONNX models",
    ".webnn": "WebNN graphs as text",
    ".json": "WebNN graphs as JSON",
    ".hrg": "saved graphs",
}


class Predictor:
    """Adds a model's outputs to the columns of a batch.

    path: the model, the same on every host; its extension says what it is. options: those of TextGenerator,
    TextEmbedder (with task="embed"), GraphPredictor or ProgramPredictor. Errors: FileNotFoundError, and
    ValueError for what is no model here.
    """

    def __init__(self, path: str | Path, **options: object) -> None:
        path = Path(path)
        extension = path.suffix.lower()
        if extension not in FORMATS:
            raise ValueError(
                f"{path}: '{extension}' is no extension of a model; there are "
                + ", ".join(f"{known} ({what})" for known, what in FORMATS.items())
            )
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} does not exist on this host; models are read where the actors run"
            )
        kinds = {".pte": ProgramPredictor, ".gguf": TextGenerator}
        kind = kinds.get(extension, GraphPredictor)
        if extension == ".gguf":
            task = options.pop("task", "generate")
            if task not in ("generate", "embed"):
                raise ValueError(f"task is {task!r}; it must be 'generate' or 'embed'")
            kind = TextGenerator if task == "generate" else TextEmbedder
        self._predict = kind(path, **options)

    def __call__(self, batch: Batch) -> Batch:
        return self._predict(batch)


class _Texts:
    """Rows that are texts, served by as many threads as the model runs streams."""

    def __init__(
        self,
        path: Path,
        config: Mapping[str, object] | None,
        parameters: Mapping[str, object] | None,
        column: str,
        output: str,
        on_error: str,
        streams: int,
    ) -> None:
        if on_error not in ("raise", "record"):
            raise ValueError(f"on_error is {on_error!r}; it must be 'raise' or 'record'")
        self._model = LanguageModel(path, {"n_parallel": streams, **(config or {})})
        self._threads = ThreadPoolExecutor(streams)
        self._parameters = dict(parameters or {})
        self._column, self._output, self._on_error = column, output, on_error

    def _rows(self, batch: Batch, function: Callable[[object], object]) -> tuple[list[object], Batch]:
        """Each row's result, None where it failed, and the batch, with the errors if wanted."""
        _require(batch, [self._column])
        errors = [""] * len(batch[self._column])

        def run(place: tuple[int, object]) -> object:
            index, value = place
            try:
                return function(value)
            except (LanguageModelError, RequestError) as error:
                if self._on_error == "raise":
                    raise type(error)(*error.args[:-1], f"row {index} of the batch: {error}") from None
                errors[index] = str(error)
                return None

        results = list(self._threads.map(run, enumerate(batch[self._column])))
        if self._on_error == "record":
            batch = {**batch, "error": np.array(errors, dtype=object)}
        return results, batch


class TextGenerator(_Texts):
    """Answers prompts: texts, or lists of messages {"role", "content"}, with a GGUF language model.

    config: the model's parameters; parameters: each request's (docs/parameters.md). column, output: names of
    columns. on_error: "raise", or "record" in a column `error`. streams: answers that are written at once.
    """

    def __init__(
        self,
        path: Path,
        *,
        config: Mapping[str, object] | None = None,
        parameters: Mapping[str, object] | None = None,
        column: str = "prompt",
        output: str = "answer",
        on_error: str = "raise",
        streams: int = 8,
    ) -> None:
        super().__init__(path, config, parameters, column, output, on_error, streams)

    def __call__(self, batch: Batch) -> Batch:
        answers, batch = self._rows(batch, self._answer)
        return {**batch, self._output: np.array(answers, dtype=object)}

    def _answer(self, value: object) -> str:
        is_text = isinstance(value, str)
        if value is None:
            raise RequestError(f"column '{self._column}' has no value")
        content = {"prompt": value} if is_text else {"messages": _as_list(value)}
        request = Request.read({**content, "parameters": self._parameters})
        return self._model.generate(request.messages or request.prompt, request.model_parameters()).text


class TextEmbedder(_Texts):
    """Turns texts into vectors with a GGUF embedding model. Options as TextGenerator's."""

    def __init__(
        self,
        path: Path,
        *,
        config: Mapping[str, object] | None = None,
        parameters: Mapping[str, object] | None = None,
        column: str = "text",
        output: str = "embedding",
        on_error: str = "raise",
        streams: int = 4,
    ) -> None:
        config = {"embeddings": True, **(config or {})}
        super().__init__(path, config, parameters, column, output, on_error, streams)

    def __call__(self, batch: Batch) -> Batch:
        vectors, batch = self._rows(batch, self._embed)
        size = next((len(vector) for vector in vectors if vector), 0)
        rows = [vector or [np.nan] * size for vector in vectors]
        return {**batch, self._output: np.array(rows, dtype=np.float32)}

    def _embed(self, value: object) -> list[float]:
        return self._model.embed(Request.read({"prompt": value}).prompt, self._parameters)


class GraphPredictor:
    """Runs a graph file (docs/graph-files.md) or an ONNX model (docs/onnx.md) on batches of arrays.

    inputs: columns by the graph's inputs' names, where they differ; outputs: columns by its outputs' names.
    rows: the first extent of a graph that has it fixed; None gives it the whole batch. dimensions: numbers
    for an ONNX model's named dimensions. options: of headrace.load, such as device="cpu" or threads=2.
    """

    def __init__(
        self,
        path: Path,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
        rows: int | None = None,
        dimensions: Mapping[str, int | list[int]] | None = None,
        **options: object,
    ) -> None:
        self._model = load(path, dimensions=dimensions, **options)
        self._inputs = _names([x.name for x in self._model.inputs], inputs, "input", path)
        self._outputs = _names([y.name for y in self._model.outputs], outputs, "output", path)
        self._rows = _checked(rows)

    def __call__(self, batch: Batch) -> Batch:
        _require(batch, self._inputs.values())
        feeds = {name: batch[column] for name, column in self._inputs.items()}
        results = _in_pieces(feeds, self._rows, self._model)
        return {**batch, **{column: results[name] for name, column in self._outputs.items()}}


class ProgramPredictor:
    """Runs an ExecuTorch program's method on batches of arrays.

    inputs: the columns, in the order of the method's arguments; outputs: columns for its results. rows: as
    GraphPredictor's.
    """

    def __init__(
        self,
        path: Path,
        *,
        inputs: Sequence[str] = ("input",),
        outputs: Sequence[str] = ("output",),
        rows: int | None = None,
        method: str = "forward",
    ) -> None:
        import executorch_ggml  # noqa: F401  registers the delegate
        from executorch.runtime import Runtime

        try:
            program = Runtime.get().load_program(path)
        except RuntimeError as error:
            raise ValueError(f"{path}: ExecuTorch cannot load the program: {error}") from None
        if method not in program.method_names:
            raise ValueError(f"{path} has no method '{method}'; there are {sorted(program.method_names)}")
        self._program = program  # must outlive its method
        self._method = program.load_method(method)
        self._inputs, self._outputs, self._rows = list(inputs), list(outputs), _checked(rows)

    def __call__(self, batch: Batch) -> Batch:
        _require(batch, self._inputs)
        results = _in_pieces({name: batch[name] for name in self._inputs}, self._rows, self._run)
        return {**batch, **results}

    def _run(self, piece: Batch) -> Batch:
        import torch

        feeds = [torch.from_numpy(np.ascontiguousarray(piece[name])) for name in self._inputs]
        values = self._method.execute(feeds)
        if len(values) < len(self._outputs):
            raise ValueError(f"the method has {len(values)} results, and {self._outputs} are wanted")
        # The program's memory is used again by the next run.
        return {name: value.numpy().copy() for name, value in zip(self._outputs, values, strict=False)}


def _in_pieces(feeds: Batch, rows: int | None, run: Callable[[Batch], Batch]) -> Batch:
    """Runs `rows` rows at a time, the last ones filled up with copies of the last row."""
    total = min(len(values) for values in feeds.values())
    if rows is None:
        return run(feeds)
    if total == 0:  # zeros in place of the last row show what the results look like
        blank = {name: np.zeros((rows, *values.shape[1:]), values.dtype) for name, values in feeds.items()}
        return {name: value[:0] for name, value in run(blank).items()}
    results = []
    for start in range(0, total, rows):
        piece = {name: values[start : start + rows] for name, values in feeds.items()}
        count = min(rows, total - start)
        if count < rows:
            piece = {
                name: np.concatenate([values, np.repeat(values[-1:], rows - count, axis=0)])
                for name, values in piece.items()
            }
        results.append({name: value[:count] for name, value in run(piece).items()})
    return {name: np.concatenate([result[name] for result in results]) for name in results[0]}


def _checked(rows: int | None) -> int | None:
    if rows is not None and (not isinstance(rows, int) or rows < 1):
        raise ValueError(f"rows is {rows!r}; it must be 1 or more, or None for whole batches")
    return rows


def _names(names: Sequence[str], columns: Mapping[str, str] | None, kind: str, path: Path) -> dict[str, str]:
    unknown = sorted(set(columns or ()) - set(names))
    if unknown:
        raise ValueError(f"{path} has no {kind} {unknown}; there are {sorted(names)}")
    return {name: (columns or {}).get(name, name) for name in names}


def _require(batch: Batch, columns: object) -> None:
    missing = sorted(set(columns) - set(batch))
    if missing:
        raise ValueError(f"the batch has no column {missing}; there are {sorted(batch)}")


def _as_list(value: object) -> object:
    return list(value) if isinstance(value, np.ndarray | tuple) else value
