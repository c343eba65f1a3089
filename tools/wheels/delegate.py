"""Writes the wheel executorch-ggml: its Python package and the delegate, one for every Python."""

import re
import tomllib
from pathlib import Path

import ziglang
from provision import base

from wheels.pack import PLATFORM, write_archive

SUMMARY = "Runs PyTorch programs on ggml: an ExecuTorch backend"


def version():
    return re.search(r"project\(headrace VERSION ([\d.]+)", (base.ROOT / "CMakeLists.txt").read_text())[1]


def metadata_files(build, tag):
    """The folder .dist-info, and name and content of its files."""
    project = tomllib.loads((base.ROOT / "pyproject.toml").read_text())["project"]
    folder = f"executorch_ggml-{version()}.dist-info"
    licenses = {
        "LICENSE": base.ROOT / "LICENSE",
        "parts/executorch.txt": build.executorch_license(),
        "parts/llvm-libcxx.txt": Path(ziglang.__file__).parent / "lib/libcxx/LICENSE.TXT",
    }
    lines = [
        "Metadata-Version: 2.4",
        "Name: executorch-ggml",
        f"Version: {version()}",
        f"Summary: {SUMMARY}",
        f"License-Expression: {project['license']}",
        *(f"License-File: {name}" for name in licenses),
        f"Requires-Python: {project['requires-python']}",
        # The delegate uses the C++ interface of these, so another of their versions needs another delegate.
        f"Requires-Dist: headrace=={version()}",
        *(f"Requires-Dist: {needed}" for needed in project["optional-dependencies"]["executorch"]),
    ]
    wheel = ["Wheel-Version: 1.0", "Generator: headrace", "Root-Is-Purelib: false", f"Tag: {tag}"]
    files = {
        f"{folder}/METADATA": "".join(f"{line}\n" for line in lines).encode(),
        f"{folder}/WHEEL": "".join(f"{line}\n" for line in wheel).encode(),
    }
    files |= {f"{folder}/licenses/{name}": path.read_bytes() for name, path in licenses.items()}
    return folder, files


def write_wheel(build, output):
    """Packs the delegate that was compiled with build's last stage; returns the wheel."""
    tag = f"py3-none-{PLATFORM}_{build.arch}"
    stage = build.stage_delegate()
    return write_archive(stage, ["executorch_ggml"], metadata_files(build, tag), tag, output)
