"""Decoders with caches that grow give ONNX Runtime's tokens, step by step."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: make executorch installs it")
pytest.importorskip("transformers", reason="transformers is not installed: make executorch installs it")

import headrace
import numpy as np
from decoding import TINY_DECODINGS, Decoding
from exported import export, session_of

STEPS = 64


@pytest.fixture(params=TINY_DECODINGS)
def decoding(request) -> Decoding:
    return TINY_DECODINGS[request.param]()


def exported_step(decoding: Decoding, folder: Path) -> tuple[Any, headrace.Model, set[str]]:
    """ONNX Runtime's session, the model, and the names of its inputs."""
    path = folder / "step.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export(decoding.architecture, path, dynamo=False)
    session, model = session_of(path, 1), headrace.load(path, device="cpu", threads=1)
    return session, model, {given.name for given in session.get_inputs()}


def test_tokens_of_64_greedy_steps_are_onnx_runtimes(decoding: Decoding, tmp_path: Path) -> None:
    session, model, known = exported_step(decoding, tmp_path)

    def wanted(feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {key: value for key, value in feeds.items() if key in known}

    expected = decoding.steps(lambda feeds: session.run(None, wanted(feeds)), STEPS)
    actual = decoding.steps(lambda feeds: list(model(wanted(feeds)).values()), STEPS)
    assert actual == expected
    assert len(set(expected)) > 1


def test_a_cache_may_begin_empty(decoding: Decoding, tmp_path: Path) -> None:
    session, model, known = exported_step(decoding, tmp_path)
    feeds = {key: value for key, value in decoding.first.items() if key in known}
    feeds |= {key: feeds[key][:, :, :0] for key in decoding.caches if key in known}
    feeds["ids"] = np.array([[decoding.token]])
    if "mask" in feeds:
        feeds["mask"] = np.ones((1, 1), np.int64)
    for actual, expected in zip(model(feeds).values(), session.run(None, feeds), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
