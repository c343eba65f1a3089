"""What a component passes in the canonical ABI, right and wrong, through both hosts."""

from __future__ import annotations

import json
import struct
from itertools import pairwise

import pytest

wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is not installed: make setup installs it")
pytest.importorskip("onnx", reason="onnx is not installed: make setup installs it")
pytest.importorskip("headrace", reason="the Python extension is not built: make build")
import component_fuzz  # noqa: E402
from component_fuzz import BUILDERS, DATA, INPUTS, MODEL, NAMES, SHAPE  # noqa: E402
from component_guest import MOST_BYTES, NN, RESULT, BrokenHostError, Guest, text  # noqa: E402
from headrace._wasi_nn import Backend  # noqa: E402
from headrace._wasm_binary import contents_of  # noqa: E402
from node_components import in_node  # noqa: E402

SUM_AND_PRODUCT = [
    ["sum", 1, [2, 2], struct.pack("<4f", 11, 102, 13, 104).hex()],
    ["product", 1, [2, 2], struct.pack("<4f", 10, 200, 30, 400).hex()],
]


@pytest.fixture(scope="module")
def config(library, model, tmp_path_factory) -> dict:
    path = tmp_path_factory.mktemp("models") / "sums.onnx"
    path.write_bytes(component_fuzz.sums())
    return component_fuzz.configuration({"sums": path, "chat": model}, path.parent)


@pytest.fixture(scope="module")
def wasmtime_host(library, config):
    return component_fuzz.Hosts(library, config).run


@pytest.fixture(scope="module")
def wasmtime_lists(library, config):
    """With lists of bytes as wasmtime passes them."""
    return component_fuzz.Hosts(library, config, passes_lists=True).run


@pytest.fixture(scope="module")
def node_runs(library, config, tmp_path_factory):
    """Runs programs in Node: what each gave."""
    folder = tmp_path_factory.mktemp("node")
    return in_node(library, config, wasmtime.wat2wasm(text()), folder)


@pytest.fixture(params=["wasmtime", "wasmtime_lists", "node"])
def host(request):
    """Runs a program; what its steps gave."""
    if request.param != "node":
        return request.getfixturevalue({"wasmtime": "wasmtime_host"}.get(request.param, request.param))
    run = request.getfixturevalue("node_runs")
    return lambda program: run([program])[0]


def put(at: int, content: bytes) -> list:
    return ["put", at, content.hex()]


def call(name: str, *numbers: object) -> list:
    return ["call", name, list(numbers)]


NEW_TENSOR = '(param "dimensions" {}) (param "ty" {}) (param "data" {}) (result (own $tensor))'
WORDS, BYTES = "(list u32)", "(list u8)"


@pytest.mark.parametrize(
    ("function", "type", "numbers", "why"),
    [
        ("load-by-name", '(param "name" u32)', "8", "a value of kind 6"),
        ("load-by-name", f'(param "name" {WORDS})', "8 1", "a value of kind 13"),
        ("load-by-name", "", "", "fewer parameters"),
        ("load", '(param "builder" u32)', "8", "a value of kind 6"),
        ("load", f'(param "builder" (list {WORDS}))', "8 1", "a value of kind 6"),
        ("load", f'(param "builder" (list {BYTES}))', "8 1", "fewer parameters"),
        ("[constructor]tensor", NEW_TENSOR.format("u32", "string", BYTES), "8 8 1 8 1", "a value of kind 6"),
        (
            "[constructor]tensor",
            NEW_TENSOR.format(BYTES, "string", BYTES),
            "8 1 8 1 8 1",
            "a value of kind 2",
        ),
        ("[constructor]tensor", NEW_TENSOR.format(WORDS, "u32", BYTES), "8 1 8 8 1", "a value of kind 6"),
        (
            "[constructor]tensor",
            NEW_TENSOR.format(WORDS, "string", WORDS),
            "8 1 8 1 8 1",
            "no tensor-type is",
        ),
    ],
)
def test_an_import_of_another_type_ends_the_guest(library, config, function, type, numbers, why):
    """A component says itself what its imports take, and wasmtime passes just that."""
    is_tensor = "tensor" in function
    resource = '(export "tensor" (type $tensor (sub resource)))' if is_tensor else ""
    result = "(result i32)" if is_tensor else ""
    lists = r"\08\00\00\00\01\00\00\00" * 8  # each at 8, of one element
    given = " ".join(f"(i32.const {number})" for number in numbers.split())
    component = f"""(component
      (import "{NN["tensor" if is_tensor else "graph"]}"
        (instance $i {resource} (export "{function}" (func {type}))))
      (core module $memory
        (memory (export "memory") 1)
        (data (i32.const 8) "{lists}"))
      (core instance $m (instantiate $memory))
      (alias core export $m "memory" (core memory $bytes))
      (core func $call (canon lower (func $i "{function}") (memory (core memory $bytes))))
      (core module $calling
        (import "nn" "call" (func $call (param {"i32 " * len(numbers.split())}) {result}))
        (func (export "go") (call $call {given}) {"drop" if is_tensor else ""}))
      (core instance $c (instantiate $calling (with "nn" (instance (export "call" (func $call))))))
      (alias core export $c "go" (core func $go))
      (func (export "go") (canon lift (core func $go))))"""
    backend = Backend(library, config)
    try:
        guest = Guest(backend, bytes(wasmtime.wat2wasm(component)))
        with pytest.raises(wasmtime.WasmtimeError):
            guest.invoke("go")
        assert why in guest.imports.failure
    finally:
        backend.close()


