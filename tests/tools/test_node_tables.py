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


def test_javascript_python_and_the_door_have_the_same_data_types():
    import webnn
    from webnn._descriptors import DATA_TYPES

    builder = webnn.ML().create_context().create_graph_builder()
    with pytest.raises(ValueError, match="unknown data type 'none'; known: ") as raised:
        builder.input("x", [1], "none")
    known = str(raised.value).split("known: ")[1].split(", ")
    assert known == DATA_TYPES == list(node_tables.ENUMS["MLOperandDataType"])
