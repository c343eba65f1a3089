"""The checks of tools/lint.py that are its own."""

from __future__ import annotations

from pathlib import Path

import lint

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
