"""Every number of docs/errors.md that a core module can get, through both hosts."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import pytest
import wasm_chat

wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is not installed: make setup installs it")
pytest.importorskip("onnx", reason="onnx is not installed: make setup installs it")
pytest.importorskip("headrace", reason="the Python extension is not built: make build")
import component_fuzz  # noqa: E402
from headrace.wasm import WasiNn  # noqa: E402
from loop_model import counting  # noqa: E402
from module_guest import Guest, wat  # noqa: E402

PAGES = 4
GRAPH, CONTEXT, OUT, NAME, TENSOR, SHAPE, PART, DATA = 0, 4, 8, 64, 512, 576, 640, 65536
ROOM = 1024
OPEN = ["init_execution_context", {"at": GRAPH}, CONTEXT]


def put(at: int, content: bytes) -> list:
    return ["put", at, content.hex()]


def loading(name: bytes, config: bytes = b"{}") -> list:
    named = ["load_by_name_with_config", NAME, len(name), NAME + 128, len(config), GRAPH]
    return [put(NAME, name), put(NAME + 128, config), named]


def giving(index: int, data: bytes, kind: int = 3, shape: tuple[int, ...] = (1,)) -> list:
    words = struct.pack("<5I", SHAPE, len(shape), kind, DATA, len(data))
    return [
        put(SHAPE, struct.pack(f"<{len(shape)}I", *shape)),
        put(DATA, data),
        put(TENSOR, words),
        ["set_input", {"at": CONTEXT}, index, TENSOR],
    ]


def bytes_loading(model: bytes, encoding: int) -> list:
    part = struct.pack("<2I", DATA, len(model))
    return [put(DATA, model), put(PART, part), ["load", PART, 1, encoding, 0, GRAPH]]


COMPUTE, PIECE = ["compute", {"at": CONTEXT}], ["compute_single", {"at": CONTEXT}]
CHAT = [*loading(b"chat"), OPEN]
FULL = b'{"history": true, "drop_oldest": false, "n_ctx": 256}'
QUESTION = giving(0, b"What is 2+3?")
#: Of each number the calls of which the last one gives it.
PROGRAMS = {
    0: [*CHAT, *QUESTION, COMPUTE],
    1: [*CHAT, *giving(7, b"x")],
    2: bytes_loading(b"x", 0),
    3: [*loading(b"sums"), OPEN, *giving(0, b"\0" * 4096, 1, (512, 2))],
    4: [*loading(b"sums"), *loading(b"sums"), *loading(b"sums")],
    5: [*loading(b"counts"), OPEN, *giving(0, struct.pack("<q", 10**12), 5, ()), COMPUTE],
    6: bytes_loading(component_fuzz.sums().replace(b"Mul", b"Nul"), 1),
    7: [*CHAT, *QUESTION, COMPUTE, ["get_output", {"at": CONTEXT}, 0, DATA, 1, OUT]],
    8: [["compute", 99]],
    100: [*CHAT, *giving(1, b'{"n_predict": 1}'), *QUESTION, PIECE, PIECE],
    101: [*loading(b"chat", FULL), OPEN, *[*QUESTION, COMPUTE] * 40],
    102: [*CHAT, *giving(0, b" word" * 4000), COMPUTE],
    103: loading(b"missing"),
}


@pytest.fixture(scope="module")
def config(model, tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("models")
    (folder / "sums.onnx").write_bytes(component_fuzz.sums())
    counting(folder / "counts.onnx")
    models = {"sums": folder / "sums.onnx", "counts": folder / "counts.onnx", "chat": model}
    limits = {"max_graphs": 2, "max_graph_bytes": ROOM, "max_compute_ms": 2000, "n_ctx": 512}
    return {**component_fuzz.configuration(models, folder), **limits}


def under_wasmtime(library: Path, config: dict, program: list) -> list[int]:
    nn = WasiNn(library, config)
    try:
        guest, codes = Guest(nn, wat(pages=PAGES)), []
        for name, *numbers in program:
            if name == "put":
                guest.put(numbers[0], bytes.fromhex(numbers[1]))
            else:
                given = (guest.word(n["at"]) if isinstance(n, dict) else n for n in numbers)
                codes.append(guest.call(name, *given))
        return codes
    finally:
        nn.close()


def in_node(library: Path, config: dict, program: list, folder: Path) -> list[int]:
    try:
        addon, (node, _) = wasm_chat.compile_addon(folder / "addon.node"), wasm_chat.find_node()
    except wasm_chat.MissingError as missing:
        pytest.skip(str(missing))
    script = wasm_chat.ROOT / "tests/wasm/node_calls.mjs"
    command = [node, "--no-warnings", script, addon, library, json.dumps(config), str(PAGES)]
    done = subprocess.run(command, input=json.dumps(program), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("host", ["wasmtime", "node"])
@pytest.mark.parametrize("code", PROGRAMS)
def test_a_guest_gets_every_number_of_an_error(library, config, tmp_path_factory, host, code):
    if code == 5:  # the model begins, and does not end
        config = {**config, "max_graph_bytes": 20_000_000}
    if host == "wasmtime":
        codes = under_wasmtime(library, config, PROGRAMS[code])
    else:
        codes = in_node(library, config, PROGRAMS[code], tmp_path_factory.getbasetemp())
    if code == 101:  # after some turns
        codes = codes[: codes.index(code) + 1] if code in codes else codes
    assert codes[-1] == code, codes
    assert not any(codes[:-1]), codes
