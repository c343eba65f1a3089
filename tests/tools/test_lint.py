"""The checks of tools/lint.py that are its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import lint
import pytest

PROJECT = """
[tool.pytest.ini_options]
pythonpath = ["bench", "helpers"]
"""


def write(root: Path, *files: str) -> Path:
    (root / "pyproject.toml").write_text(PROJECT)
    for file in files:
        (root / file).parent.mkdir(exist_ok=True)
        (root / file).touch()
    return root


def test_a_module_name_in_two_folders_of_the_path_is_named(tmp_path):
    lines = lint.module_names(write(tmp_path, "bench/zoo.py", "helpers/zoo.py", "bench/other.py"))
    assert len(lines) == 1
    assert lines[0].startswith("zoo.py: 2 folders")


def test_every_folder_may_have_a_conftest_and_modules_of_its_own(tmp_path):
    tree = write(tmp_path, "bench/conftest.py", "helpers/conftest.py", "bench/a.py", "helpers/b.py")
    assert lint.module_names(tree) == []


@pytest.mark.parametrize(
    ("includes", "is_fine"),
    [
        (["<array>", "<vector>", "", '"base/log.h"', '"ir/graph.h"'], True),
        (["<vector>", "<array>", "", '"base/log.h"', '"ir/graph.h"'], False),
        (["<array>", "<vector>", "", '"ir/graph.h"', '"base/log.h"'], False),
    ],
)
def test_includes_have_one_order(includes, is_fine, tmp_path, monkeypatch, capsys):
    (tmp_path / "src").mkdir()
    lines = [name and f"#include {name}" for name in includes]
    (tmp_path / "src/x.cpp").write_text("\n".join(lines) + "\n")
    shutil.copy(lint.ROOT / ".clang-format", tmp_path)
    monkeypatch.setattr(lint, "ROOT", tmp_path)
    assert lint.clang_format(fix=False) == is_fine
    assert ("src/x.cpp: clang-format would change" in capsys.readouterr().out) != is_fine
