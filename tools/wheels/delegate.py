"""Writes the wheel executorch-ggml: its Python package and the delegate, one for every Python."""

import tomllib
from pathlib import Path

import ziglang
from provision import base

from wheels.pack import PLATFORM, companion_metadata, write_archive

SUMMARY = "Runs PyTorch programs on ggml: an ExecuTorch backend"


def write_wheel(build, output):
    """Packs the delegate that was compiled with build's last stage; returns the wheel."""
    tag = f"py3-none-{PLATFORM}_{build.arch}"
    project = tomllib.loads((base.ROOT / "pyproject.toml").read_text())["project"]
    licenses = {
        "executorch": build.executorch_license(),
        "llvm-libcxx": Path(ziglang.__file__).parent / "lib/libcxx/LICENSE.TXT",
    }
    required = project["optional-dependencies"]["executorch"]
    metadata = companion_metadata("executorch-ggml", SUMMARY, licenses, required, tag)
    return write_archive(build.stage_delegate(), ["executorch_ggml"], metadata, tag, output)
