"""Search by meaning with MiniLM, by guests in each language as headrace.load finds it."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import wasm_chat

pytest.importorskip("wasmtime", reason="wasmtime is not installed: make setup installs it")
pytest.importorskip("headrace", reason="the Python extension is not built: make build")
pytest.importorskip("safetensors", reason="the weights of MiniLM need the package safetensors")
minilm = pytest.importorskip("minilm.model", reason="tokenizers is not installed: make build")
from guest_toolchains import in_javascript, in_python, in_rust, node_host  # noqa: E402

LINES = ["The cat sleeps on the warm sofa.", "Prices have risen again this year.", "He mends a bicycle."]
QUESTIONS = ["everything is getting more expensive", "a tired animal, resting"]


def in_c(_: str, folder: Path) -> Path:
    try:
        return wasm_chat.compile_guest(folder / "search_c.wasm", source="guest_search.c")
    except wasm_chat.MissingError as missing:
        pytest.skip(str(missing))


LANGUAGES = {"C": in_c, "Rust": in_rust, "Python": in_python, "JavaScript": in_javascript}


@pytest.fixture(scope="module")
def network(library, tmp_path_factory) -> Path:
    from minilm.onnx_model import build_onnx

    path = tmp_path_factory.mktemp("models") / "minilm.onnx"
    path.write_bytes(build_onnx(minilm.model_file("model.safetensors")).SerializeToString())
    return path


@pytest.fixture(scope="module")
def expected() -> str:
    """What each guest prints: the two lines that are nearest to each question."""
    from minilm.onnx_model import LoadedMiniLM

    native, tokens = (
        LoadedMiniLM(threads=1),
        minilm.Tokenizer.from_file(str(minilm.model_file("tokenizer.json"))),
    )
    tokens.no_padding()

    @cache
    def vector(text: str) -> np.ndarray:
        ids = np.array([tokens.encode(text).ids])
        return native.run({"input_ids": ids, "attention_mask": np.ones_like(ids)})

    printed = []
    for question in QUESTIONS:
        likeness = {line: float(vector(question) @ vector(line)) for line in LINES}
        nearest = sorted(LINES, key=likeness.get, reverse=True)[:2]
        printed += [question, *(f"  {likeness[line]:.4f}  {line}" for line in nearest)]
    assert [printed[1].split("  ")[2], printed[4].split("  ")[2]] == [LINES[1], LINES[0]]
    return "\n".join(printed) + "\n"


@pytest.fixture(scope="module")
def guest_in(tmp_path_factory):
    """The guest in a language, which is made once."""
    folder = tmp_path_factory.mktemp("guests")
    return cache(lambda language: LANGUAGES[language]("search", folder))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_guest_finds_what_headrace_load_finds(language, network, expected, guest_in):
    folder = minilm.model_file("vocab.txt").parent
    command = [sys.executable, "-m", "headrace", "wasm", guest_in(language), f"--alias=minilm={network}"]
    done = subprocess.run(
        list(map(str, [*command, f"--dir={folder}::/minilm", "--", *QUESTIONS])),
        input="\n".join(LINES), capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert done.stdout == expected


@pytest.mark.parametrize("language", ["Python", "JavaScript"])
def test_a_component_finds_the_same_in_node(language, network, expected, library, guest_in, tmp_path):
    node, folders = node_host(tmp_path, library), {"/minilm": minilm.model_file("vocab.txt").parent}
    told = "\n".join(LINES)
    found = node(guest_in(language), f"minilm={network}", *QUESTIONS, folders=folders, told=told)
    assert found == (0, expected)


def test_a_component_in_javascript_says_that_it_has_no_words(network, library, guest_in, tmp_path):
    code, printed = node_host(tmp_path, library)(guest_in("JavaScript"), f"minilm={network}", *QUESTIONS)
    assert (code, printed) == (1, "the host gives no folder /minilm\n")
