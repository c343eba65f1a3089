"""Guests that run, wait or grow beyond what `headrace wasm` and Node's hosts give them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import wasm_chat

wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is not installed: make setup installs it")
pytest.importorskip("onnx", reason="onnx is not installed: make setup installs it")
pytest.importorskip("headrace", reason="the Python extension is not built: make build")
from guest_toolchains import need_from_npm  # noqa: E402
from headrace._sandbox import OverrunError, Room, Sandbox, divided  # noqa: E402
from headrace.wasm import run_guest  # noqa: E402
from loop_model import counting  # noqa: E402

PAGE = 65536
CONFIG = {"n_threads": 1, "n_ctx": 512, "temperature": 0, "context_shift": True, "log_level": "none"}
ENDLESS_ANSWER = 'parameters:text:{"n_predict": 100000000, "ignore_eos": true}'
RUN = wasm_chat.SOURCES / "component_run.wasm"
WASI = 'import "wasi_snapshot_preview1"'
#: Core modules that never end by themselves.
ENDLESS = {
    "loops": '(module (memory (export "memory") 1) (func (export "_start") (loop br 0)))',
    "sleeps": f"""(module ({WASI} "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
      (memory (export "memory") 1)
      (func (export "_start")
        (i32.store (i32.const 16) (i32.const 1))
        (i64.store (i32.const 24) (i64.const 600000000000))
        (drop (call $poll (i32.const 0) (i32.const 128) (i32.const 1) (i32.const 256)))))""",
    "reads": f"""(module ({WASI} "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
      (memory (export "memory") 1)
      (func (export "_start")
        (i32.store (i32.const 0) (i32.const 64))
        (i32.store (i32.const 4) (i32.const 16))
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16)))))""",
}


def assembled(path: Path, text: str) -> Path:
    path.write_bytes(wasmtime.wat2wasm(text))
    return path


@pytest.fixture(scope="module")
def addon(library, tmp_path_factory) -> Path:
    try:
        return wasm_chat.compile_addon(tmp_path_factory.mktemp("node") / "addon.node")
    except wasm_chat.MissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture(params=["wasmtime", "node"])
def host(request, library, model):
    """Runs a guest with options, whose standard input stays open and empty."""

    def run(guest: Path, *options: str, arguments=(), models: dict[str, Path] | None = None):
        aliases = {"default": model, **(models or {})}
        named = [f"--alias={name}={path}" for name, path in aliases.items()]
        if request.param == "wasmtime":
            command = [sys.executable, "-m", "headrace", "wasm", guest, *named, *options, "--", *arguments]
        else:
            command = node_command(request, library, guest, options, arguments, aliases)
        environment = {**os.environ, "HEADRACE_CONFIG": json.dumps(CONFIG)}
        reader, writer = os.pipe()
        try:
            done = subprocess.run(
                list(map(str, command)), stdin=reader, capture_output=True, text=True, timeout=120,
                env=environment,
            )  # fmt: skip
        finally:
            os.close(reader)
            os.close(writer)
        return done.returncode, done.stdout + done.stderr

    return run


def node_command(request, library, guest, options, arguments, aliases) -> list:
    if guest == RUN:
        need_from_npm("jco")
    program, _ = wasm_chat.find_node()
    script = wasm_chat.SOURCES / "node" / ("component_host.mjs" if guest == RUN else "host.mjs")
    named = [part for name, path in aliases.items() for part in ("--alias", f"{name}={path}")]
    first = [] if guest == RUN else [aliases["default"]]
    addon = request.getfixturevalue("addon")
    return [program, "--no-warnings", script, *named, *options, addon, library, *first, guest, *arguments]


@pytest.mark.parametrize("does", ENDLESS)
def test_a_guest_is_ended_whatever_it_does(host, tmp_path, does):
    code, printed = host(assembled(tmp_path / "guest.wasm", ENDLESS[does]), "--max-time", "0.5")
    assert code == 1 and "longer than 0.5 seconds, its --max-time, and was ended" in printed


def test_a_guest_whose_model_computes_or_answers_without_end_is_ended(host, model, tmp_path):
    models = {"counts": counting(tmp_path / "counts.onnx")}
    for arguments in (["counts", "n:i64::1000000000000"], ["default", "prompt:text:Hello", ENDLESS_ANSWER]):
        code, printed = host(RUN, "--max-time", "1", arguments=arguments, models=models)
        assert code == 1 and "longer than 1 seconds" in printed, printed


def test_a_guest_that_ends_in_time_has_its_own_exit_status(host, model, tmp_path):
    exits = assembled(
        tmp_path / "exits.wasm",
        f"""(module ({WASI} "proc_exit" (func $exit (param i32))) (memory (export "memory") 1)
        (func (export "_start") (call $exit (i32.const 7))))""",
    )
    assert host(exits, "--max-time", "60", "--max-memory", str(4 * PAGE)) == (7, "")
    arguments = ["default", "prompt:text:What is 2+3?"]
    code, printed = host(RUN, "--max-time", "100", "--max-memory", "30000000", arguments=arguments)
    assert code == 0 and "2+3=5" in printed


#: Bytes that the guest fits in, and tokens whose keys and values do not.
ROOM, MUCH = 20_000_000, 20_000


def test_a_guests_models_take_no_more_than_its_memory(host, model, library, tmp_path):
    arguments = ["default", "prompt:text:What is 2+3?"]
    options = ["--max-memory", str(ROOM), "--config", f'{{"n_ctx": {MUCH}}}']
    code, printed = host(RUN, *options, arguments=arguments)
    assert code == 1 and f"of {ROOM}, the host's max_memory_bytes, are in use" in printed


def test_a_configuration_gives_models_more_than_the_guests_memory(library, model):
    arguments = ["default", "prompt:text:What is 2+3?"]
    for config in ({"max_memory_bytes": 0}, {"service": {"max-memory-bytes": 100_000_000}}):
        whole = {"n_ctx": MUCH, "n_threads": 1, "log_level": "none", **config}
        assert (
            run_guest(RUN, {"default": str(model)}, whole, sandbox=Sandbox(arguments, max_memory=ROOM)) == 0
        )


def test_what_a_guest_computes_ends_with_its_time_in_the_process_of_its_host(library, tmp_path):
    """Without an end of the process: the model's loop is told."""
    model = str(counting(tmp_path / "counts.onnx"))
    sandbox = Sandbox(["counts", "n:i64::1000000000000"], max_time=0.5)
    with pytest.raises(OverrunError, match=r"longer than 0\.5 seconds"):
        run_guest(RUN, {"counts": model}, {"log_level": "none"}, sandbox=sandbox)
    assert run_guest(RUN, {"counts": model}, sandbox=Sandbox(["counts", "n:i64::3"], max_time=60)) == 0


