"""The reference pages in docs/ are what `make docs` writes."""

from __future__ import annotations

from difflib import unified_diff
from itertools import islice

import pytest
import reference_pages


@pytest.mark.parametrize("page", reference_pages.pages(), ids=lambda page: page.name)
def test_the_tracked_page_is_what_make_docs_writes(page: reference_pages.Page):
    if page.obstacle:
        pytest.skip(page.obstacle)
    assert page.path.exists(), f"docs/{page.name} is missing: run make docs"
    tracked, written = page.path.read_text(encoding="utf-8").splitlines(), page.text().splitlines()
    changes = islice(unified_diff(tracked, written, "tracked", "written", lineterm="", n=0), 20)
    assert tracked == written, f"docs/{page.name} is out of date: run make docs\n" + "\n".join(changes)
