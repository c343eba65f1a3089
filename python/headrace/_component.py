"""What components import: wasi:nn 0.2 (0.2.0-rc-2024-10-28) and headrace:nn, served by a WASI-NN library.

A graph of tensors has the names of its inputs and outputs. A language model takes the texts `prompt` and
`parameters` (JSON) as tensors of u8, and gives `text` and `metadata`, or `embedding` and `metadata` where it
gives vectors.
"""

from __future__ import annotations

import itertools
import json
import math
import struct
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from . import _component_values as values
from ._wasi_nn import BackendError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._component_values import Store
    from ._wasi_nn import Backend

VERSION = "0.2.0-rc-2024-10-28"
STREAMS = "headrace:nn/conversations@0.1.0"
#: More live resources of one guest, or more bytes of its tensors, are a leak, and end it.
MOST_RESOURCES = 65536
MOST_BYTES = 1 << 30

TYPES = ("FP16", "FP32", "FP64", "BF16", "U8", "I32", "I64")
#: The library's number of each type, and the bytes of an element.
NUMBERS = {
    "FP16": (0, 2),
    "FP32": (1, 4),
    "FP64": (2, 8),
    "BF16": (6, 2),
    "U8": (3, 1),
    "I32": (4, 4),
    "I64": (5, 8),
}
#: How a guest sees a type of a graph.
SEEN_AS = {
    "f16": "FP16", "f32": "FP32", "f64": "FP64", "bf16": "BF16", "i32": "I32", "u32": "I32", "i64": "I64",
    "u64": "I64", "u8": "U8", "i8": "U8", "bool": "U8",
}  # fmt: skip
ENCODINGS = ("openvino", "onnx", "tensorflow", "pytorch", "tensorflowlite", "ggml", "autodetect")
TARGETS = ("cpu", "gpu", "tpu")
#: The metadata of an answer that was given up before its first piece.
NOTHING_SAID = json.dumps({"output_tokens": 0, "stop_reason": "cancelled"})
NO_CONVERSATION = "the graph takes tensors; conversations are with language models"
#: Error codes of the interface by those of headrace::Code; others are runtime errors.
CODES = {
    "invalid_argument": "invalid-argument",
    "invalid_state": "invalid-argument",
    "invalid_encoding": "invalid-encoding",
    "unsupported": "unsupported-operation",
    "too_large": "too-large",
    "not_found": "not-found",
    "denied": "security",
    "timed_out": "timeout",
    "prompt_too_long": "too-large",
    "context_full": "too-large",
}


@dataclass
class Tensor:
    dimensions: list[int]
    type: str
    data: bytes


@dataclass
class Graph:
    number: int
    uses: int = 1  #: its own handle's and those of its contexts


@dataclass
class Context:
    graph: Graph
    number: int
    description: dict[str, Any]

    @property
    def is_open(self) -> bool:
        """Whether the shapes of outputs are known only when it ran."""
        return any(extent < 0 for output in self.description["outputs"] for extent in output["shape"])


@dataclass
class Conversation:
    graph: Graph
    number: int
    answer: Answer | None = None


@dataclass
class Answer:
    conversation: Conversation
    has_begun: bool = False  #: a piece was asked for
    is_over: bool = False
    metadata: str = ""


@dataclass
class Table:
    """What the guest's handles stand for."""

    most_bytes: int = MOST_BYTES
    bytes: int = 0  #: of the tensors
    entries: dict[int, Any] = field(default_factory=dict)
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def add(self, entry: object) -> int:
        if len(self.entries) >= MOST_RESOURCES:
            raise MemoryError(f"the guest holds {MOST_RESOURCES} resources, and may hold no more")
        size = len(entry.data) if isinstance(entry, Tensor) else 0
        if self.bytes + size > self.most_bytes:
            raise MemoryError(
                f"the guest's tensors hold {self.bytes} bytes, and {size} more are beyond {self.most_bytes}"
            )
        self.bytes += size
        number = next(self.numbers)
        self.entries[number] = entry
        return number

    def remove(self, number: int) -> Any:
        entry = self.entries.pop(number)
        if isinstance(entry, Tensor):
            self.bytes -= len(entry.data)
        return entry


