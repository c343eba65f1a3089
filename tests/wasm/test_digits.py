"""Digits that are drawn, told by guests in each language as examples/node/digits.mjs tells them."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import wasm_chat

pytest.importorskip("wasmtime", reason="wasmtime is not installed: make setup installs it")
pytest.importorskip("headrace", reason="the Python extension is not built: make build")
from guest_toolchains import in_javascript, in_python, in_rust, node_host, run

EXAMPLES = wasm_chat.ROOT / "examples/node"
SEVEN = "########\n.......#\n......#\n.....#\n....#\n....#"


@pytest.fixture(scope="module")
def digits(library, tmp_path_factory) -> Path:
    """The network, which Node trains."""
    if not (wasm_chat.ROOT / "node/native/headrace.node").exists():
        pytest.skip("Node trains the network, and its package is not built: make node")
    path = tmp_path_factory.mktemp("models") / "digits.hrg"
    subprocess.run(["node", EXAMPLES / "train_digits.mjs", path], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def told(digits, tmp_path_factory) -> dict[str, str]:
    """What Node's own example prints for each drawing."""

    def of(drawing: str) -> str:
        path = tmp_path_factory.mktemp("drawings") / "drawing.txt"
        path.write_text(drawing)
        command = ["node", EXAMPLES / "digits.mjs", path, digits]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout.removeprefix(drawing).lstrip("\n")

    three = (EXAMPLES / "digit.txt").read_text()
    found = {drawing: of(drawing) for drawing in (three, SEVEN)}
    assert found[three].startswith("3: ") and found[SEVEN].startswith("7: ")
    return found


def in_c(_: str, folder: Path) -> Path:
    try:
        return wasm_chat.compile_guest(folder / "digits_c.wasm", source="guest_digits.c")
    except wasm_chat.MissingError as missing:
        pytest.skip(str(missing))


LANGUAGES = {"C": in_c, "Rust": in_rust, "Python": in_python, "JavaScript": in_javascript}


@pytest.fixture(scope="module")
def guest_in(tmp_path_factory):
    """The guest in a language, which is made once."""
    folder = tmp_path_factory.mktemp("guests")
    return cache(lambda language: LANGUAGES[language]("digits", folder))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_guest_tells_what_headrace_tells(language, digits, told, guest_in):
    for drawing, expected in told.items():
        assert run(guest_in(language), drawing, models={"digits": digits}) == expected


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_guest_whose_host_has_no_network_says_so(language, library, guest_in):
    command = [sys.executable, "-m", "headrace", "wasm", guest_in(language), "--", SEVEN]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "no option names the guest's model 'digits': --alias digits=FILE" in done.stderr


@pytest.mark.parametrize("language", ["Python", "JavaScript"])
def test_a_component_runs_in_node_unmodified(language, digits, told, library, guest_in, tmp_path):
    node = node_host(tmp_path, library)
    for drawing, expected in told.items():
        assert node(guest_in(language), f"digits={digits}", drawing) == (0, expected)


def test_core_modules_run_on_nodes_own_wasi(digits, told, library, guest_in, tmp_path):
    try:
        addon = wasm_chat.compile_addon(tmp_path / "addon.node")
        program, _ = wasm_chat.find_node()
    except wasm_chat.MissingError as missing:
        pytest.skip(str(missing))
    host = [program, "--no-warnings", wasm_chat.SOURCES / "node/host.mjs", addon, library]
    for drawing, expected in told.items():
        command = [*host, f"digits={digits}", guest_in("C"), drawing]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stdout) == (0, expected), done.stderr
