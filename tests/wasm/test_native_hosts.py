"""The hosts in C, of Node and WasmEdge: the same guest, and pointers that are wrong."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import wasm_chat

wasmtime = pytest.importorskip("wasmtime", reason="wasmtime, which assembles guests, is not installed")

CONFIG = {"n_threads": 1, "n_ctx": 512, "temperature": 0, "log_level": "none"}
PAGE = 65536
OUTSIDE = (PAGE, PAGE - 1, PAGE + 1, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1)
TENSOR, WORD, OUTPUT = 256, 128, 1024
# Arguments that are right as far as pointers go, and which of them are pointers or sizes.
CALLS = {
    "load_by_name": ([0, 7, WORD], [0, 1, 2]),
    "load_by_name_with_config": ([0, 7, 64, 2, WORD], [0, 1, 2, 3, 4]),
    "init_execution_context": ([0, WORD], [1]),
    "set_input": ([1, 0, TENSOR], [2]),
    "get_output": ([1, 0, OUTPUT, 256, WORD], [2, 3, 4]),
    "get_output_single": ([1, 0, OUTPUT, 256, WORD], [2, 3, 4]),
}


@pytest.fixture(scope="module", params=["node", "wasmedge"])
def host(request, library, model, tmp_path_factory):
    """Runs a guest and returns its exit status and output."""
    folder = tmp_path_factory.mktemp(request.param)
    try:
        if request.param == "node":
            module = wasm_chat.compile_addon(folder / "addon.node")
        else:
            module = wasm_chat.compile_plugin(folder / "libwasmedgePluginHeadrace.so")
    except wasm_chat.MissingError as missing:
        pytest.skip(str(missing))

    def run(guest, *arguments):
        if request.param == "node":
            command = wasm_chat.node_command(guest, [*arguments], module)
        else:
            command = wasm_chat.wasmedge_command(guest, [*arguments], module, CONFIG)
        environment = {**os.environ, "HEADRACE_CONFIG": json.dumps(CONFIG)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        return done.returncode, done.stdout + done.stderr

    return run


def bad_calls():
    for name, (arguments, places) in CALLS.items():
        for place in places:
            # A size of PAGE - 1 is inside where the buffer starts at 0.
            for bad in OUTSIDE[2:] if arguments[place - 1] == 0 else OUTSIDE:
                yield name, [*arguments[:place], bad, *arguments[place + 1 :]]


def hostile_guest(tensor: list[int]) -> str:
    """A program whose exit status is the number of calls that did not get invalid_argument."""
    calls = [*bad_calls(), ("set_input", [1, 0, TENSOR])]
    imports = {name: len(arguments) for name, arguments in calls}
    words = "".join(f"\\{byte:02x}" for word in tensor for byte in word.to_bytes(4, "little"))
    lines = ['(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))']
    for name, count in imports.items():
        lines.append(
            f'(import "wasi_ephemeral_nn" "{name}" (func ${name} (param {"i32 " * count}) (result i32)))'
        )
    lines.append(f'(memory (export "memory") 1) (data (i32.const {TENSOR}) "{words}")')
    lines.append('(func (export "_start") (local $wrong i32)')
    for name, arguments in calls:
        numbers = " ".join(f"(i32.const {a - 2**32 if a >= 2**31 else a})" for a in arguments)
        check = f"(i32.ne (call ${name} {numbers}) (i32.const 1))"
        lines.append(f"(local.set $wrong (i32.add (local.get $wrong) {check}))")
    return "\n".join([*lines, "(call $exit (local.get $wrong))))"])


def wasmedge_guests(program: Path) -> Path:
    """wasmedge_guests.c, compiled."""
    source = Path(__file__).with_name("wasmedge_guests.c")
    includes = ["-isystem", wasm_chat.WASMEDGE / "usr/include"]
    links = [f"-L{wasm_chat.WASMEDGE_LIBRARIES}", "-lwasmedge", "-Wl,--allow-shlib-undefined"]
    command = ["cc", "-Wall", "-Wextra", "-Werror", *includes, source, "-o", program, *links]
    subprocess.run(command, check=True)
    return program


def test_a_guest_chats(host, guest):
    code, printed = host(guest, "--metadata", "What is 2+3?", "What is the capital of France?")
    assert code == 0, printed
    assert printed.startswith("> What is 2+3?\n2+3=5\n> What is the capital of France?\n")
    assert '"output_tokens":' in printed


def test_a_guest_gets_no_file_but_the_model(host, guest, model):
    code, printed = host(guest, "--model", str(model), "Hello")
    assert code == 1
    assert "load_by_name_with_config failed with 8" in printed


@pytest.mark.parametrize(
    "tensor",
    [
        [PAGE, 1, 3, 0, 4],
        [0, 2**30, 3, 0, 4],
        [0, 0, 3, 2**32 - 1, 2],
        [0, 0, 3, 8, 2**32 - 1],
    ],
)
def test_pointers_outside_the_memory_get_an_error(host, tmp_path, tensor):
    guest = tmp_path / "hostile.wasm"
    guest.write_bytes(wasmtime.wat2wasm(hostile_guest(tensor)))
    assert host(guest) == (0, "")


def test_guests_of_one_process_of_node_have_handles_and_limits_of_their_own(library, tmp_path):
    component_fuzz = pytest.importorskip(
        "component_fuzz", reason="onnx is not installed: make setup installs it"
    )
    try:
        addon = wasm_chat.compile_addon(tmp_path / "addon.node")
        program, _ = wasm_chat.find_node()
    except wasm_chat.MissingError as missing:
        pytest.skip(str(missing))
    model = tmp_path / "sums.onnx"
    model.write_bytes(component_fuzz.sums())
    script = wasm_chat.ROOT / "tests/wasm/node_guests.mjs"
    command = [program, "--no-warnings", "--expose-gc", script, addon, library, model]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["loaded"] == told["secondLoads"] == [0, 0], "of one numbering each"
    assert told["opened"] == told["secondGoesOn"] == [0, 1]
    assert told["handlesOfAnother"] == [8, 8, 8]
    assert told["whyNot"] == "there is no graph 0; load one first"
    assert told["ownLimit"] == 4
    assert told["closed"] == "(memory, i32, ...) of a guest that is not closed"
    usage, no_config, missing, refused = told["wrongCalls"]
    assert usage == no_config == "open takes a library's path and a configuration as JSON"
    assert "/no/such.so" in missing and "the configuration was refused" in refused
    assert told["components"] == ["object", "object"]
    assert "max_graphs" in told["componentsOwnLimit"]


def test_virtual_machines_of_one_process_of_wasmedge_have_handles_and_limits_of_their_own(library, tmp_path):
    sums = pytest.importorskip("component_fuzz", reason="onnx is not installed: make setup installs it").sums
    from module_guest import wat

    try:
        plugin = wasm_chat.compile_plugin(tmp_path / "libwasmedgePluginHeadrace.so")
    except wasm_chat.MissingError as missing:
        pytest.skip(str(missing))
    model = tmp_path / "sums.onnx"
    model.write_bytes(sums())
    guest = tmp_path / "guest.wasm"
    word = '(func (export "word") (param i32) (result i32) (i32.load (local.get 0)))'
    guest.write_bytes(wasmtime.wat2wasm(wat(pages=1).rstrip(")") + f'(data (i32.const 0) "m") {word})'))
    config = {**CONFIG, "model_aliases": {"m": str(model)}, "max_graphs": 1, "max_contexts": 1}
    environment = {
        **os.environ,
        "HEADRACE_CONFIG": json.dumps(config),
        "HEADRACE_WASI_NN_LIBRARY": str(library),
    }
    command = [*wasm_chat.wasmedge_loader(), wasmedge_guests(tmp_path / "guests"), plugin, guest]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "loaded": [0, 0],
        "opened": [0, 1],
        "handlesOfAnother": [8, 8, 8],
        "ownLimit": 4,
        "secondLoads": [0, 0],
        "secondGoesOn": [0, 1],
    }


def test_the_hosts_of_node_take_several_models_beside_those_that_are_configured(library, model, tmp_path):
    try:
        addon = wasm_chat.compile_addon(tmp_path / "addon.node")
        program, _ = wasm_chat.find_node()
    except wasm_chat.MissingError as missing:
        pytest.skip(str(missing))
    configured = {**CONFIG, "model_aliases": {"configured": str(model)}}
    environment = {**os.environ, "HEADRACE_CONFIG": json.dumps(configured)}
    host = [program, "--no-warnings", wasm_chat.SOURCES / "node/host.mjs", "--alias", f"second={model}"]
    for name in ("first", "second", "configured"):
        command = [*host, addon, library, f"first={model}", wasm_chat.GUEST, "--model", name, "What is 2+3?"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        assert (done.returncode, done.stdout) == (0, "> What is 2+3?\n2+3=5\n"), done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--max-time", "soon"], "--max-time takes a number from 0.001, not 'soon'"),
        (["--max-memory", "0"], "--max-memory takes a number from 1, not '0'"),
        (["--alias", "tiny"], "a model is NAME=MODEL, not 'tiny'"),
        (["--speed", "9"], "there is no option --speed"),
        (["addon", "library", "model"], "GUEST.wasm is missing"),
    ],
)
@pytest.mark.parametrize("host", ["host.mjs", "component_host.mjs"])
def test_wrong_options_of_nodes_hosts_are_refused_with_what_is_wanted(library, host, arguments, told):
    try:
        program, _ = wasm_chat.find_node()
    except wasm_chat.MissingError as missing:
        pytest.skip(str(missing))
    if host == "component_host.mjs" and "model" in arguments:
        arguments = ["addon", "library", "name=model"]
    command = [program, "--no-warnings", wasm_chat.SOURCES / "node" / host, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"{host}: {told}\nusage: node {host}" in done.stderr


def test_the_node_host_without_arguments_says_how_it_is_called(library):
    try:
        program, _ = wasm_chat.find_node()
    except wasm_chat.MissingError as missing:
        pytest.skip(str(missing))
    script = wasm_chat.SOURCES / "node/host.mjs"
    done = subprocess.run([program, "--no-warnings", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("host.mjs: GUEST.wasm is missing\nusage: node host.mjs")
