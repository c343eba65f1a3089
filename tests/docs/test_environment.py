"""docs/environment.md names every variable of the environment that the sources read, and no other."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/environment.md"
FOLDERS = ("src", "python", "node/lib", "node/src", "tools", "cmake", "examples")
SUFFIXES = {".c", ".cpp", ".h", ".inc", ".js", ".mjs", ".py", ".cmake"}
READ = (
    re.compile(r"\b(?:secure_)?getenv\(\s*\"(\w+)\""),
    re.compile(r"\benvironment\(\s*\"(\w+)\""),
    re.compile(r"\bchosen_cache_folder\([^;]*?\"([A-Z_]+)\""),
    re.compile(r"\bfind_backend_library\([^;]*?\"([A-Z_]+)\""),
    re.compile(r"\benviron(?:\.get\(|\.setdefault\(|\.pop\(|\[)\s*\"(\w+)\""),
    re.compile(r"\"(\w+)\" (?:not )?in os\.environ\b"),
    re.compile(r"\bprocess\.env\.(\w+)"),
    re.compile(r"\$ENV\{(\w+)\}"),
)
SERVER_OPTIONS = ROOT / "src/doors/serve/options/flags.cpp"
# What cannot be found by its name: a function whose callers are found, options of the server (above), and an
# environment that is passed on.
BY_NAME = re.compile(r"\bgetenv\((?!\s*\")\s*[^)\s]")
WHOLE = re.compile(r"\bextern char\*\* environ\b")


@cache
def sources() -> dict[str, str]:
    """The text of every source by its path."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and not {"node_modules", "dist"} & set(path.parts):
                found[str(path.relative_to(ROOT))] = path.read_text(encoding="utf-8", errors="replace")
    assert len(found) > 500
    return found


def read_by_sources() -> dict[str, str]:
    """Each variable with a file that reads it."""
    found: dict[str, str] = {}
    for path, text in sources().items():
        if any(word in text for word in ("env", "chosen_cache_folder", "find_backend_library", "ENV{")):
            for form in READ:
                found |= dict.fromkeys(form.findall(text), path)
    return found


def read_by_make() -> set[str]:
    """Variables that the Makefile does not set itself."""
    text = (ROOT / "Makefile").read_text()
    used = set(re.findall(r"\$\((?:if )?([A-Z_]+)\b", text))
    return used - set(re.findall(r"^([A-Z_]+) :?=", text, re.MULTILINE)) - {"MAKEFILE_LIST", "CURDIR"}


def on_the_page() -> set[str]:
    first_cells = re.findall(r"^\| (`.*?) \|", PAGE.read_text(), re.MULTILINE)
    return {name for cell in first_cells for name in re.findall(r"`([A-Z_]+)`", cell)}


def test_every_variable_that_is_read_is_on_the_page():
    read = read_by_sources()
    assert {"HEADRACE_TUNING", "HEADRACE_LOG", "HEADRACE_PROGRAM", "GGML_DIR", "HOME"} <= set(read)
    missing = {name: file for name, file in read.items() if name not in on_the_page()}
    assert missing == {}, "describe these in docs/environment.md"
    assert read_by_make() - on_the_page() == set()


def test_every_variable_on_the_page_is_read():
    names = set(read_by_sources()) | read_by_make() | set(server_variables())
    assert on_the_page() - names == set()


def server_variables() -> list[str]:
    return re.findall(r"\"(LLAMA_[A-Z_]+)\"", SERVER_OPTIONS.read_text())


def test_the_servers_variables_are_on_the_page_of_the_command_line():
    page = (ROOT / "docs/command-line.md").read_text()
    described = [name for name in server_variables() if f"({name})" in page]
    assert len(described) > 80


def test_names_that_cannot_be_found_here_are_read_in_known_places_only():
    assert {path for path, text in sources().items() if BY_NAME.search(text)} == {
        "src/base/cache_folder.cpp",
        "src/loading/library_search.cpp",
    }
    assert {path for path, text in sources().items() if WHOLE.search(text)} == {
        "src/cli/peer.cpp",
        "src/doors/serve/program.cpp",
    }
