"""examples/semantic_search.py from the command line, and its splitting of text."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("webnn", reason="the Python extension is not built: make build")
import semantic_search


@pytest.fixture
def search(examples: Path, tmp_path: Path):
    """Runs the program with the given arguments in an empty folder."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(examples / "semantic_search.py"), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)

    return run


def assert_clear_error(result: subprocess.CompletedProcess[str], message: str) -> None:
    assert result.returncode != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_the_default_text_answers_the_default_queries(search) -> None:
    result = search()
    assert result.returncode == 0, result.stderr
    for query, best in (
        ("How do I mend a flat bicycle tyre?", "Patch the inner tube"),
        ("everything is getting more expensive", "Groceries cost a fifth more"),
        ("why is my computer so slow?", "My laptop takes five minutes"),
    ):
        first_hit = result.stdout.split(query)[1].splitlines()[1]
        assert best in first_hit
    assert len(re.findall(r"\d ms per sentence", result.stdout)) == 3
    for door in ("WebNN graph", "ONNX model"):
        line = re.search(rf"^{door} beside ONNX Runtime.*", result.stdout, re.MULTILINE)[0]
        assert float(re.search(r"lowest cosine (\S+)", line)[1]) >= 0.99999
        assert float(re.search(r"largest difference (\S+),", line)[1]) <= 1e-5


def test_a_given_file_is_searched_for_given_queries(search, tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("The dog barks at the moon.\n\nOil prices fell sharply today. Milk turns sour.\n")
    result = search(text, "--query", "a pet at night", "stock market", "--top", 2, "--threads", 1)
    assert result.returncode == 0, result.stderr
    assert "embedding by the WebNN graph: 5/5" in result.stderr  # three sentences and two queries
    pet, market = (
        result.stdout.split(query)[1].splitlines()[1:3] for query in ("pet at night", "stock market")
    )
    assert "The dog barks" in pet[0]
    assert "Oil prices" in market[0]
    assert "3 sentences, 1 threads" in result.stdout


def test_a_missing_file_is_a_clear_error(search, tmp_path: Path) -> None:
    assert_clear_error(search(tmp_path / "missing.txt"), "No such file")


def test_a_folder_is_a_clear_error(search, tmp_path: Path) -> None:
    assert_clear_error(search(tmp_path), "Is a directory")


@pytest.mark.parametrize("content", [b"", b" \n\n\t\n"])
def test_a_file_without_sentences_is_a_clear_error(search, tmp_path: Path, content: bytes) -> None:
    text = tmp_path / "empty.txt"
    text.write_bytes(content)
    assert_clear_error(search(text), "holds no sentences")


def test_a_binary_file_is_a_clear_error(search, tmp_path: Path) -> None:
    text = tmp_path / "image.png"
    text.write_bytes(b"\x89PNG\r\n\xff\xfe\x00")
    assert_clear_error(search(text), "not a text file")


@pytest.mark.parametrize("arguments", [("--threads", "0"), ("--top", "-1"), ("--top", "many")])
def test_bad_numbers_are_a_clear_error(search, arguments: tuple[str, str]) -> None:
    assert_clear_error(search(*arguments), "must be a whole number above 0")


def test_sentences_are_lines_unless_a_paragraph_wraps() -> None:
    text = (
        "Shopping list\nmilk\r\n\n"
        "This paragraph is broken in the middle of a line because it is\ntoo wide. It has two sentences!\n"
    )
    assert semantic_search.split_sentences(text) == [
        "Shopping list",
        "milk",
        "This paragraph is broken in the middle of a line because it is too wide.",
        "It has two sentences!",
    ]


@pytest.mark.parametrize("wrong", ["OnnxMiniLM", "LoadedMiniLM"])
def test_differing_embeddings_fail(monkeypatch, wrong) -> None:
    """A wrong result must not pass as a search result: one of the three is made to answer nonsense."""
    monkeypatch.setattr(sys, "argv", ["semantic_search.py"])

    class WrongPeer:
        def __init__(self, threads: int) -> None:
            self.rng = np.random.default_rng(threads)

        def run(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
            return self.rng.standard_normal(384).astype(np.float32)

    monkeypatch.setattr(semantic_search, wrong, WrongPeer)
    with pytest.raises(SystemExit, match="disagree: cosine"):
        semantic_search.main()
