"""The documentation's site: its own pages, and that mkdocs builds all of it without a warning."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import api_pages
import pytest
from source_pages import SourcePages, spaced

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "build/mkdocs"
STUBS = ROOT / "python/headrace/_core.pyi"


@pytest.fixture
def repository(tmp_path: Path) -> SourcePages:
    (tmp_path / "docs/start").mkdir(parents=True)
    (tmp_path / "src").mkdir()
    (tmp_path / "README.md").write_text("[page](docs/onnx.md) [notes](NOTES.md)")
    (tmp_path / "NOTES.md").write_text("[main](src/main.cpp) [docs](docs/onnx.md#part)")
    (tmp_path / "docs/onnx.md").write_text("[sources](../src) `[no](../src/link.md)`")
    (tmp_path / "docs/start/onnx.md").write_text("[up](../onnx.md) [out](https://example.org)")
    (tmp_path / "src/main.cpp").write_text("int main() {} // ```\n")
    return SourcePages(tmp_path)


def test_what_pages_link_to_outside_of_docs_becomes_pages(repository: SourcePages):
    pages = repository.pages()
    assert set(pages) == {"index.md", "source/NOTES.md", "source/src/index.md", "source/src/main.cpp.md"}
    assert "int main() {}" in pages["source/src/main.cpp.md"]
    assert "````cpp\n" in pages["source/src/index.md"]


def test_links_lead_to_where_the_site_has_their_targets(repository: SourcePages):
    assert repository.pages()["index.md"] == "[page](onnx.md) [notes](source/NOTES.md)"
    assert repository.pages()["source/NOTES.md"] == "[main](src/main.cpp.md) [docs](../onnx.md#part)"
    text = (repository.root / "docs/onnx.md").read_text()
    assert (
        repository.for_site("docs/onnx.md", text) == "[sources](source/src/index.md) `[no](../src/link.md)`"
    )
    text = (repository.root / "docs/start/onnx.md").read_text()
    assert repository.for_site("docs/start/onnx.md", text) == text


@pytest.mark.parametrize(
    "text, read",
    [
        ("So:\n- one\n- two\n", "So:\n\n- one\n- two\n"),
        ("**So**:\n1. one\n", "**So**:\n\n1. one\n"),
        ("- one\n  more\n- two\n", "- one\n  more\n- two\n"),
        ("1. one\n\n   more\n2. two\n", "1. one\n\n    more\n\n2. two\n"),
    ],
)
def test_lists_are_read_as_on_github(text: str, read: str):
    assert spaced(text) == read


def test_a_headers_declarations_come_with_their_comments_and_without_what_is_private():
    header = """#pragma once
namespace headrace {
class Later;
/// Reads a file.
/// Errors: io.
HEADRACE_API int read(const char* path,
                      int size);
/// A thing.
class HEADRACE_API Thing {
public:
    int size() const;  ///< in bytes

private:
    int size_ = 0;
};
}  // namespace headrace
"""
    read, thing = api_pages.declarations(header)
    assert (read.name, read.comment) == ("read", "Reads a file.\nErrors: io.")
    assert read.text.startswith("int read(const char* path,")
    assert thing.name == "Thing"
    assert "in bytes" in thing.text
    assert "size_" not in thing.text


def test_every_header_with_declarations_has_a_page():
    pages = api_pages.api_pages(ROOT)
    for header in (ROOT / "include/headrace").glob("*.h"):
        if header.name != "export.h":
            assert pages[f"api/cpp/{header.name}.md"].count("```cpp") >= 1, header.name


@pytest.mark.skipif(not STUBS.exists(), reason="the type stubs are not built: make build")
@pytest.mark.parametrize("module", ["headrace", "headrace.language_model", "webnn"])
def test_every_public_name_of_a_package_is_in_its_reference(module: str):
    imported = pytest.importorskip(module, reason="the Python extension is not built: make build")
    page = api_pages.python_page(ROOT, module)
    described = set(re.findall(r"^## `(\w+)`$", page, re.MULTILINE))
    assert set(imported.__all__) - described == set()


def test_the_navigation_has_every_page_of_docs_and_no_other():
    listed = re.findall(r"^ +- .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    own = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    decisions = {page for page in own if re.match(r"decisions/\d", page)}
    assert {page for page in listed if not page.startswith(("api/", "source/", "index."))} == own - decisions


def test_every_decision_is_in_the_list_of_decisions():
    listed = re.findall(r"\]\((\d[^)]*\.md)\)", (ROOT / "docs/decisions/index.md").read_text())
    assert sorted(listed) == sorted(page.name for page in (ROOT / "docs/decisions").glob("[0-9]*.md"))


def test_the_site_is_built_without_a_warning_and_loads_nothing_from_the_network(tmp_path: Path):
    if not PACKAGES.exists() and not find_spec("material"):
        pytest.skip("mkdocs-material is not installed: make site installs it")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(PACKAGES)}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "search/search_index.json").exists()
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"<(?:script|link|img)\b[^>]*(?:src|href)=\"(?:https?:)?//", text) == [], page
        prose = re.sub(r"<(code|pre)\b.*?</\1>", "`", text, flags=re.DOTALL)
        for paragraph in re.findall(r"<p>(.*?)</p>", prose, re.DOTALL):
            assert not re.search(r"^(- |\d+\. |\|.*\|.*\|$|```)", paragraph, re.MULTILINE), (page, paragraph)