#: Steps 0 to 2: the graph is step 1's, its context step 2's.
OPENED = [put(NAMES, b"sums"), call("load-by-name", NAMES, 4, RESULT), call("graph-open", {"of": 1}, RESULT)]
#: Steps 0 to 3: the conversation is step 2's, its answer step 3's.
ASKED = [
    put(NAMES, b"chat{}"),
    call("load-by-name", NAMES, 4, RESULT),
    call("conversation-open", {"of": 1}, 0, 0, 0, RESULT),
    call("conversation-ask", {"of": 2}, NAMES, 4, NAMES + 4, 2, RESULT),
]


def computing(first: int, context: object = None) -> list:
    """Steps from `first` on that compute with right inputs, the last one."""
    steps = [put(NAMES, b"xw")]
    for i, (shape, values) in enumerate((((2, 2), (1, 2, 3, 4)), ((2,), (10, 100)))):
        steps += [
            put(SHAPE, struct.pack(f"<{len(shape)}I", *shape)),
            put(DATA, struct.pack(f"<{len(values)}f", *values)),
            call("tensor-new", SHAPE, len(shape), 1, DATA, 4 * len(values)),
        ]
        tensor = first + len(steps) - 1
        steps += [
            put(INPUTS + 12 * i, struct.pack("<2I", NAMES + i, 1)),
            ["word", INPUTS + 12 * i + 8, {"of": tensor}],
        ]
    return [*steps, call("compute", context or {"of": 2}, INPUTS, 2, RESULT)]


def test_right_values_are_computed_with(host):
    assert host([*OPENED, *computing(len(OPENED))])[-1] == SUM_AND_PRODUCT


def test_a_context_outlives_its_graph_and_computes_again(host):
    steps = [*OPENED, call("drop-graph", {"of": 1}), *computing(4)]
    steps += computing(len(steps))
    told = host(steps)
    assert told[-1] == SUM_AND_PRODUCT
    assert told.count(SUM_AND_PRODUCT) == 2


def test_what_a_tensor_holds_is_what_it_was_made_of(host):
    steps = [
        put(SHAPE, struct.pack("<3I", 1, 0, 2**32 - 1)),
        put(DATA, b"\0\xff\x80"),
        call("tensor-new", SHAPE, 3, 4, DATA, 3),
        call("tensor-dimensions", {"of": 2}, RESULT),
        call("tensor-ty", {"of": 2}),
        call("tensor-data", {"of": 2}, RESULT),
    ]
    assert host(steps)[2:] == ["handle", [1, 0, 2**32 - 1], 4, "00ff80"]


def test_every_byte_of_large_tensors_comes_back(host):
    content = bytes(range(256)) * 1000
    steps = [
        put(MODEL, content),
        call("tensor-new", SHAPE, 0, 4, MODEL, len(content)),
        call("tensor-data", {"of": 1}, RESULT),
        call("tensor-new", SHAPE, 0, 4, MODEL, 128),
        call("tensor-data", {"of": 3}, RESULT),
        call("tensor-new", SHAPE, 0, 4, MODEL, 0),
        call("tensor-data", {"of": 5}, RESULT),
    ]
    assert host(steps)[2::2] == [content.hex(), content[:128].hex(), ""]


