"""GGUF language models in Python, through the same C interface that WebAssembly runtimes load.

from headrace.language_model import LanguageModel

model = LanguageModel("model.gguf", {"n_ctx": 4096})
for piece in model.stream("What is the capital of France?", {"temperature": 0}):
    print(piece, end="")

Everything is thread-safe, and requests that run at the same time share batches. Parameters are those of
docs/parameters.md: a model's where it is loaded, a request's with each prompt.
"""

from __future__ import annotations

import ctypes
import json
import os
import threading
from typing import TYPE_CHECKING, NamedTuple

from ._wasi_nn import END_OF_SEQUENCE, TOO_LARGE, Bytes, Tensor, find_library, load_library

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Parameters = Mapping[str, object]

_USUAL_OUTPUT = 16384  # bytes; what is longer is asked for again


class LanguageModelError(RuntimeError):
    """A call that was refused or failed.

    code: invalid_argument, unsupported, out_of_memory, not_found, denied, busy, timed_out, cancelled,
    prompt_too_long, context_full, io or backend_failure.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


class Reply(NamedTuple):
    text: str
    #: Token counts, `stop_reason`, times and warnings: output 1 of the C interface.
    metadata: dict[str, object]


class Embedding(NamedTuple):
    vector: list[float]
    input_tokens: int


class LanguageModel:
    """One model and its engine.

    model: a GGUF file's path or one of the configuration's `model_aliases`. config: the model's parameters.
    service: parameters of the service around it, such as `model_root`. Errors: LanguageModelError,
    FileNotFoundError where the library is not built.
    """

    def __init__(
        self,
        model: str | Path,
        config: Parameters | None = None,
        service: Parameters | None = None,
        library: Path | None = None,
    ) -> None:
        self._library = load_library(library or find_library())
        self._backend = ctypes.c_void_p()
        self._loading = threading.Lock()
        text = json.dumps({"history": False, **(service or {})}).encode()
        if self._library.init_backend_with_config(ctypes.byref(self._backend), text, len(text)):
            raise LanguageModelError(
                "invalid_argument", f"the configuration {text.decode()} was refused; the log says why"
            )
        try:
            self._graph = self._load(model, {**(config or {}), "replace": "false"})
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends what runs and frees the model, once nobody uses it."""
        self._library.deinit_backend(self._backend)

    def __enter__(self) -> LanguageModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def generate(self, prompt: str, parameters: Parameters | None = None) -> Reply:
        """The whole answer. Errors: LanguageModelError."""
        generation = self.stream(prompt, parameters)
        return Reply("".join(generation), generation.metadata)

    def stream(self, prompt: str, parameters: Parameters | None = None) -> Generation:
        """The answer in pieces: an iterator over texts. Errors: LanguageModelError, also while iterating."""
        return Generation(self, self._graph, prompt, parameters)

    def embed(self, text: str, parameters: Parameters | None = None) -> list[float]:
        """The vector of a text, by a model that is made for it."""
        return self.embedding(text, parameters).vector

    def embedding(self, text: str, parameters: Parameters | None = None) -> Embedding:
        """The vector, and how many tokens were read for it."""
        vector, metadata = self._embedding(text, parameters)
        if vector and isinstance(vector[0], list):
            raise LanguageModelError(
                "unsupported",
                "with pooling none a text has a vector for each token: see token_embeddings, or load the "
                "model with another pooling",
            )
        return Embedding(vector, metadata["input_tokens"])

    def token_embeddings(self, text: str, parameters: Parameters | None = None) -> list[list[float]]:
        """A vector for each token, as the model left it, of a model that was loaded with pooling none."""
        vectors, _ = self._embedding(text, parameters)
        if vectors and not isinstance(vectors[0], list):
            raise LanguageModelError(
                "unsupported", "the tokens' vectors are pooled; load the model with pooling none"
            )
        return vectors

    def _embedding(self, text: str, parameters: Parameters | None) -> tuple[list, dict[str, object]]:
        context = self._open(self._graph)
        try:
            # A model that writes texts is to write none.
            self._set_inputs(context, text, {"n_predict": 0, **(parameters or {})})
            self._check(self._library.compute(self._backend, context), context)
            metadata = json.loads(self._output(context, 1))
            if "stop_reason" in metadata:
                raise LanguageModelError(
                    "unsupported", "the model writes texts; load it with {'embeddings': true} for vectors"
                )
            return json.loads(self._output(context, 0))["embedding"], metadata
        finally:
            self._library.close_execution_context(self._backend, context)

    def swap(self, model: str | Path, config: Parameters | None = None) -> None:
        """Puts another model in this one's place.

        Requests that run end on the old model, later ones use the new one. A load that fails changes nothing.
        """
        self._graph = self._load(model, {**(config or {}), "replace": "true"})

    def statistics(self) -> dict[str, object]:
        """Requests, tokens, cache and memory."""
        return json.loads(self._sized(self._library.get_statistics))

    def _load(self, model: str | Path, config: Parameters) -> int:
        name, text, graph = (
            os.fspath(model).encode(),
            json.dumps(config, allow_nan=False).encode(),
            ctypes.c_uint32(),
        )
        with self._loading:  # the error of a load is the last one of the backend
            code = self._library.load_by_name_with_config(
                self._backend, name, len(name), text, len(text), ctypes.byref(graph)
            )
            self._check(code, 0)
        return graph.value

    def _open(self, graph: int) -> int:
        context = ctypes.c_uint32()
        code = self._library.init_execution_context(self._backend, graph, ctypes.byref(context))
        self._check(code, 0)
        return context.value

    def _set_inputs(self, context: int, prompt: str, parameters: Parameters | None) -> None:
        for index, text in ((1, json.dumps(parameters or {}, allow_nan=False)), (0, prompt)):
            data = text.encode()
            buffer = ctypes.create_string_buffer(data, len(data) + 1)
            tensor = Tensor(None, 0, Bytes(ctypes.addressof(buffer), len(data)))
            code = self._library.set_input(self._backend, context, index, ctypes.byref(tensor))
            self._check(code, context)

    def _output(self, context: int, index: int) -> str:
        return self._sized(self._library.get_output, context, index)

    def _sized(self, function: Callable[..., int], *arguments: object) -> str:
        """Calls a function that writes into a buffer, which may have to be larger."""
        capacity, size = _USUAL_OUTPUT, ctypes.c_uint32()
        while True:
            buffer = ctypes.create_string_buffer(capacity)
            output = Bytes(ctypes.addressof(buffer), capacity)
            code = function(self._backend, *arguments, ctypes.byref(output), ctypes.byref(size))
            if code == TOO_LARGE and size.value > capacity:
                capacity = size.value
                continue
            if code:
                raise LanguageModelError("backend_failure", f"an output was refused with {code}")
            return buffer.raw[: size.value].decode()

    def _check(self, code: int, context: int) -> None:
        """Raises the error of a call that failed; context 0: of the backend's last one."""
        if code == 0:
            return
        try:
            error = json.loads(self._output(context, 1))["error"]
        except (LanguageModelError, KeyError):
            error = {"code": "backend_failure", "message": f"the call failed with {code}; the log says why"}
        raise LanguageModelError(error["code"], error["message"])


