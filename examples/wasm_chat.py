"""A WebAssembly guest in C chats with a language model, under wasmtime, Node and WasmEdge.

    python examples/wasm_chat.py [QUESTION ...]

Runs examples/wasi_nn/guest_chat.wasm with `headrace wasm`; Zig's C compiler makes it of guest_chat.c. Then on
Node's own WASI with a small addon, and in WasmEdge with a plugin. What is not installed is left out with the
reason.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "examples/wasi_nn"
GUEST = SOURCES / "guest_chat.wasm"
LIBRARY = ROOT / "build/lib/libwasi_nn_llamacpp.so"
MODEL = Path(os.environ.get("HEADRACE_CHAT_MODEL") or ROOT / "models/tiny-chat-q8_0.gguf")
DEFAULT_QUESTIONS = ("What is 2+3?", "What is the capital of France?", "Tell me a story.")
# More threads than free cores wait for each other, and the tiny model needs but one.
CONFIG = {"n_threads": 1, "n_ctx": 512, "temperature": 0, "n_predict": 200}
OLDEST_NODE = 18
WASMEDGE = ROOT / "build/wasmedge"
WASMEDGE_LIBRARIES = WASMEDGE / "usr/lib/x86_64-linux-gnu"


class MissingError(Exception):
    """What a part of this example needs is not installed; says what."""


def compile_guest(path: Path, *flags: str, source: str = "guest_chat.c") -> Path:
    """A guest in C as WebAssembly. flags: of the compiler."""
    if not importlib.util.find_spec("ziglang"):
        raise MissingError("ziglang is not installed: make setup installs it")
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi"]
    subprocess.run(
        [*zig, "-Os", "-Wall", "-Wextra", "-Werror", *flags, "-o", path, SOURCES / source], check=True
    )
    return path


def find_node() -> tuple[str, Path]:
    """The program, and the folder of the headers that belong to it."""
    node = shutil.which("node")
    if not node:
        raise MissingError("Node is not installed")
    facts = subprocess.run(
        [node, "-p", "process.versions.node + ' ' + process.execPath"],
        capture_output=True,
        text=True,
        check=True,
    )
    version, program = facts.stdout.strip().split(" ", 1)
    if int(version.split(".")[0]) < OLDEST_NODE:
        raise MissingError(f"Node is {version}, and its WASI needs {OLDEST_NODE} or newer")
    headers = Path(program).parent.parent / "include/node"
    if not (headers / "node_api.h").exists():
        raise MissingError(f"Node's headers are not in {headers}; on Debian, libnode-dev has them")
    return node, headers


def compile_addon(path: Path) -> Path:
    """node/addon.c as a module of Node."""
    _, headers = find_node()
    return compile_shared(SOURCES / "node/addon.c", headers, path)


def compile_plugin(path: Path) -> Path:
    """wasmedge_plugin.c as a plugin of WasmEdge."""
    if not WASMEDGE.exists():
        raise MissingError("WasmEdge is not in build/wasmedge: tools/fetch_wasmedge.py unpacks it there")
    return compile_shared(SOURCES / "wasmedge_plugin.c", WASMEDGE / "usr/include", path)


def compile_shared(source: Path, headers: Path, path: Path) -> Path:
    """Compiles a host's C source, unless the library is there and newer."""
    newest = max(file.stat().st_mtime for file in (source, SOURCES / "guest_calls.h"))
    if path.exists() and path.stat().st_mtime > newest:
        return path
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise MissingError("a C compiler is not installed")
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"]
    includes = [f"-I{ROOT / 'include'}", "-isystem", headers]
    subprocess.run([compiler, *flags, *includes, source, "-o", path, "-ldl"], check=True)
    return path


def wasmtime_command(guest: Path, arguments: list[str]) -> list[str | Path]:
    if not importlib.util.find_spec("wasmtime"):
        raise MissingError("wasmtime is not installed: make setup installs it")
    return [sys.executable, "-m", "headrace", "wasm", guest, "--model", MODEL, "--", *arguments]


def node_command(guest: Path, arguments: list[str], addon: Path) -> list[str | Path]:
    node, _ = find_node()
    host = [node, "--no-warnings", SOURCES / "node/host.mjs", compile_addon(addon), LIBRARY, MODEL]
    return [*host, guest, *arguments]


def wasmedge_loader() -> list[str | Path]:
    """Debian's newest WasmEdge wants a newer C library than this system's: it runs with its own."""
    search = f"{WASMEDGE_LIBRARIES}:/usr/lib/x86_64-linux-gnu"
    return [WASMEDGE_LIBRARIES / "ld-linux-x86-64.so.2", "--library-path", search]


def wasmedge_command(guest: Path, arguments: list[str], plugin: Path, config: dict) -> list[str | Path]:
    compile_plugin(plugin)
    environment = {
        "HEADRACE_CONFIG": json.dumps({**config, "model_aliases": {"default": str(MODEL)}}),
        "HEADRACE_MODEL_ROOT": plugin.parent,
        "HEADRACE_WASI_NN_LIBRARY": LIBRARY,
        "WASMEDGE_PLUGIN_PATH": plugin.parent,
    }
    variables = [f"{name}={value}" for name, value in environment.items()]
    return ["env", *variables, *wasmedge_loader(), WASMEDGE / "usr/bin/wasmedge", guest, *arguments]


def main() -> None:
    questions = sys.argv[1:] or list(DEFAULT_QUESTIONS)
    for path in (LIBRARY, MODEL):
        if not path.exists():
            print(f"\nno WebAssembly guest: {path} does not exist")
            return
    folder = ROOT / "build/wasm"
    hosts = {
        "wasmtime": lambda guest: wasmtime_command(guest, questions),
        "Node": lambda guest: node_command(guest, ["--whole", questions[0]], folder / "addon.node"),
        "WasmEdge": lambda guest: wasmedge_command(
            guest, questions[:1], folder / "plugins/libwasmedgePluginHeadrace.so", CONFIG
        ),
    }
    environment = {"HEADRACE_LOG": "warn", **os.environ, "HEADRACE_CONFIG": json.dumps(CONFIG)}
    for name, command in hosts.items():
        try:
            arguments = command(GUEST)
            size = GUEST.stat().st_size // 1000
            print(f"\na WebAssembly guest of {size} KB chats under {name}", flush=True)
            subprocess.run(arguments, check=True, env=environment)
        except MissingError as missing:
            print(f"\nleft out under {name}: {missing}")
        except subprocess.CalledProcessError as error:
            sys.exit(f"error: the guest failed under {name} with exit status {error.returncode}")


if __name__ == "__main__":
    main()