@pytest.mark.parametrize(
    ("shape", "kind", "size", "told"),
    [
        ((2, 2), 1, 15, "invalid-argument: input 0, 'x'"),
        ((2, 3), 1, 24, "invalid-argument: input 0, 'x' is f32 [?, 2]"),
        ((2, 2), 5, 16, "invalid-argument: input 0, 'x' is f32 [?, 2]: the tensor is i32"),
        ((2**31, 2**31, 4), 1, 16, "invalid-argument: input 0, 'x'"),
        ((1,) * 9, 1, 4, "invalid-argument: "),
        ((), 1, 0, "invalid-argument: input 0, 'x'"),
    ],
)
def test_tensors_of_wrong_types_and_sizes_are_refused(host, shape, kind, size, told):
    steps = [*OPENED, *computing(len(OPENED))]
    steps[4] = put(SHAPE, struct.pack(f"<{len(shape)}I", *shape))
    steps[6] = call("tensor-new", SHAPE, len(shape), kind, DATA, size)
    found = host(steps)[-1]
    assert found.startswith(told)


@pytest.mark.parametrize(
    "steps",
    [
        [call("graph-open", 1, RESULT)],
        [call("graph-open", 0, RESULT)],
        [call("tensor-data", 2**32 - 1, RESULT)],
        [call("drop-tensor", 7)],
        [*OPENED, call("tensor-data", {"of": 1}, RESULT)],
        [*OPENED, call("drop-graph", {"of": 1}), call("graph-open", {"of": 1}, RESULT)],
        [*OPENED, call("drop-graph", {"of": 1}), call("drop-graph", {"of": 1})],
        [*OPENED, call("drop-context", {"of": 2}), *computing(4)],
        [*OPENED, *computing(3), *[call("compute", {"of": 2}, INPUTS, 2, RESULT)]],
        [*OPENED, *computing(3, {"of": 1})],
    ],
)
def test_handles_of_nothing_of_another_kind_and_dropped_ones_end_the_guest(wasmtime_host, steps):
    assert wasmtime_host(steps)[-1] == "trap"


@pytest.mark.parametrize(
    "steps",
    [
        [call("graph-open", 1, RESULT)],
        [call("tensor-data", 2**32 - 1, RESULT)],
        [call("answer-next", 3, RESULT)],
        [*OPENED, call("drop-graph", {"of": 1}), call("graph-open", {"of": 1}, RESULT)],
        [*OPENED, call("drop-context", {"of": 2}), *computing(4)],
        [*OPENED, *computing(3), *[call("compute", {"of": 2}, INPUTS, 2, RESULT)]],
    ],
)
def test_handles_of_nothing_and_dropped_ones_end_the_guest_in_node(node_runs, steps):
    """jco numbers each kind of resource by itself, and lets a guest drop what it has not."""
    (told,) = node_runs([steps])
    assert told[-1] == "trap"


@pytest.mark.parametrize(
    "step",
    [
        call("tensor-new", SHAPE, 2, 7, DATA, 4),
        call("tensor-new", SHAPE, 2, 2**32 - 1, DATA, 4),
        call("load", NAMES, 0, 7, 0, RESULT),
        call("load", NAMES, 0, 0, 3, RESULT),
        call("load-by-name", 2**32 - 1, 2, RESULT),
        call("load-by-name", NAMES, 4, 2**32 - 4),
        call("tensor-new", SHAPE, 2**30, 1, DATA, 4),
        call("tensor-new", SHAPE, 1, 1, 2**32 - 2, 4),
        call("load", BUILDERS + 1, 1, 1, 0, RESULT),
        call("load", BUILDERS, 2**29, 1, 0, RESULT),
        call("load", BUILDERS, 2**32 - 1, 1, 0, RESULT),
    ],
)
def test_cases_that_are_none_and_lists_outside_the_memory_end_the_guest(wasmtime_host, step):
    assert wasmtime_host([step]) == ["trap"]


def test_an_input_that_is_given_twice_is_refused_and_the_tensors_are_gone(host):
    steps = [*OPENED, *computing(len(OPENED))]
    twice = [*steps[:-1], put(INPUTS + 12, struct.pack("<2I", NAMES, 1)), steps[-1]]
    assert host(twice)[-1] == "invalid-argument: input 'x' is given twice"
    assert host([*twice, call("tensor-ty", {"of": 6})])[-1] == "trap"
    again = computing(len(twice))
    assert host([*twice, *again])[-1] == SUM_AND_PRODUCT


