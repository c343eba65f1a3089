"""The wheels of make wheels on other systems: an older C library, and no compiler (make test-wheels)."""

from __future__ import annotations

import os
import shutil
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from elf import ROOT
from environments import PROGRAM, RESULT, run, write_model
from roots import inside, skip_without_namespaces, unpack

DIST = ROOT / "build/wheels/dist"
if not os.environ.get("HEADRACE_TEST_WHEELS"):
    pytest.skip("takes minutes: make test-wheels runs it", allow_module_level=True)
if not list(DIST.glob("headrace-*.whl")):
    pytest.skip("no wheel has been built: make wheels builds them", allow_module_level=True)

from emulated_python import emulator
from wheels.build import ARCHITECTURES, WORK
from wheels.debian import pack_root
from wheels.image import PACKAGES
from wheels.pypi import download

MODEL = ROOT / "models/tiny-chat-q8_0.gguf"
OLDER = "bullseye"
OLDER_GLIBC = "2.31"
ASK = ("chat", "/model.gguf", "--prompt", "What is 2+3?", "--temp", 0)
PYTHON = ("python3-venv", "libstdc++6")  # NumPy's wheel takes the system's C++ library
COMPILERS = {"cc", "c++", "gcc", "g++", "clang", "as", "ld", "make", "cmake"}


def wheel_for(arch: str) -> Path:
    wheels = sorted(DIST.glob(f"headrace-*_{arch}.whl"))
    if not wheels:
        pytest.skip(f"no wheel for {arch} has been built: make wheels ARCH={arch} builds it")
    return wheels[0]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_program_answers_on_an_older_glibc(arch: str, tmp_path: Path):
    """With the release's own loader and C library, and nothing else of it."""
    wheel, archive = wheel_for(arch), WORK / f"root-{OLDER}-{ARCHITECTURES[arch]}.tar"
    pack_root(archive, ARCHITECTURES[arch], OLDER, PACKAGES)
    root = unpack(archive, tmp_path / "root")
    assert (root / f"lib/{arch}-linux-gnu/libc-{OLDER_GLIBC}.so").exists()
    with zipfile.ZipFile(wheel) as files:
        files.extractall(root / "opt")
    program = Path("/opt/headrace/bin/headrace")
    (root / program.relative_to("/")).chmod(0o755)
    write_model(root)
    np.save(root / "x.npy", np.array([[1, 0, -1], [0, 1, 0]], np.float32))
    shutil.copy(MODEL, root / "model.gguf")

    def printed(*arguments: object) -> str:
        if arch == os.uname().machine:
            skip_without_namespaces()
            return run(*inside(root, [program, *arguments]))
        if not emulator(arch):
            pytest.skip(f"qemu-{arch} is not installed: make test-wheels installs it")
        return run(emulator(arch), "-L", root, root / program.relative_to("/"), *arguments)

    assert "first 0, 0, 0, 0, 4, 5" in printed("run", "/model.onnx", "--input", "x=/x.npy")
    assert printed(*ASK).strip() == "2+3=5"


def test_pip_installs_the_wheel_on_a_system_without_a_compiler(tmp_path: Path):
    """Debian 12 with Python's venv alone; NumPy's wheel lies beside ours, so no network is needed."""
    skip_without_namespaces()
    arch = os.uname().machine
    found = sorted(DIST.glob(f"headrace-*-cp311-*_{arch}.whl"))
    if not found:
        pytest.skip(f"make wheels has not built Python 3.11's for {arch}")
    archive = WORK / f"root-python-{ARCHITECTURES[arch]}.tar"
    pack_root(archive, ARCHITECTURES[arch], "bookworm", PYTHON, variant="essential")
    root = unpack(archive, tmp_path / "root")
    assert not COMPILERS & {path.name for path in (root / "usr/bin").iterdir()}
    wheels = root / "wheels"
    wheels.mkdir()
    for file in (found[0], download("numpy", arch, "3.11", WORK / f"numpy-{arch}-3.11")):
        shutil.copy(file, wheels)
    run(*inside(root, ["python3", "-m", "venv", "/env"]))
    started = time.monotonic()
    pip = ["/env/bin/pip", "install", "--disable-pip-version-check", "--no-index", "--find-links", "/wheels"]
    run(*inside(root, [*pip, "headrace"]))
    assert time.monotonic() - started < 15
    assert run(*inside(root, ["/env/bin/python", "-c", PROGRAM])).startswith(RESULT)
    shutil.copy(MODEL, root / "model.gguf")
    assert run(*inside(root, ["/env/bin/headrace", *ASK])).strip() == "2+3=5"
