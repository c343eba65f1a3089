"""`headrace wasm`, and what guests with wrong pointers get from it."""

from __future__ import annotations

import json
import struct
import subprocess
import sys

import pytest
import wasm_chat

wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is not installed: make setup installs it")
pytest.importorskip("headrace", reason="the Python extension is not built: make build")
from guest_toolchains import in_rust, run  # noqa: E402
from headrace.wasm import WasiNn  # noqa: E402
from module_guest import IMPORTS, INVALID_ARGUMENT, WORD, Guest, wat  # noqa: E402

CONFIG = {"n_threads": 1, "n_ctx": 512, "temperature": 0, "log_level": "none"}
NAME, OPTIONS, TENSOR, PROMPT, OUTPUT, PART = 0, 64, 256, 512, 1024, 4096
QUESTION = b"What is 2+3?"
PAGE = 65536


class ChatGuest(Guest):
    """With the arguments of all calls in its memory, and a context of the model `default`."""

    def prepare(self) -> None:
        """The arguments of all calls, as they should be."""
        self.put(NAME, b"default")
        self.put(OPTIONS, b"{}")
        self.put(PROMPT, QUESTION)
        self.put(TENSOR, struct.pack("<5I", PROMPT, 0, 3, PROMPT, len(QUESTION)))
        self.put(PART, struct.pack("<2I", PROMPT, len(QUESTION)))
        assert self.call("load_by_name", NAME, 7, WORD) == 0
        self.graph = self.word()
        assert self.call("init_execution_context", self.graph, WORD) == 0
        self.context = self.word()

    def answer(self, output: int = OUTPUT, capacity: int = 256) -> bytes:
        assert self.call("set_input", self.context, 0, TENSOR) == 0
        assert self.call("compute", self.context) == 0
        assert self.call("get_output", self.context, 0, output, capacity, WORD) == 0
        return self.get(output, self.word())


@pytest.fixture
def nn(library, model):
    backend = WasiNn(library, {**CONFIG, "model_aliases": {"default": str(model)}})
    yield backend
    backend.close()


@pytest.fixture
def guest_of_one_page(nn):
    guest = ChatGuest(nn, wat(pages=1))
    guest.prepare()
    return guest


def right_calls(guest: Guest) -> dict[str, tuple[list[int], list[int], list[int]]]:
    """Each call with pointers: its arguments, and which of them are pointers and sizes."""
    output = [guest.context, 0, OUTPUT, 256, WORD]
    return {
        "load": ([PART, 1, 5, 0, WORD], [0, 4], []),
        "load_by_name": ([NAME, 7, WORD], [0, 2], [1]),
        "load_by_name_with_config": ([NAME, 7, OPTIONS, 2, WORD], [0, 2, 4], [1, 3]),
        "init_execution_context": ([guest.graph, WORD], [1], []),
        "set_input": ([guest.context, 0, TENSOR], [2], []),
        "get_output": (output, [2, 4], [3]),
        "get_output_single": (output, [2, 4], [3]),
    }


def test_a_guest_gets_an_answer_in_its_own_memory(guest_of_one_page):
    assert guest_of_one_page.answer().startswith(b"2+3=5")


def test_pointers_outside_the_memory_get_an_error_and_change_nothing(guest_of_one_page):
    guest = guest_of_one_page
    guest.answer()
    before = guest.get(0, PAGE)
    for name, (arguments, pointers, sizes) in right_calls(guest).items():
        for i in pointers:
            for bad in (PAGE, PAGE - 1, PAGE + 1, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1):
                wrong = [*arguments[:i], bad, *arguments[i + 1 :]]
                assert guest.call(name, *wrong) == INVALID_ARGUMENT, (name, wrong)
        for i in sizes:
            for bad in (PAGE + 1, 2**31 - 1, 2**31, 2**32 - 1):
                wrong = [*arguments[:i], bad, *arguments[i + 1 :]]
                assert guest.call(name, *wrong) == INVALID_ARGUMENT, (name, wrong)
    assert guest.get(0, PAGE) == before
    assert guest.answer().startswith(b"2+3=5")


@pytest.mark.parametrize("field", range(5))
@pytest.mark.parametrize("value", [PAGE - 1, 2**30, 2**31, 2**32 - 4, 2**32 - 1])
def test_pointers_in_a_tensor_are_checked_as_well(guest_of_one_page, field, value):
    guest = guest_of_one_page
    words = [PROMPT, 1, 3, PROMPT, len(QUESTION)]
    words[field] = value
    guest.put(TENSOR, struct.pack("<5I", *words))
    expected = 0 if field == 2 else INVALID_ARGUMENT  # the type is not looked at
    assert guest.call("set_input", guest.context, 0, TENSOR) == expected


