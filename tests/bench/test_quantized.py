"""The benchmark of quantised files: its 4-bit blocks, and both programs on a model of one product."""

from __future__ import annotations

import argparse
import shutil

import numpy as np
import pytest
import quantized
import quantized_models
from product_model import write_product


@pytest.mark.parametrize("has_zeros", [False, True])
def test_blocks_of_4_bits_are_the_weights_within_half_a_step(has_zeros):
    weights = np.random.default_rng(3).standard_normal((96, 5)).astype(np.float32)
    packed, scales, *zeros = quantized_models.in_blocks(weights, has_zeros)
    assert packed.shape == (5, 3, 16)
    codes = np.stack([packed & 15, packed >> 4], -1).reshape(5, 3, 32).astype(np.float32)
    if has_zeros:
        pairs = zeros[0].reshape(5, 2)
        zero = np.stack([pairs & 15, pairs >> 4], -1).reshape(5, 4)[:, :3, None].astype(np.float32)
    else:
        zero = np.float32(8)
    scale = scales.reshape(5, 3, 1)
    off = np.abs(((codes - zero) * scale).reshape(5, 96).T - weights).reshape(3, 32, 5).max(1)
    # A zero point that is rounded moves the ends by another half.
    assert np.all(off <= scale[:, :, 0].T * (1.01 if has_zeros else 0.501))


def test_both_programs_are_compared_on_the_same_file(tmp_path, monkeypatch):
    folder = tmp_path / "quantized" / "one.product"
    write_product(folder)
    shutil.copytree(folder, folder.with_name("one.f32"))  # the network that it was made of
    monkeypatch.setattr(quantized, "OUT", tmp_path)
    row = quantized.compare("one.product", 1, argparse.Namespace(rounds=2, seconds=0.001))
    assert {quantized.OURS, quantized.PEER} <= set(row["cosine"])
    assert row["cosine"][quantized.OURS] == pytest.approx(1)
    assert row["largest"][quantized.OURS] < 1e-6
    assert row["ours_ms"] > 0 and row["f32_ms"] > 0
    assert row["ratio"] == pytest.approx(row["peer_ms"] / row["ours_ms"], rel=1)
