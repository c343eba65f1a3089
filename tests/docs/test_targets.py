"""Targets of make that pages name are in the makefile."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", *(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md")))


def named(text: str) -> set[str]:
    """Those of `make a`, of `HEADRACE_CUDA=ON make a b` and of lines of shells that begin so."""
    calls = re.findall(
        r"(?:^|`)(?:\$ )?(?:[A-Z_]+=\S+ )*make((?: [a-z][a-z0-9-]*)+)(?=`|\s*(?:#|$))", text, re.M
    )
    return {target for call in calls for target in call.split()}


def test_each_target_that_a_page_names_is_in_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    there = {name for names in re.findall(r"^([a-z][a-z0-9 -]*):", makefile, re.M) for name in names.split()}
    wanted = {page: named((ROOT / page).read_text(encoding="utf-8")) for page in PAGES}
    assert len(set().union(*wanted.values())) > 50
    assert {page: targets - there for page, targets in wanted.items() if targets - there} == {}


def test_a_target_is_found_in_a_sentence_and_in_a_shells_line():
    assert named("`EXECUTORCH=0 make demo` and `make node web`\nmake mlx   # builds\n`make` makes") == {
        *("demo", "node", "web", "mlx"),
    }
