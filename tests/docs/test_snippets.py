"""Python programs on the pages run and print what the pages say.

A page's blocks are one program; a block of output after one is what it prints.
"""

from __future__ import annotations

import contextlib
import io
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/webnn.md")
BLOCKS = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
MODEL = """<ir_version: 9, opset_import: ["": 17]> example (float[batch, 2] x) => (float[batch, 3] y)
    <float[2, 3] w = {1, 0, -1, 0, 1, 2}> { h = MatMul(x, w) y = Relu(h) }"""


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCKS.findall((ROOT / page).read_text(encoding="utf-8"))


def test_the_pages_have_programs_with_their_output():
    for page in PAGES:
        assert sum(bool(output) for _, output in blocks(page)) >= 3, page


@pytest.mark.parametrize("page", PAGES)
def test_programs_print_what_the_page_says(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    names = {"__name__": "__main__"}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").symlink_to(ROOT / "models")
    for program, output in blocks(page):
        if "LanguageModel" in program and not find_spec("headrace._llm"):
            pytest.skip("language models are not built: llama.cpp is not set up")
        if "model.onnx" in program:
            parser = pytest.importorskip("onnx.parser", reason="writing model.onnx needs the package onnx")
            (tmp_path / "model.onnx").write_bytes(parser.parse_model(MODEL).SerializeToString())
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(program, page, "exec"), names)
        if output:
            assert printed.getvalue().strip() == output.strip()
