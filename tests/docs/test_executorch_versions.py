"""Pages name the versions of PyTorch and ExecuTorch that the delegate is built against."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_lines_that_install_executorch_name_the_versions_of_the_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = set(project["optional-dependencies"]["executorch"])
    for page in ("executorch.md", "packaging.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        assert set(re.findall(r"\b(?:torch|executorch)==[\d.]*\d", text)) == wanted, page
