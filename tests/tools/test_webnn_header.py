"""What C++ programs see of the operators is what `make docs` writes."""

from __future__ import annotations

import pytest
import webnn_header


@pytest.mark.parametrize("name", ["webnn_operators.inc", "webnn_options.h"])
def test_the_tracked_file_is_what_make_docs_writes(name: str):
    path = webnn_header.ROOT / "include/headrace" / name
    assert path.read_text(encoding="utf-8") == webnn_header.files()[path], (
        f"{name} is out of date: run make docs"
    )
