"""The benchmark of published architectures on a model of one product."""

from __future__ import annotations

import numpy as np
import published
import pytest
from product_model import write_product


def test_exact_and_fast_products_are_compared_with_each_peer_that_is_there(tmp_path, monkeypatch):
    write_product(tmp_path / "published" / "product")
    monkeypatch.setattr(published, "OUT", tmp_path)
    row = published.compare("product", 1, rounds=2, seconds=0.001)
    assert {published.EXACT, published.FAST, "ONNX Runtime"} <= row["median_ms"].keys()
    assert row["ratio"].keys() == row["median_ms"].keys() - {published.EXACT, published.FAST}
    assert row["cosine"]["ONNX Runtime"] == pytest.approx(1)


def test_a_network_that_gives_nothing_is_not_compared(tmp_path, monkeypatch):
    write_product(tmp_path / "published" / "product", np.zeros((2, 3), np.float32))
    monkeypatch.setattr(published, "OUT", tmp_path)
    with pytest.raises(SystemExit, match="gives next to nothing"):
        published.compare("product", 1, rounds=2, seconds=0.001)
