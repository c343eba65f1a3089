"""Programs from PyPI, unmodified, by headrace.onnxruntime and by ONNX Runtime: results agree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "build/onnxruntime_programs"
PROGRAMS = Path(__file__).parent / "programs"
CASES = {"find_types": "magika", "read_pages": "rapidocr_onnxruntime", "find_speech": "silero_vad"}
SAME = 2e-5  # chances, scores and corners of boxes


def ran(*arguments: Any, ours: bool) -> str:
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES), "PYTHONWARNINGS": "ignore"}
    interpreter = [sys.executable, *(["-m", "headrace.onnxruntime"] if ours else [])]
    done = subprocess.run([*interpreter, *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr if "rapidocr_onnxruntime.main" in arguments else done.stdout


def assert_alike(ours: Any, theirs: Any, where: str = "") -> None:
    assert type(ours) is type(theirs), where
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), where
        for key in ours:
            assert_alike(ours[key], theirs[key], f"{where}/{key}")
    elif isinstance(ours, list):
        assert len(ours) == len(theirs), where
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_alike(a, b, f"{where}[{i}]")
    elif isinstance(ours, float):
        assert ours == pytest.approx(theirs, abs=SAME), where
    else:
        assert ours == theirs, where


def require(package: str) -> None:
    if not (PACKAGES / package).exists():
        pytest.skip(f"{package} is not installed: make test-onnxruntime")
    if package == "silero_vad":
        pytest.importorskip("torch", reason="PyTorch is not installed: make executorch installs it")


@pytest.mark.parametrize("program", CASES)
def test_a_program_gives_the_same(program: str) -> None:
    require(CASES[program])
    ours, theirs = (json.loads(ran(PROGRAMS / f"{program}.py", ROOT, ours=side)) for side in (True, False))
    assert len(ours["results"]) >= 3
    assert_alike(ours["results"], theirs["results"])
    times = (f"{which} {side[which + '_s']:.2f} s" for which in ("load", "run") for side in (ours, theirs))
    print(f"\n{CASES[program]}: headrace and ONNX Runtime {', '.join(times)}")


def test_a_module_is_a_program_too(tmp_path: Path) -> None:
    require("rapidocr_onnxruntime")
    page = tmp_path / "page.png"
    draw = (
        "from PIL import Image, ImageDraw, ImageFont\n"
        "image = Image.new('RGB', (400, 80), 'white')\n"
        "ImageDraw.Draw(image).text((20, 20), 'a mill stone', 'black', ImageFont.load_default(32))\n"
        f"image.save({str(page)!r})"
    )
    ran("-c", draw, ours=False)
    said = ran("-m", "rapidocr_onnxruntime.main", "--img_path", page, ours=True)
    assert "mill" in said and "stone" in said
