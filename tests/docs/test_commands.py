"""What pages show of the command line, and no test runs, has flags that the programs know, and files of
settings that the server takes."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md")))
# A call in a line of a block or in backquotes, until a comment, a pipe or what a guest gets.
CALL = re.compile(r"(?:^|[`$ ])headrace (?P<command>[a-z][a-z-]+)(?P<rest>[^`|#\n]*)", re.MULTILINE)
FLAG = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")
# Commands that take llama.cpp's flags besides, which their help leaves to that of serve.
AS_SERVE = ("chat", "embed", "bench-llm")


@cache
def sections() -> dict[str, str]:
    """What docs/command-line.md, which a test compares with the program, has of each command."""
    text = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    return {
        found[1]: found[2]
        for found in re.finditer(
            r"^### headrace ([a-z-]+)\n(.*?)(?=^### |\Z)", text, re.MULTILINE | re.DOTALL
        )
    }


def known(command: str) -> set[str]:
    texts = [sections()[command]]
    if command in AS_SERVE:
        texts += [sections()["serve"], (ROOT / "docs/llama-server-flags.md").read_text(encoding="utf-8")]
    if command == "serve":
        texts.append((ROOT / "docs/llama-server-flags.md").read_text(encoding="utf-8"))
    return {flag for text in texts for flag in FLAG.findall(text)} | {"--help"}


def calls(text: str) -> list[tuple[str, str]]:
    """Commands and what follows them, with lines that a backslash continues, without what quotes hold."""
    text = re.sub(r"\\\n\s*", " ", text)
    found = [(call["command"], call["rest"]) for call in CALL.finditer(text)]
    return [
        (command, re.sub(r"'[^']*'|\"[^\"]*\"", "''", rest.partition(" -- ")[0])) for command, rest in found
    ]


def unknown(text: str) -> list[str]:
    return [
        f"headrace {command}: {flag}"
        for command, rest in calls(text)
        if command in sections()
        for flag in FLAG.findall(rest)
        if flag not in known(command)
    ]


def test_the_flags_that_pages_show_are_the_programs():
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
    assert sum(len(calls(text)) for text in texts.values()) > 200
    assert {page: found for page, text in texts.items() if (found := unknown(text))} == {}


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("`headrace run model.onnx --wieghts q8_0`", "headrace run: --wieghts"),
        ("$ headrace bench model.onnx \\\n    --round 3", "headrace bench: --round"),
        ("headrace chat model.gguf --no-such 1   # a comment", "headrace chat: --no-such"),
    ],
)
def test_a_flag_that_there_is_not_is_named(text: str, complaint: str):
    assert unknown(text) == [complaint]


def test_what_a_guest_gets_and_comments_are_no_flags_of_the_program():
    assert unknown("headrace wasm guest.wasm -- --anything  # --else\n`headrace chat -p '--this'`") == []


def test_the_lowering_that_contributing_shows_is_one_of_ours():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    sources = (ROOT / "python/executorch_ggml/ops").glob("*.py")
    assert any(shown in source.read_text(encoding="utf-8") for source in sources)
