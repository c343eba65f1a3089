"""Components of component_guest.py in Node, by jco, as component_runner.mjs has them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import wasm_chat
from component_guest import FUNCTIONS, MOST_BYTES
from guest_toolchains import need_from_npm


def in_node(
    library: Path, config: dict, binary: bytes, folder: Path, flags: Sequence[str] = ()
) -> Callable[..., list]:
    """Runs programs on a component: what each gave, and behind it what `loop` measured. flags: of Node."""
    need_from_npm("jco")
    try:
        addon = wasm_chat.compile_addon(folder / "addon.node")
        program, _ = wasm_chat.find_node()
    except wasm_chat.MissingError as missing:
        pytest.skip(str(missing))
    component, wanted = folder / "component.wasm", folder / "programs.json"
    component.write_bytes(binary)
    runner = Path(__file__).parent / "component_runner.mjs"
    functions = {name: function.gives for name, function in FUNCTIONS.items()}

    def run(programs: list, loop: dict | None = None) -> list:
        given = {"functions": functions, "programs": programs, "mostBytes": MOST_BYTES, "loop": loop}
        wanted.write_text(json.dumps(given))
        options = ["--no-warnings", *flags, runner, addon, library, json.dumps(config), component, wanted]
        command = [program, *map(str, options)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run
