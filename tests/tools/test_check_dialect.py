"""Lint finds what one dialect would not have."""

from __future__ import annotations

import check_dialect
import pytest


@pytest.mark.parametrize(
    ("source", "finding"),
    [
        ("void f(size_t n);", "size_t has no namespace; write std::size_t"),
        ("std::vector<uint8_t> bytes;", "uint8_t has no namespace; write std::uint8_t"),
        ("bool is_quantised = true;", "is_quantised is spelled the British way"),
        ("struct Neighbours {};", "Neighbours is spelled the British way"),
        ("int centre = 1;", "centre is spelled the British way"),
        ("'\\0'; int colour = 1;", "colour is spelled the British way"),
        ("int n = 1'000; int colour = 1'000;", "colour is spelled the British way"),
        ("Graph specialise(const Graph& g);", "specialise is spelled the British way"),
        ("class PreTokeniser;", "PreTokeniser is spelled the British way"),
        ("constexpr int most = 3;", "most is a constant of a namespace; write kName"),
        (
            "inline constexpr std::array<int, 2> sizes{1, 2};",
            "sizes is a constant of a namespace; write kName",
        ),
        ("static const char* const words[] = {};", "words is a constant of a namespace; write kName"),
    ],
)
def test_a_finding_has_its_line_and_what_to_write(source: str, finding: str):
    assert list(check_dialect.cpp_findings(f"\n{source}\n")) == [(2, finding)]


@pytest.mark.parametrize(
    "source",
    [
        "// a quantised size_t",
        "/* size_t\n colour */ int x;",
        'const char* kText = "size_t of the colour";',
        'auto text = R"(normalised " size_t)";',
        "std::size_t n = sizeof(std::uint8_t);",
        "#include <colour.h>",
        "int center = analysis(synthesis);",
        "hn::size_t n;",
        "constexpr int kMost = 3;",
        "constexpr int twice(int n) { return 2 * n; }",
        "    constexpr int within_a_function = 3;",
        "bool is_tokenized = specialist || optimistic;",
    ],
)
def test_text_and_other_names_are_free(source: str):
    assert list(check_dialect.cpp_findings(source)) == []


def test_names_of_python_are_read_as_python_reads_them():
    source = '"""quantised"""\nnormalise = "colour"  # neighbour\n'
    assert list(check_dialect.python_findings(source)) == [(2, "normalise is spelled the British way")]


def test_names_of_javascript_are_read_without_its_strings():
    source = "const text = `colour ${normalised}`; // neighbour\nfunction labelled() {}\nlabelledby;\n"
    assert list(check_dialect.javascript_findings(source)) == [(2, "labelled is spelled the British way")]


def test_the_tree_is_walked(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/x.cpp").write_text("int colour;\n")
    (tmp_path / "src/write_unit.h").write_text("int64_t shared_with_metal;\n")
    (tmp_path / "src/kernels").mkdir()
    (tmp_path / "src/kernels/x.h").write_text("size_t of_highway;\n")
    (tmp_path / "src/specialise.h").write_text("int x;\n")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/x.py").write_text("colour = 1\n")
    (tmp_path / "node/lib").mkdir(parents=True)
    (tmp_path / "node/lib/x.js").write_text("\nlet colour;\n")
    assert check_dialect.check_tree(tmp_path) == [
        "src/specialise.h: the file's name is spelled the British way",
        "src/x.cpp:1: colour is spelled the British way",
        "tools/x.py:1: colour is spelled the British way",
        "node/lib/x.js:2: colour is spelled the British way",
    ]
