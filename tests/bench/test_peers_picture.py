"""The README's chart shows the table of docs/performance.md."""

from __future__ import annotations

import peers_picture


def test_the_picture_is_of_the_pages_table():
    models = peers_picture.rows(peers_picture.PAGE.read_text(encoding="utf-8"))
    assert len(models) >= 10
    assert peers_picture.PICTURE.read_text(encoding="utf-8") == peers_picture.picture(models), "run make docs"


def test_a_row_without_a_name_is_of_the_model_above():
    page = (
        "| model | threads | ONNX Runtime | OpenVINO | XNNPACK |\n|---|---|---|---|---|\n"
        "| one | 1 | 1.0 | 1.1 | 1.2 |\n| | 2 | 2.0 | 2.1 | 2.2 |\n"
    )
    assert peers_picture.rows(page) == [("one", {"ONNX Runtime": 2.0, "OpenVINO": 2.1, "XNNPACK": 2.2})]
