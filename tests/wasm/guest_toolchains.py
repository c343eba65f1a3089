"""Guests of examples/wasi_nn as their toolchains make them, and the hosts that run them. What needs a
toolchain is skipped where it is not installed: COMPONENTIZE_PY names componentize-py's program, JCO_FOLDER a
folder with npm's @bytecodealliance/jco and componentize-js, RUSTC a Rust compiler with a target of WASI."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import wasm_chat

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIG = {"n_threads": 1, "n_ctx": 512, "log_level": "none"}
#: Names of WASI's first version, before Rust 1.78 and after.
RUST_TARGETS = ("wasm32-wasip1", "wasm32-wasi")


def run(
    guest: Path, *arguments: object, models: dict[str, Path], config: dict | None = None, code: int = 0
) -> str:
    """Under `headrace wasm`: standard output, or standard error of a guest that is to fail."""
    aliases = [f"--alias={name}={path}" for name, path in models.items()]
    options = ["--config", json.dumps({**CONFIG, **(config or {})})]
    command = [sys.executable, "-m", "headrace", "wasm", guest, *aliases, *options, "--", *arguments]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def need_from_npm(name: str) -> None:
    """Skips where the package @bytecodealliance/NAME is not in JCO_FOLDER."""
    package = f"@bytecodealliance/{name}"
    if not Path(os.environ.get("JCO_FOLDER", ""), "node_modules", package).exists():
        pytest.skip(f"{package} is not in $JCO_FOLDER: npm install --prefix $JCO_FOLDER {package}")


def component_of(module: Path, made: Path) -> Path:
    """The component of a core module that a C compiler made."""
    need_from_npm("jco")
    subprocess.run(["node", wasm_chat.SOURCES / "component_of.mjs", module, made], check=True)
    return made


def in_python(name: str, folder: Path) -> Path:
    """A component of examples/wasi_nn/python."""
    tool = os.environ.get("COMPONENTIZE_PY") or shutil.which("componentize-py")
    if not tool:
        pytest.skip("componentize-py is not installed: pip install componentize-py")
    made = folder / f"{name}.wasm"
    wit = ["-d", wasm_chat.SOURCES / "guest.wit", "-w", "guest"]
    command = [tool, "-q", *wit, "componentize", name, "-o", made]
    subprocess.run(command, cwd=wasm_chat.SOURCES / "python", check=True)
    return made


def in_javascript(name: str, folder: Path) -> Path:
    """A component of examples/wasi_nn/javascript."""
    need_from_npm("componentize-js")
    made, source = folder / f"{name}_js.wasm", wasm_chat.SOURCES / "javascript"
    subprocess.run(["node", source / "componentize.mjs", source / f"{name}.js", made], check=True)
    return made


def in_rust(name: str, folder: Path) -> Path:
    """A core module of examples/wasi_nn/rust."""
    compiler = os.environ.get("RUSTC") or shutil.which("rustc")
    made, source = folder / f"{name}_rs.wasm", wasm_chat.SOURCES / f"rust/{name}.rs"
    for target in RUST_TARGETS if compiler else ():
        options = ["--edition", "2021", "--target", target, "-O", "-D", "warnings", "-o", made, source]
        done = subprocess.run([compiler, *options], capture_output=True, text=True)
        if done.returncode == 0:
            return made
        if "can't find crate for `std`" not in done.stderr and "target" not in done.stderr:
            pytest.fail(done.stderr)
    pytest.skip("no Rust compiler has a target of WASI: rustup target add wasm32-wasip1")


def node_host(folder: Path, library: Path):
    """Runs a component with one model in Node, by jco: its exit status, and what it printed. folders: the
    guest's names, and the folders."""
    need_from_npm("jco")
    try:
        addon = wasm_chat.compile_addon(folder / "addon.node")
        program, _ = wasm_chat.find_node()
    except wasm_chat.MissingError as missing:
        pytest.skip(str(missing))
    version = subprocess.run(
        [program, "-p", "process.versions.node"], capture_output=True, text=True, check=True
    )
    # Python's interpreter has constant expressions that later versions take without being told.
    flags = ["--experimental-wasm-extended-const"] if int(version.stdout.split(".")[0]) < 21 else []
    host = wasm_chat.SOURCES / "node/component_host.mjs"

    def run_in_node(
        guest: Path,
        model: str,
        *arguments: str,
        folders: dict[str, Path] | None = None,
        told: str = "",
        options: Sequence[str] = (),
        config: dict | None = None,
    ) -> tuple[int, str]:
        given = [part for name, path in (folders or {}).items() for part in ("--dir", f"{path}::{name}")]
        command = [program, "--no-warnings", *flags, host, *given, *options, addon, library, model, guest]
        environment = {**os.environ, "HEADRACE_CONFIG": json.dumps({**CONFIG, **(config or {})})}
        done = subprocess.run(
            [*command, *arguments], input=told, capture_output=True, text=True, timeout=300, env=environment
        )
        return done.returncode, done.stdout + done.stderr

    return run_in_node