def test_models_of_any_size_are_loaded_from_a_guests_bytes(library, config):
    """The lists of wasmtime's C interface end at 2.79 MB."""
    size = 90 << 20
    model = component_fuzz.sums()
    text_of_model = b"\x32" + leb(size)  # its doc_string, of NULs, is the guest's empty memory
    behind = MODEL + len(text_of_model) + size
    steps = [
        put(MODEL, text_of_model),
        put(behind, model),
        put(BUILDERS, struct.pack("<2I", MODEL, len(text_of_model) + size + len(model))),
        call("load", BUILDERS, 1, 1, 0, RESULT),
        call("graph-open", {"of": 3}, RESULT),
    ]
    steps += computing(len(steps), {"of": 4})
    backend = Backend(library, config)
    try:
        guest = Guest(backend, bytes(wasmtime.wat2wasm(text(pages=(size >> 16) + 64))))
        assert guest.run(steps)[-1] == SUM_AND_PRODUCT
    finally:
        backend.close()


def leb(number: int) -> bytes:
    digits = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(digit | 0x80 for digit in digits[:-1]), digits[-1]])


def test_a_component_of_several_memories_cannot_pass_bytes_in_place(library, config):
    """`headrace wasm` leaves its imports as they are; one that came so all the same is ended."""
    backend = Backend(library, config)
    try:
        more = "(core module $more (memory 1)) (core instance (instantiate $more))"
        binary = bytes(wasmtime.wat2wasm(text(more)))
        assert contents_of(binary).memories == 2
        made = call("tensor-new", SHAPE, 0, 1, DATA, 4)
        with pytest.raises(BrokenHostError, match="has 2 memories"):
            Guest(backend, binary).run([made])
        assert Guest(backend, binary, passes_lists=True).run([made]) == ["handle"]
    finally:
        backend.close()


def test_texts_that_are_no_utf_8_end_the_guest(wasmtime_host):
    assert wasmtime_host([put(NAMES, b"\xff\xfe"), call("load-by-name", NAMES, 2, RESULT)])[-1] == "trap"


def test_a_guest_that_holds_too_many_resources_is_ended(host):
    made = call("tensor-new", SHAPE, 0, 1, DATA, 0)
    told = host([made] * 65_537)
    assert told[-1] == "trap"
    assert told.count("handle") == 65_536