def grows(memories: int, tables: int, pages: int, elements: int) -> str:
    """A guest whose exit status is how many of its memories and tables got what they wanted."""
    lines = [f'(module ({WASI} "proc_exit" (func $exit (param i32)))']
    lines += [f"(table $t{i} 1 funcref)" for i in range(tables)]
    lines += [f"(memory $m{i} 1)" for i in range(memories)]
    lines.append('(export "memory" (memory 0)) (func (export "_start") (local $got i32)')
    steps = [f"(memory.grow $m{i} (i32.const {pages}))" for i in range(memories)]
    steps += [f"(table.grow $t{i} (ref.null func) (i32.const {elements}))" for i in range(tables)]
    lines += [
        f"(local.set $got (i32.add (local.get $got) (i32.ge_s {step} (i32.const 0))))" for step in steps
    ]
    return "\n".join([*lines, "(call $exit (local.get $got))))"])


def test_all_memories_of_a_guest_are_bounded_together(library, tmp_path):
    guest = assembled(tmp_path / "grows.wasm", grows(memories=4, tables=0, pages=8, elements=0))
    command = [sys.executable, "-m", "headrace", "wasm", guest]
    for pages, got in ((36, 4), (35, 3), (12, 1), (4, 0)):
        options = [f"--max-memory={pages * PAGE}"]
        assert subprocess.run([*map(str, command), *options], timeout=60).returncode == got, pages
    refused = [*map(str, command), f"--max-memory={3 * PAGE}"]
    done = subprocess.run(refused, timeout=60, capture_output=True, text=True)
    assert done.returncode == 1 and "as large as they may be" in done.stderr


def test_tables_of_a_guest_are_bounded_with_its_memories(host, tmp_path):
    # A table's element has 8 bytes, and tables may grow to an eighth.
    guest = assembled(tmp_path / "grows.wasm", grows(memories=1, tables=4, pages=8, elements=1024))
    for bytes_, got in ((64 * PAGE, 5), (16 * PAGE, 5), (4 * PAGE, 0)):
        assert host(guest, "--max-memory", str(bytes_))[0] == got, bytes_