class Generation:
    """An answer that is being written: an iterator over its pieces, whole characters each."""

    def __init__(self, model: LanguageModel, graph: int, prompt: str, parameters: Parameters | None) -> None:
        self._model = model
        self._context = model._open(graph)
        self._is_open = True
        #: Of the whole answer, once the last piece was read or the generation was closed.
        self.metadata: dict[str, object] = {}
        try:
            model._set_inputs(self._context, prompt, parameters)
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Generation:
        return self

    def __next__(self) -> str:
        if not self._is_open:
            raise StopIteration
        model, library = self._model, self._model._library
        try:
            code = library.compute_single(model._backend, self._context)
            if code == 0:
                return model._sized(library.get_output_single, self._context, 0)
            if code != END_OF_SEQUENCE:
                model._check(code, self._context)
            self.metadata = json.loads(model._output(self._context, 1))
        except BaseException:
            self.close()
            raise
        self.close()
        raise StopIteration

    def cancel(self) -> None:
        """Ends the answer, from any thread; who waits for a piece gets a LanguageModelError `cancelled`."""
        if self._is_open:
            self._model._library.cancel_inference(self._model._backend, self._context)

    def close(self) -> None:
        """Gives up what is left of the answer; the thread that iterates, or nobody, may call it."""
        if self._is_open:
            self._is_open = False
            self._model._library.close_execution_context(self._model._backend, self._context)

    def __enter__(self) -> Generation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
