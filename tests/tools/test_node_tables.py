"""What the npm package knows of the operators is what `make docs` writes."""

from __future__ import annotations

import node_tables
import pytest


@pytest.mark.parametrize("path", ["node/lib/webnn/operators.js", "node/webnn.d.ts"])
def test_the_tracked_file_is_what_make_docs_writes(path: str):
    tracked = (node_tables.ROOT / path).read_text(encoding="utf-8")
    assert tracked == node_tables.files()[node_tables.ROOT / path], f"{path} is out of date: run make docs"


def test_each_operator_of_the_door_has_one_row():
    from headrace._core import signatures

    rows, _ = node_tables.rows()
    assert [row["name"] for row in rows] == [signature.idl for signature in signatures()]
    assert all(row["operands"] and row["results"] for row in rows)