AGAIN = """(component
  (core module $m (memory (export "memory") 1) (func (export "run") (result i32) (i32.const 0)))
  (core instance $first (instantiate $m)) (core instance $second (instantiate $m))
  (alias core export $first "run" (core func $one)) (alias core export $second "run" (core func $two))
  (func $run (result (result)) (canon lift (core func $one)))
  (func $other (result (result)) (canon lift (core func $two)))
  (instance $command (export "run" (func $run))) (instance $more (export "run" (func $other)))
  (export "test:test/other" (instance $more))
  (export "wasi:cli/run@0.2.0" (instance $command)))"""


def test_memories_of_a_module_that_a_component_instantiates_again_are_counted(library, addon, tmp_path):
    guest = assembled(tmp_path / "again.wasm", AGAIN)
    command = [sys.executable, "-m", "headrace", "wasm", str(guest)]
    for size, code in ((2 * PAGE, 0), (2 * PAGE - 1, 1)):
        assert subprocess.run([*command, f"--max-memory={size}"], timeout=60).returncode == code
    need_from_npm("jco")
    program, _ = wasm_chat.find_node()
    host = [program, "--no-warnings", wasm_chat.SOURCES / "node/component_host.mjs"]
    assert subprocess.run([*host, addon, library, guest], timeout=60).returncode == 0
    bounded = [*host, "--max-memory", str(4 * PAGE), addon, library, guest]
    done = subprocess.run(bounded, timeout=60, capture_output=True, text=True)
    assert done.returncode == 1 and "instantiates a core module again" in done.stderr


def test_objects_that_no_memory_holds_are_refused_with_a_limit(library, tmp_path):
    text = (
        '(module (type $a (array i8)) (func (export "_start") (drop (array.new_default $a (i32.const 9)))))'
    )
    command = [sys.executable, "-m", "headrace", "wasm", str(assembled(tmp_path / "objects.wasm", text))]
    assert subprocess.run(command, timeout=60).returncode == 0
    bounded = [*command, f"--max-memory={PAGE}"]
    done = subprocess.run(bounded, timeout=60, capture_output=True, text=True)
    assert done.returncode == 1 and "gc feature" in done.stderr


def test_a_guests_bytes_are_divided_among_its_memories_and_tables():
    def of(*tables: str) -> bytes:
        return bytes(wasmtime.wat2wasm("(module (memory 1)" + "".join(f"(table {t})" for t in tables) + ")"))

    assert divided(1 << 20, of()) == Room(1 << 20)
    assert divided(1 << 20, of("5 5 funcref")) == Room((1 << 20) - 40, 1, 5)
    assert divided(1 << 20, of("5 funcref")) == Room((1 << 20) * 7 // 8, 1, (1 << 20) // 64)
    assert divided(1 << 20, of("5 5 funcref", "9 externref")) == Room((1 << 20) * 7 // 8, 2, (1 << 20) // 128)
    assert divided(1 << 20, of("2 2 (ref null func) (ref.null func)")) == Room((1 << 20) - 16, 1, 2)
    types = "".join("(type (func))" for _ in range(65))  # whose last one has a number of two bytes
    typed = bytes(wasmtime.wat2wasm(f"(module {types} (table 5 5 (ref null 64)))"))
    assert divided(1 << 20, typed) == Room((1 << 20) - 40, 1, 5)
    with pytest.raises(ValueError, match="ends within"):
        divided(1 << 20, of("5 5 funcref")[:-3])
    with pytest.raises(ValueError, match="1 tables of up to 131073 elements need 1048584 bytes of memory"):
        divided(1 << 20, of("131073 131073 funcref"))


def test_a_table_that_begins_beyond_the_limit_is_refused(host, tmp_path):
    guest = assembled(
        tmp_path / "grows.wasm",
        grows(memories=1, tables=1, pages=1, elements=1).replace("$t0 1 ", "$t0 100000 "),
    )
    code, printed = host(guest, "--max-memory", str(2 * PAGE))
    assert code == 1 and "emory" in printed
    alone = '(module (memory (export "memory") 0) (table 9000000 funcref) (func (export "_start")))'
    guest = assembled(tmp_path / "table.wasm", alone)
    assert host(guest)[0] == 0
    code, printed = host(guest, "--max-memory", str(2 * PAGE))
    assert code == 1 and "its 1 tables of up to 9000000 elements need 72000000 bytes of memory" in printed