@pytest.mark.parametrize("part", [(PAGE, 1), (0, PAGE + 1), (2**32 - 1, 2), (8, 2**32 - 1)])
def test_pointers_in_a_model_of_bytes_are_checked_as_well(guest_of_one_page, part):
    guest = guest_of_one_page
    guest.put(PART, struct.pack("<2I", *part))
    assert guest.call("load", PART, 1, 5, 0, WORD) == INVALID_ARGUMENT
    assert guest.call("load", PART, 2**32 - 1, 5, 0, WORD) == INVALID_ARGUMENT


def test_a_model_may_be_loaded_from_the_guests_memory(nn, model):
    data = model.read_bytes()
    guest = ChatGuest(nn, wat(pages=2 + len(data) // PAGE))
    guest.prepare()
    guest.put(PAGE, data)
    guest.put(PART, struct.pack("<2I", PAGE, len(data)))
    for encoding in (5, 6):
        assert guest.call("load", PART, 1, encoding, 0, WORD) == 0
        assert guest.call("init_execution_context", guest.word(), WORD) == 0
        guest.context = guest.word()
        assert guest.answer().startswith(b"2+3=5")


def test_sums_that_wrap_at_4_gib_are_outside_the_largest_memory(nn):
    guest = ChatGuest(nn, wat(pages=65536))
    guest.prepare()
    last = 2**32 - 256
    assert guest.answer(last, 256).startswith(b"2+3=5"), "the last bytes of the memory are the guest's"
    for pointer, size in ((last, 257), (2**32 - 1, 2), (2**32 - 1, 2**32 - 1), (1, 2**32 - 1)):
        expected = 0 if pointer + size <= 2**32 else INVALID_ARGUMENT
        assert guest.call("get_output", guest.context, 0, pointer, size, WORD) == expected, (pointer, size)
    guest.prepare()
    guest.put(TENSOR, struct.pack("<5I", PROMPT, 2**30, 3, PROMPT, 4))
    assert guest.call("set_input", guest.context, 0, TENSOR) == INVALID_ARGUMENT


def test_memory_that_grew_is_found_where_it_is(guest_of_one_page):
    guest = guest_of_one_page
    assert guest.call("get_output", guest.context, 0, PAGE, 256, WORD) == INVALID_ARGUMENT
    guest.memory.grow(guest.store, 100)
    assert guest.answer(50 * PAGE).startswith(b"2+3=5")


def test_a_guest_without_a_memory_gets_errors(nn):
    guest = ChatGuest(nn, wat(pages=None))
    takes_pointers = {"load", "load_by_name", "load_by_name_with_config", "set_input", "get_output"}
    for name, count in IMPORTS.items():
        code = guest.call(name, *[0] * count)
        assert code == INVALID_ARGUMENT if name in takes_pointers else code != 0, name


def headrace_wasm(*arguments: object, text: str | None = None, code: int = 0) -> str:
    command = [sys.executable, "-m", "headrace", "wasm", *map(str, arguments)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


THREADS = ("--config", '{"n_threads": 1, "n_ctx": 512, "temperature": 0}')


def test_the_command_lets_a_guest_chat(library, model, guest):
    options = (guest, "--model", model, *THREADS, "--")
    streamed = headrace_wasm(*options, "--metadata", "What is 2+3?", "What is the capital of France?")
    assert streamed.startswith("> What is 2+3?\n2+3=5\n> What is the capital of France?\n")
    assert "Paris" in streamed
    assert '"output_tokens":' in streamed
    whole = headrace_wasm(*options, "--whole", text="What is 2+3?\n\nWhat is the capital of France?\n")
    assert streamed.startswith(whole)


#: What WAMR serves of wasi_ephemeral_nn.
WAMR_CALLS = {
    "load",
    "load_by_name",
    "load_by_name_with_config",
    "init_execution_context",
    "set_input",
    "compute",
    "get_output",
}


def run_as_wamr(nn: WasiNn, guest, output, *arguments: str, trap: bool) -> tuple[int, str]:
    """Runs a guest where only WAMR's calls are served: its exit status, and what it printed.

    trap: as iwasm does, the guest starts all the same, and what is not served traps where it is called;
    without it, it is refused, as other hosts do.
    """
    engine = wasmtime.Engine()
    store = wasmtime.Store(engine)
    wasi = wasmtime.WasiConfig()
    wasi.argv = ["guest", *arguments]
    wasi.stdout_file = str(output)
    store.set_wasi(wasi)
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    served = wasmtime.Linker(engine)
    nn.define(served)
    module = wasmtime.Module.from_file(engine, str(guest))
    for item in module.imports:
        if item.module != "wasi_ephemeral_nn":
            continue
        if item.name in WAMR_CALLS:
            linker.define(store, item.module, item.name, served.get(store, item.module, item.name))
        elif trap:

            def fail(*_, name=item.name):
                raise RuntimeError(f"{name} is not linked")

            linker.define_func(item.module, item.name, item.type, fail)
    start = linker.instantiate(store, module).exports(store)["_start"]
    try:
        start(store)
        code = 0
    except wasmtime.ExitTrap as exit_trap:
        code = exit_trap.code
    return code, output.read_text()


CHAT = "> What is 2+3?\n2+3=5\n> What is the capital of France?\n"


def test_a_guest_that_wants_whole_answers_runs_where_only_wamrs_calls_are(nn, guest, tmp_path):
    arguments = ("--whole", "--metadata", "What is 2+3?", "What is the capital of France?")
    code, printed = run_as_wamr(nn, guest, tmp_path / "out", *arguments, trap=True)
    assert code == 0
    assert printed.startswith(CHAT)
    assert '"output_tokens":' in printed.splitlines()[-1], "the last line is there, too"
    with pytest.raises(wasmtime.WasmtimeError, match="unknown import"):
        run_as_wamr(nn, guest, tmp_path / "out", *arguments, trap=False)


def test_a_guest_in_rust_chats_by_pieces(library, model, tmp_path):
    made = in_rust("chat", tmp_path)
    printed = run(made, "What is 2+3?", "What is the capital of France?", models={"default": model})
    assert printed.startswith("> What is 2+3?\n2+3=5\n> What is the capital of France?\n")
    assert "Paris" in printed
    assert "there is no such file" in run(made, "Hello", models={}, code=1)


def test_the_guest_in_the_repository_is_what_its_source_compiles_to(guest, tmp_path):
    """docs/language-models.md has the command."""
    try:
        compiled = wasm_chat.compile_guest(tmp_path / "guest_chat.wasm")
    except wasm_chat.MissingError as missing:
        pytest.skip(str(missing))
    assert guest.read_bytes() == compiled.read_bytes()


def test_a_guest_can_be_compiled_without_other_calls_than_wamrs(nn, tmp_path):
    try:
        guest = wasm_chat.compile_guest(tmp_path / "guest_whole.wasm", "-DGUEST_CHAT_WHOLE")
    except wasm_chat.MissingError as missing:
        pytest.skip(str(missing))
    code, printed = run_as_wamr(
        nn, guest, tmp_path / "out", "What is 2+3?", "What is the capital of France?", trap=False
    )
    assert code == 0
    assert printed.startswith(CHAT)


def test_the_command_gives_guests_the_models_of_its_aliases_alone(library, model, guest):
    options = (guest, "--alias", f"tiny={model}", *THREADS, "--", "--model")
    assert "2+3=5" in headrace_wasm(*options, "tiny", "What is 2+3?")
    for name in (model, "default", "/etc/passwd", "../../etc/passwd"):
        assert "load_by_name_with_config failed with" in headrace_wasm(*options, name, "Hello", code=1)


def test_the_aliases_of_the_command_are_added_to_those_of_its_configurations(
    library, model, guest, monkeypatch
):
    mine = {"mine": str(model)}
    monkeypatch.setenv("HEADRACE_CONFIG", json.dumps({"model_aliases": {"ours": str(model)}}))
    for aliases in ({"model_aliases": mine}, {"model-aliases": mine}, {"service": {"model_aliases": mine}}):
        config = json.dumps({**json.loads(THREADS[1]), **aliases})
        options = (guest, "--alias", f"tiny={model}", "--config", config)
        for name in ("tiny", "mine", "ours"):
            assert "2+3=5" in headrace_wasm(*options, "--", "--model", name, "What is 2+3?"), name
    wrong = ("--config", '{"model_aliases": 7}', "--alias", f"tiny={model}")
    assert "was refused with 1" in headrace_wasm(guest, *wrong, code=1)


def test_parameters_that_are_no_json_are_an_error_that_names_them(guest_of_one_page):
    guest = guest_of_one_page
    guest.put(OPTIONS, b"n_predict=3")
    guest.put(TENSOR + 64, struct.pack("<5I", PROMPT, 0, 3, OPTIONS, 11))
    assert guest.call("set_input", guest.context, 1, TENSOR + 64) == 0
    assert guest.call("set_input", guest.context, 0, TENSOR) == 0
    assert guest.call("compute", guest.context) == INVALID_ARGUMENT
    assert guest.call("get_output", guest.context, 1, OUTPUT, 1024, WORD) == 0
    error = json.loads(guest.get(OUTPUT, guest.word()))["error"]
    assert error["code"] == "invalid_argument" and "parameters" in error["message"]


def test_what_reaches_outside_the_memory_is_remembered_as_the_last_failure(guest_of_one_page):
    guest = guest_of_one_page
    for name, numbers, what in (
        ("set_input", [guest.context, 0, PAGE], "the tensor"),
        ("load_by_name", [PAGE, 7, WORD], "the model's name"),
        ("init_execution_context", [guest.graph, PAGE - 2], "the pointer for the result"),
    ):
        assert guest.call(name, *numbers) == INVALID_ARGUMENT
        assert guest.call("get_output", 0, 1, OUTPUT, 1024, WORD) == 0
        error = json.loads(guest.get(OUTPUT, guest.word()))["error"]
        assert error["code"] == "invalid_argument"
        assert error["message"] == f"{what} reaches outside the guest's memory of 65536 bytes"


def test_the_command_says_which_option_names_no_model(library, model, guest, tmp_path):
    missing = tmp_path / "missing.gguf"
    assert f"--model {missing}: there is no such file" in headrace_wasm(guest, "--model", missing, code=1)
    assert f"--alias tiny={missing}: there" in headrace_wasm(guest, "--alias", f"tiny={missing}", code=1)
    assert "model 'default': --model FILE" in headrace_wasm(guest, *THREADS, "--", "Hello", code=1)
    other = headrace_wasm(guest, "--model", model, *THREADS, "--", "--model", "tiny", "Hello", code=1)
    assert "model 'tiny': --alias tiny=FILE" in other


def test_the_command_gives_guests_the_variables_and_folders_that_it_is_told(library, model, tmp_path):
    # Its exit status: 10 for a folder, and 1 for each variable.
    guest = tmp_path / "looks_around.wasm"
    guest.write_bytes(
        wasmtime.wat2wasm("""(module
          (import "wasi_snapshot_preview1" "fd_prestat_get" (func $folder (param i32 i32) (result i32)))
          (import "wasi_snapshot_preview1" "environ_sizes_get" (func $variables (param i32 i32) (result i32)))
          (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
          (memory (export "memory") 1)
          (func (export "_start")
            (drop (call $variables (i32.const 0) (i32.const 4)))
            (call $exit (i32.add
              (i32.load (i32.const 0))
              (i32.mul (i32.const 10) (i32.eqz (call $folder (i32.const 3) (i32.const 8))))))))""")
    )
    headrace_wasm(guest, "--model", model, code=0)
    headrace_wasm(guest, "--model", model, "--env", "A=1", "--env", "B=", code=2)
    headrace_wasm(guest, "--model", model, "--dir", tmp_path, code=10)
    headrace_wasm(guest, "--model", model, "--dir", f"{tmp_path}::data", "--env", "A=x=y", code=11)
    assert "is no folder" in headrace_wasm(guest, "--dir", tmp_path / "nothing", code=2)
    assert "NAME=VALUE" in headrace_wasm(guest, "--env", "A", code=2)


def test_several_parts_of_a_model_are_refused_with_a_reason(guest_of_one_page):
    guest = guest_of_one_page
    assert guest.call("load", PART, 2, 5, 0, WORD) == INVALID_ARGUMENT
    assert guest.call("get_output", 0, 1, OUTPUT, 1024, WORD) == 0
    assert b"one builder" in guest.get(OUTPUT, guest.word())


def test_the_command_says_what_a_guest_did_wrong(library, model, guest, tmp_path):
    config = ("--", "--config", '{"n_predict": "many"}', "Hello")
    told = headrace_wasm(guest, "--model", model, *THREADS, *config, code=1).splitlines()[-1]
    error = json.loads(told)["error"]  # the guest's own words, from output 1 of context 0
    assert error["code"] == "invalid_argument" and "n_predict" in error["message"]
    trap = tmp_path / "trap.wasm"
    trap.write_bytes(wasmtime.wat2wasm('(module (func (export "_start") unreachable))'))
    assert "unreachable" in headrace_wasm(trap, code=1)
    stranger = tmp_path / "stranger.wasm"
    stranger.write_bytes(wasmtime.wat2wasm('(module (import "other" "thing" (func)))'))
    assert "other" in headrace_wasm(stranger, code=1)
    no_start = tmp_path / "no_start.wasm"
    no_start.write_bytes(wasmtime.wat2wasm("(module)"))
    assert "exports no _start" in headrace_wasm(no_start, code=1)
    assert "it begins with b'GGUF'; a WebAssembly guest begins with" in headrace_wasm(model, code=1)
    as_text = tmp_path / "as_text.wat"
    as_text.write_text(';; text\n(module (func (export "_start")))')
    assert headrace_wasm(as_text) == ""
    no_such = tmp_path / "no_such.wasm"
    assert headrace_wasm(no_such, code=1) == f"headrace wasm: {no_such}: there is no such file\n"
    assert headrace_wasm(tmp_path, code=1) == f"headrace wasm: {tmp_path}: is no file\n"
    assert "JSON" in headrace_wasm(guest, "--config", "{", code=2)
    assert "NAME=PATH" in headrace_wasm(guest, "--alias", "tiny", code=2)
    assert "refused with 1" in headrace_wasm(guest, "--config", '{"max_sessions": "x"}', code=1)
