"""examples/convnet.py: every image gives the same classes on both engines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("webnn", reason="the Python extension is not built: make build")
import convnet


@pytest.mark.parametrize("threads", [1, 2])
def test_convnet_equals_onnx_runtime(threads: int) -> None:
    net = convnet.Convnet(threads, convnet.make_weights())
    for name, image in convnet.make_images().items():
        ours, peer = net.run(image), net.run_peer(image)
        for key in ("logits", "probabilities"):
            np.testing.assert_allclose(ours[key], peer[key], rtol=0, atol=1e-5, err_msg=f"{name}: {key}")


def test_the_images_do_not_all_look_alike_to_the_network() -> None:
    net = convnet.Convnet(1, convnet.make_weights())
    classes = {int(net.run(image)["logits"].argmax()) for image in convnet.make_images().values()}
    assert len(classes) > 1


def test_the_program_prints_a_class_for_every_image(examples: Path) -> None:
    result = subprocess.run(
        [sys.executable, examples / "convnet.py"], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    for name in convnet.make_images():
        assert name in result.stdout
    assert "largest difference" in result.stdout