class Components:
    """The functions that components import, for one guest."""

    #: Numbers of the resources' types.
    TENSOR, GRAPH, CONTEXT, ERROR, CONVERSATION, ANSWER = range(1, 7)

    def __init__(
        self,
        backend: Backend,
        on_failed_load: Callable[[str], None] | None = None,
        most_bytes: int | None = None,
    ) -> None:
        """on_failed_load: gets the name that a guest could not load; most_bytes: of its tensors."""
        self._backend = backend
        self._on_failed_load = on_failed_load
        self._table = Table(min(most_bytes or MOST_BYTES, MOST_BYTES))
        self._functions = values.Functions()

    @property
    def failure(self) -> BaseException | None:
        """What ended the guest, if a function of ours did."""
        return self._functions.failure

    def define(self, linker: Any) -> None:
        """Gives the imports of wasi:nn and headrace:nn to a component linker."""
        kinds = {
            "tensor": (self.TENSOR, None),
            "graph": (self.GRAPH, self._release),
            "graph-execution-context": (self.CONTEXT, self._close),
            "error": (self.ERROR, None),
            "conversation": (self.CONVERSATION, self._end_conversation),
            "answer": (self.ANSWER, self._end),
        }
        interfaces = {
            f"wasi:nn/tensor@{VERSION}": (
                ["tensor"],
                {
                    "[constructor]tensor": self._new_tensor,
                    "[method]tensor.dimensions": self._dimensions,
                    "[method]tensor.ty": self._type,
                    "[method]tensor.data": self._data,
                },
            ),
            f"wasi:nn/errors@{VERSION}": (
                ["error"],
                {"[method]error.code": self._code, "[method]error.data": self._message},
            ),
            f"wasi:nn/inference@{VERSION}": (
                ["graph-execution-context"],
                {"[method]graph-execution-context.compute": self._failing(self._compute)},
            ),
            f"wasi:nn/graph@{VERSION}": (
                ["graph"],
                {
                    "[method]graph.init-execution-context": self._failing(self._open),
                    "load": self._failing(self._load),
                    "load-by-name": self._failing(self._load_by_name),
                },
            ),
            STREAMS: (
                ["conversation", "answer"],
                {
                    "[static]conversation.open": self._failing(self._open_conversation),
                    "[method]conversation.ask": self._failing(self._ask),
                    "[method]answer.next": self._failing(self._next),
                    "[method]answer.metadata": self._failing(self._metadata),
                    "[method]answer.cancel": self._cancel,
                },
            ),
        }
        from wasmtime import component

        with linker.root() as root:
            for interface, (resources, functions) in interfaces.items():
                with root.add_instance(interface) as instance:
                    for name in resources:
                        kind, end = kinds[name]
                        destroy = partial(self._destroy, end)
                        instance.add_resource(name, component.ResourceType.host(kind), destroy)
                    for name, function in functions.items():
                        self._functions.add(instance, name, function)

    # Resources.

    def _at(self, store: Store, value: Any) -> Any:
        return self._table.entries[store.number_of(value)]

    def _give(self, store: Store, kind: int, entry: object, value: Any) -> None:
        store.give(value, self._table.add(entry), kind)

    def _destroy(self, end: Callable[[Any], None] | None, _store: object, number: int) -> None:
        entry = self._table.remove(number)
        if end:
            end(entry)

    def _release(self, graph: Graph) -> None:
        graph.uses -= 1
        if graph.uses == 0:
            self._backend.unload(graph.number)

    def _close(self, context: Context | Conversation) -> None:
        self._backend.close_context(context.number)
        self._release(context.graph)

    def _end_conversation(self, conversation: Conversation) -> None:
        """What is left of its answer ends with it: the guest may drop the two in either order."""
        if conversation.answer:
            self._end(conversation.answer)
        self._close(conversation)

    def _end(self, answer: Answer) -> None:
        if answer.has_begun and not answer.is_over and answer.conversation.answer is answer:
            self._backend.end_pieces(answer.conversation.number)
        answer.is_over = True

    def _failing(self, function: Callable[..., Callable[[Any], None]]) -> Callable[..., None]:
        """Of a function that gives what writes its result: one with the result or an error."""

        def call(store: Store, given: Sequence[Any], result: Any) -> None:
            try:
                write = function(store, *given)
            except BackendError as error:
                give = partial(self._give, store, self.ERROR, error)
                values.put_result(result, give, is_ok=False)
            else:
                values.put_result(result, write)

        return call

    # wasi:nn/errors

    def _code(self, store: Store, given: Sequence[Any], result: Any) -> None:
        values.put_name(result, CODES.get(self._at(store, given[0]).code, "runtime-error"))

    def _message(self, store: Store, given: Sequence[Any], result: Any) -> None:
        values.put_text(result, str(self._at(store, given[0])))

    # wasi:nn/tensor

    def _new_tensor(self, store: Store, given: Sequence[Any], result: Any) -> None:
        dimensions, kind, data = given
        tensor = Tensor(values.words_of(dimensions), values.name_of(kind), values.bytes_of(data))
        self._give(store, self.TENSOR, tensor, result)

    def _dimensions(self, store: Store, given: Sequence[Any], result: Any) -> None:
        values.put_words(result, self._at(store, given[0]).dimensions)

    def _type(self, store: Store, given: Sequence[Any], result: Any) -> None:
        values.put_name(result, self._at(store, given[0]).type)

    def _data(self, store: Store, given: Sequence[Any], result: Any) -> None:
        values.put_bytes(result, self._at(store, given[0]).data)

    # wasi:nn/graph

    def _give_graph(self, store: Store, number: int) -> Callable[[Any], None]:
        return partial(self._give, store, self.GRAPH, Graph(number))

    def _load(self, store: Store, builders: Any, encoding: Any, target: Any) -> Callable[[Any], None]:
        parts = values.items_of(builders)
        if len(parts) != 1:
            raise BackendError("invalid_argument", f"a model is one builder; {len(parts)} were given")
        numbers = ENCODINGS.index(values.name_of(encoding)), TARGETS.index(values.name_of(target))
        return self._give_graph(store, self._backend.load(values.bytes_of(parts[0]), *numbers))

    def _load_by_name(self, store: Store, name: Any) -> Callable[[Any], None]:
        text = values.text_of(name)
        try:
            return self._give_graph(store, self._backend.load_by_name(text))
        except BackendError:
            if self._on_failed_load:
                self._on_failed_load(text[:200])
            raise

    def _open(self, store: Store, graph: Any) -> Callable[[Any], None]:
        owner = self._at(store, graph)
        context = Context(owner, *self._opened(owner))
        owner.uses += 1
        return partial(self._give, store, self.CONTEXT, context)

    def _opened(
        self, graph: Graph, session: str | None = None, *, talks: bool = False
    ) -> tuple[int, dict[str, Any]]:
        """A context's number and description; talks: it must be a language model's."""
        number = self._backend.open_context(graph.number, session)
        try:
            description = self._backend.description(number)
            if talks and description["kind"] != "language_model":
                raise BackendError("unsupported", NO_CONVERSATION)
        except BaseException:
            self._backend.close_context(number)
            raise
        return number, description

    # wasi:nn/inference

    def _compute(self, store: Store, context: Any, inputs: Any) -> Callable[[Any], None]:
        given: dict[str, Tensor] = {}
        for item in values.items_of(inputs):
            name, tensor = values.items_of(item)
            # The guest handed the tensor over: it is gone, whatever the names are.
            given[values.text_of(name)] = self._table.remove(store.number_of(tensor))
        target: Context = self._at(store, context)
        of_kind = (
            self._compute_text if target.description["kind"] == "language_model" else self._compute_tensors
        )
        outputs = of_kind(target, given)

        def named(name: str, tensor: Tensor) -> Callable[[Any], None]:
            parts = [partial(_put_text, name), partial(self._give, store, self.TENSOR, tensor)]
            return partial(_put_tuple, parts)

        return partial(_put_list, [named(name, tensor) for name, tensor in outputs])

    def _compute_tensors(self, context: Context, given: dict[str, Tensor]) -> list[tuple[str, Tensor]]:
        backend, described = self._backend, context.description
        names = [declared["name"] for declared in described["inputs"]]
        if set(given) != set(names):
            message = f"the graph's inputs are {', '.join(names)}; given are {', '.join(given) or 'none'}"
            raise BackendError("invalid_argument", message)
        for index, name in enumerate(names):
            tensor = given[name]
            backend.set_input(context.number, index, NUMBERS[tensor.type][0], tensor.dimensions, tensor.data)
        backend.compute(context.number)
        if context.is_open:
            described = backend.description(context.number)
        outputs = []
        for index, declared in enumerate(described["outputs"]):
            kind = SEEN_AS.get(declared["type"])
            if kind is None:
                message = f"output '{declared['name']}' is {declared['type']}, which no tensor-type is"
                raise BackendError("unsupported", message)
            shape = declared.get("computed", declared["shape"])
            data = backend.output(context.number, index, math.prod(shape) * NUMBERS[kind][1])
            outputs.append((declared["name"], Tensor(list(shape) or [1], kind, data)))
        return outputs

    def _compute_text(self, context: Context, given: dict[str, Tensor]) -> list[tuple[str, Tensor]]:
        if "prompt" not in given or not set(given) <= {"prompt", "parameters"}:
            message = (
                f"a language model's inputs are prompt, and parameters as JSON; given are {', '.join(given)}"
            )
            raise BackendError("invalid_argument", message)
        parameters = given["parameters"].data if "parameters" in given else b""
        for index, text in enumerate((given["prompt"].data, parameters)):
            self._backend.set_text(context.number, index, text)
        self._backend.compute(context.number)
        text, metadata = (self._backend.output(context.number, index) for index in (0, 1))
        outputs = [("metadata", _text_tensor(metadata))]
        if context.description["gives_vectors"]:
            outputs.insert(0, ("embedding", _embedding(json.loads(text)["embedding"])))
        else:
            outputs.insert(0, ("text", _text_tensor(text)))
        return outputs

    # headrace:nn/conversations

    def _open_conversation(self, store: Store, graph: Any, session: Any) -> Callable[[Any], None]:
        owner = self._at(store, graph)
        name = values.option_of(session)
        number, _ = self._opened(owner, values.text_of(name) if name else None, talks=True)
        owner.uses += 1
        return partial(self._give, store, self.CONVERSATION, Conversation(owner, number))

    def _ask(self, store: Store, conversation: Any, prompt: Any, parameters: Any) -> Callable[[Any], None]:
        talk: Conversation = self._at(store, conversation)
        if talk.answer and not talk.answer.is_over:
            self._end(talk.answer)
        for index, text in enumerate((prompt, parameters)):
            self._backend.set_text(talk.number, index, values.text_of(text).encode())
        talk.answer = Answer(talk)
        return partial(self._give, store, self.ANSWER, talk.answer)

    def _next(self, store: Store, answer: Any) -> Callable[[Any], None]:
        told: Answer = self._at(store, answer)
        piece = None
        if not told.is_over:
            told.has_begun = True
            try:
                piece = self._backend.next_piece(told.conversation.number)
            except BackendError:
                told.is_over = True
                raise
            if piece is None:
                self._keep_metadata(told)
        return partial(_put_option_text, piece)

    def _keep_metadata(self, answer: Answer) -> None:
        answer.is_over = True
        answer.metadata = NOTHING_SAID
        if answer.has_begun:
            answer.metadata = self._backend.output(answer.conversation.number, 1).decode(errors="replace")

    def _metadata(self, store: Store, answer: Any) -> Callable[[Any], None]:
        told: Answer = self._at(store, answer)
        if not told.metadata:
            raise BackendError("invalid_state", "the answer is not at its end")
        return partial(_put_text, told.metadata)

    def _cancel(self, store: Store, given: Sequence[Any], _result: Any) -> None:
        told: Answer = self._at(store, given[0])
        if not told.is_over:
            self._end(told)
            self._keep_metadata(told)


def _text_tensor(text: bytes) -> Tensor:
    return Tensor([len(text)], "U8", text)


def _embedding(vectors: list[Any]) -> Tensor:
    rows = vectors if vectors and isinstance(vectors[0], list) else [vectors]
    numbers = [number for row in rows for number in row]
    dimensions = [len(rows[0])] if rows[0] is vectors else [len(rows), len(rows[0])]
    return Tensor(dimensions, "FP32", struct.pack(f"<{len(numbers)}f", *numbers))


# With the value last, for functions that are called with nothing else.


def _put_text(text: str, value: Any) -> None:
    values.put_text(value, text)


def _put_tuple(writers: Sequence[Callable[[Any], None]], value: Any) -> None:
    values.put_tuple(value, writers)


def _put_list(writers: Sequence[Callable[[Any], None]], value: Any) -> None:
    values.put_list(value, writers)


def _put_option_text(text: str | None, value: Any) -> None:
    values.put_option(value, None if text is None else partial(_put_text, text))