def test_a_guest_whose_tensors_hold_too_many_bytes_is_ended(host):
    made = call("tensor-new", SHAPE, 0, 1, DATA, MOST_BYTES // 8)
    told = host([made] * 9)
    assert told == ["handle"] * 8 + ["trap"]


def test_dimensions_and_messages_count_among_a_guests_bytes(host):
    many = call("tensor-new", SHAPE, MOST_BYTES // 64, 1, DATA, 0)  # a sixteenth in dimensions
    assert host([many] * 17) == ["handle"] * 16 + ["trap"]
    name = b"x" * (MOST_BYTES // 16)
    long = [
        put(NAMES, b"sums"),
        call("load-by-name", NAMES, 4, RESULT),
        call("graph-open", {"of": 1}, RESULT),
    ]
    long += [put(MODEL, name), put(INPUTS, struct.pack("<2I", MODEL, len(name)))]
    for _ in range(20):
        long += [
            call("tensor-new", SHAPE, 0, 1, DATA, 0),
            ["word", INPUTS + 8, {"of": len(long)}],
            ["keep", "compute", [{"of": 2}, INPUTS, 1, RESULT]],
        ]
    assert host(long)[-1] == "trap"


def test_names_that_are_too_long_are_refused_and_not_repeated(host):
    name = b"x" * 4097
    steps = [put(MODEL, name), call("load-by-name", MODEL, len(name), RESULT)]
    assert host(steps)[-1] == "invalid-argument: the model's name has 4097 bytes, and 4096 are the most"
    steps = [*ASKED[:2], put(MODEL, name), call("conversation-open", {"of": 1}, 1, MODEL, len(name), RESULT)]
    assert host(steps)[-1] == "invalid-argument: the session's name has 4097 bytes, and 4096 are the most"
    steps[-1] = call("conversation-open", {"of": 1}, 1, MODEL, 257, RESULT)
    assert host(steps)[-1] == "invalid-argument: 'session_id' is a name of 257 bytes; at most 256 are allowed"


def test_tensors_that_were_dropped_or_handed_over_make_room(host):
    steps = [*OPENED, put(NAMES, b"x"), put(INPUTS, struct.pack("<2I", NAMES, 1))]
    for _ in range(10):
        steps += [
            call("tensor-new", SHAPE, 0, 1, DATA, MOST_BYTES // 8),
            ["word", INPUTS + 8, {"of": len(steps)}],
            call("compute", {"of": 2}, INPUTS, 1, RESULT),
            call("tensor-new", SHAPE, 0, 1, DATA, MOST_BYTES // 8),
            call("drop-tensor", {"of": len(steps) + 3}),
        ]
    told = host(steps)
    assert told.count("handle") == 2 + 20
    assert told.count("invalid-argument: the graph's inputs are x, w; given are x") == 10


def test_contexts_beyond_the_hosts_number_are_an_error_and_dropped_ones_make_room(host):
    steps = [*OPENED, *[call("graph-open", {"of": 1}, RESULT)] * 8]
    told = host([*steps, call("drop-context", {"of": 2}), call("graph-open", {"of": 1}, RESULT)])
    assert told[9] == "handle"
    assert told[10].startswith("runtime-error: ")
    assert told[-1] == "handle"


def test_a_graph_of_tensors_has_no_conversations_and_an_answer_no_metadata_before_its_end(host):
    steps = [*OPENED, call("conversation-open", {"of": 1}, 0, 0, 0, RESULT)]
    assert (
        host(steps)[-1]
        == "unsupported-operation: the graph takes tensors; conversations are with language models"
    )
    chat = [
        *ASKED,
        call("answer-metadata", {"of": 3}, RESULT),
        call("answer-next", {"of": 3}, RESULT),
        call("answer-cancel", {"of": 3}),
        call("answer-metadata", {"of": 3}, RESULT),
        call("answer-next", {"of": 3}, RESULT),
    ]
    told = host(chat)
    assert told[4].startswith("invalid-argument: the answer is not at its end")
    assert told[5:] == ["text", None, "text", "text"]


def endless() -> bytes:
    """Products one after the other, which take longer than any run may."""
    from onnx import TensorProto, helper

    names = ["x", *(f"h{i}" for i in range(4000)), "y"]
    nodes = [helper.make_node("MatMul", [a, a], [b]) for a, b in pairwise(names)]
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", "n"]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", tensors[:1], tensors[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return made.SerializeToString()


def loading(model: bytes, encoding: int = 1, target: int = 0) -> list:
    """The last step gives the graph."""
    return [
        put(MODEL, model),
        put(BUILDERS, struct.pack("<2I", MODEL, len(model))),
        call("load", BUILDERS, 1, encoding, target, RESULT),
    ]


def asking(prompt: bytes) -> list:
    """The last step computes an answer."""
    return [
        put(NAMES, b"chatprompt"),
        call("load-by-name", NAMES, 4, RESULT),
        call("graph-open", {"of": 1}, RESULT),
        put(MODEL, prompt),
        put(SHAPE, struct.pack("<I", len(prompt))),
        call("tensor-new", SHAPE, 1, 4, MODEL, len(prompt)),
        put(INPUTS, struct.pack("<2I", NAMES + 4, 6)),
        ["word", INPUTS + 8, {"of": 5}],
        call("compute", {"of": 2}, INPUTS, 1, RESULT),
    ]


def test_every_code_of_an_error_is_reached(host):
    """runtime-error is among the tests above; unknown is what no error of ours is."""
    unread = component_fuzz.sums().replace(b"Mul", b"Nul")
    wanted = {
        "invalid-argument": loading(b"no model"),
        "invalid-encoding": loading(component_fuzz.sums(), encoding=0),
        "unsupported-operation": loading(unread),
        "not-found": [put(NAMES, b"missing.onnx"), call("load-by-name", NAMES, 12, RESULT)],
        "security": [put(NAMES, b"/etc/passwd"), call("load-by-name", NAMES, 11, RESULT)],
        "too-large": asking(b" word" * 2000),
    }
    for code, steps in wanted.items():
        assert str(host(steps)[-1]).startswith(f"{code}: "), code
    assert str(host(loading(component_fuzz.sums(), target=2))[-1]).startswith("unsupported-operation: ")


def test_a_run_beyond_its_time_is_a_timeout(host):
    side = 400
    steps = [
        *loading(endless()),
        call("graph-open", {"of": 2}, RESULT),
        put(SHAPE, struct.pack("<2I", side, side)),
        call("tensor-new", SHAPE, 2, 1, 65536, 4 * side * side),
        put(NAMES, b"x"),
        put(INPUTS, struct.pack("<2I", NAMES, 1)),
        ["word", INPUTS + 8, {"of": 5}],
        call("compute", {"of": 3}, INPUTS, 1, RESULT),
    ]
    assert host(steps)[-1].startswith("timeout: ")


def tokens_of(guest: Guest, graph: int, question: bytes, session: bytes) -> int:
    """How many tokens a question has with what its session remembers."""
    texts = session + question + b"{}"
    asked, parameters = NAMES + len(session), NAMES + len(session) + len(question)
    steps = [
        put(NAMES, texts),
        call("conversation-open", graph, 1, NAMES, len(session), RESULT),
        call("conversation-ask", {"of": 1}, asked, len(question), parameters, 2, RESULT),
        *[call("answer-next", {"of": 2}, RESULT)] * 8,
        call("answer-metadata", {"of": 2}, RESULT),
    ]
    told = guest.run(steps)
    assert told[-1] == "text", told
    metadata = json.loads(guest.get(*guest.words(RESULT + 4, 2)))
    assert guest.run([call("drop-answer", guest.handles[2]), call("drop-conversation", guest.handles[1])])
    return metadata["input_tokens"]


def test_components_of_one_process_have_limits_and_sessions_of_their_own(library, config):
    backends = [Backend(library, {**config, "max_graphs": 1, "history": True}) for _ in range(2)]
    try:
        first, second = (Guest(backend, bytes(wasmtime.wat2wasm(text()))) for backend in backends)
        assert first.run(ASKED[:2])[-1] == second.run(ASKED[:2])[-1] == "handle"
        here, there = first.handles[1], second.handles[1]
        alone = tokens_of(first, here, b"Hello", b"anna")
        assert tokens_of(first, here, b"Hello", b"anna") > alone, "the session remembers"
        assert tokens_of(second, there, b"Hello", b"anna") == alone, "another guest's session of that name"
        assert first.run(OPENED[:2])[-1].startswith("runtime-error: 1 graphs are loaded")
        second.run([call("drop-graph", there)])
        assert second.run(OPENED)[-1] == "handle"
        assert first.run([call("drop-graph", 77)]) == ["trap"]
        backends[0].close()
        assert second.run(computing(0, second.handles[2]))[-1] == SUM_AND_PRODUCT
    finally:
        for backend in backends:
            backend.close()


def test_an_answer_that_nobody_reads_may_be_cancelled_and_dropped(host):
    cancelled = [call("answer-cancel", {"of": 3}), call("answer-metadata", {"of": 3}, RESULT)]
    assert host([*ASKED, *cancelled])[4:] == [None, "text"]
    again = [call("drop-answer", {"of": 3}), ASKED[3], call("answer-next", {"of": 5}, RESULT)]
    assert host([*ASKED, *again])[4:] == [None, "handle", "text"]


def test_an_answer_outlives_its_conversation_and_is_over_with_it(host):
    steps = [
        *ASKED,
        call("answer-next", {"of": 3}, RESULT),
        call("drop-conversation", {"of": 2}),
        call("answer-next", {"of": 3}, RESULT),
        call("answer-cancel", {"of": 3}),
        call("answer-metadata", {"of": 3}, RESULT),  # of which nothing is known
        call("drop-answer", {"of": 3}),
        call("conversation-open", {"of": 1}, 0, 0, 0, RESULT),
    ]
    unknown = "invalid-argument: the answer is not at its end"
    assert host(steps)[4:] == ["text", None, "text", None, unknown, None, "handle"]


def test_random_components_end_in_an_answer_an_error_or_their_own_end(wasmtime_host):
    model = component_fuzz.sums()
    told = [wasmtime_host(component_fuzz.Program(seed, model).steps) for seed in range(150)]
    kinds = {"trap" if steps[-1] == "trap" else "end" for steps in told}
    assert kinds == {"trap", "end"}
    everything = [step for steps in told for step in steps]
    assert SUM_AND_PRODUCT[0][0] in str(everything)
    assert {"invalid-argument", "not-found"} <= {str(step).partition(":")[0] for step in everything}


def test_both_hosts_tell_random_components_the_same(wasmtime_host, node_runs):
    """jco is more lenient with what is out of bounds: what comes before a guest's end is compared."""
    model = component_fuzz.sums()
    programs = [component_fuzz.Program(seed, model).steps for seed in range(60)]
    for program, there in zip(programs, node_runs(programs), strict=True):
        assert "broken" not in there, there
        here = wasmtime_host(program)
        same = len(here) - (here[-1] == "trap")
        assert there[:same] == here[:same], json.dumps(program)
