"""docs/errors.md has every code, and what the sources make of each."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/errors.md").read_text(encoding="utf-8")


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def codes() -> list[str]:
    (declared,) = re.findall(r"enum class Code \{(.*?)\};", read("include/headrace/error.h"), re.DOTALL)
    return re.findall(r"^\s*(\w+),", declared, re.MULTILINE)


def table(heading: str) -> dict[str, list[str]]:
    """The rows of a section's table by their first cell."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if re.match(r"\| (`|0x)", line)]
    return {row[0].strip("`"): row[1:] for row in rows}


def column(title: str) -> dict[str, str]:
    """One of what a code becomes, without the marks of code."""
    header = re.search(r"^\| code \| Python.*$", PAGE, re.MULTILINE)[0].strip("| ").split(" | ")
    at = header.index(title) - 1
    return {code: cells[at].replace("`", "") for code, cells in table("What a code becomes").items()}


def switch(path: str, function: str, case: str) -> dict[str, str]:
    """What a function's switch returns for each code; "" is what it returns otherwise."""
    body = read(path).partition(function)[2]
    body = body[: re.search(r"^\}", body, re.MULTILINE).start()]
    results: dict[str, str] = {}
    waiting: list[str] = []
    for line in body.splitlines():
        waiting += [code or "" for code in re.findall(case + r"|default:", line)]
        if found := re.search(r"return (.*);", line):
            for code in waiting or [""]:
                results.setdefault(code, found[1])
            waiting = []
        elif "break;" in line:
            waiting = []
    return {code: results.get(code, results[""]) for code in codes()}


def cpp_switch(path: str, function: str) -> dict[str, str]:
    return switch(path, function, r"case Code::(\w+):")


def test_both_tables_have_every_code_in_the_headers_order():
    assert len(codes()) >= 13
    assert list(table("Codes")) == codes()
    assert list(column("HTTP")) and set(column("HTTP")) == set(codes())
    assert all(all(cells) for cells in table("Codes").values())


def test_pythons_exceptions_are_those_of_the_extension():
    made = cpp_switch("python/src/core.cpp", "python_exception(Code code) {")
    made["unsupported"] = made["unsupported"].replace("unsupported_error", "UnsupportedError")
    assert column("Python, graphs") == {code: made[code].removeprefix("PyExc_") for code in codes()}
    assert headrace_core().UnsupportedError.__mro__[1] is ValueError


def headrace_core():
    return pytest.importorskip("headrace._core", reason="the Python extension is not built: make build")


def test_nodes_exceptions_are_those_of_its_library():
    made = switch("node/lib/webnn/interfaces.js", "export function fromBackend(", r"case '(\w+)':")
    kinds = {
        code: "InvalidStateError" if "invalidState(" in text
        else "TypeError" if "TypeError" in text
        else re.search(r"'(\w+)'", text)[1] if "'" in text
        else "OperationError"
        for code, text in made.items()
    }  # fmt: skip
    assert "otherwise = 'OperationError'" in read("node/lib/webnn/interfaces.js")
    assert column("Node, `headrace/webnn`") == kinds


def test_statuses_of_http_are_the_servers():
    path = "src/doors/serve/request/errors.cpp"
    made = cpp_switch(path, "ApiError without_field(const Exception& error) {")
    overloaded = re.search(r"ApiError error\((\d+), (\"\w+\"), what\)", read(path))
    forms = {
        code: re.search(r"\{(\d+), \"(\w+)\"", text).groups()
        if "overloaded(" not in text
        else (overloaded[1], overloaded[2].strip('"'))
        for code, text in made.items()
    }
    assert column("HTTP") == {code: " ".join(forms[code]) for code in codes()}


def numbers(library: str, header: str) -> dict[str, str]:
    """The number of each code in a WASI-NN library."""
    door = read("src/doors/wasi_nn/door.h")
    chosen = dict(re.findall(r"\.(\w+) = (\w+)", read(f"src/doors/wasi_nn/{library}")))
    named = dict(re.findall(r"^\s*(\w+) = (\d+)", read(f"include/headrace/{header}"), re.MULTILINE))
    fixed = dict(re.findall(r"\b(\w+) = (\d+)", door))
    made = cpp_switch("src/doors/wasi_nn/door.cpp", "int number_of(Code code, const ErrorCodes& codes) {")
    found = {}
    for code, text in made.items():
        name = re.split(r"\.|::", text)[-1]
        found[code] = named[chosen[name]] if name in chosen else fixed[name]
    return found


def test_numbers_of_wasi_nn_are_those_of_the_libraries():
    assert column("`libwasi_nn_backend`") == numbers("backend_abi.cpp", "wasi_nn_backend.h")
    assert column("`libwasi_nn_llamacpp`") == numbers("llamacpp_abi.cpp", "wasi_nn_llamacpp.h")


def test_errors_of_executorch_are_the_delegates():
    path = "src/doors/executorch/delegate.cpp"
    for title, function in (("ExecuTorch, load", "error_at_load"), ("ExecuTorch, run", "error_of_run")):
        made = cpp_switch(path, f"{function}(const Exception& e) {{")
        assert column(title) == {code: text.rpartition("::")[2] for code, text in made.items()}


def test_executorchs_numbers_are_those_of_its_header():
    if not find_spec("executorch"):
        pytest.skip("ExecuTorch is not installed: make executorch installs it")
    (package,) = find_spec("executorch").submodule_search_locations
    header = (Path(package) / "include/executorch/runtime/core/error.h").read_text(encoding="utf-8")
    names = {
        int(number, 16): name for name, number in re.findall(r"^\s*(\w+) = (0x\w+)", header, re.MULTILINE)
    }
    told = {int(number, 16): cells[0].strip("`") for number, cells in table("ExecuTorch's numbers").items()}
    assert told == {number: names[number] for number in told}
    ours = {*column("ExecuTorch, load").values(), *column("ExecuTorch, run").values()}
    assert ours <= set(told.values())
