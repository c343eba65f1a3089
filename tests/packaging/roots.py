"""Folders that are the roots of other systems: programs run in them as in a container."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

# What container engines bring to a root: processes and devices.
ENTER = """
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
exec chroot "$0" "$@"
"""


def skip_without_namespaces() -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"]).returncode:
        pytest.skip("a root of one's own and namespaces need root")


def inside(root: Path, program: list[object], user: str = "0:0") -> list[str]:
    """The command that runs a program in a root, in namespaces of its own."""
    own = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", ENTER]
    return [*own, f"--userspec={user}", str(root), *map(str, program)]


def unpack(archive: Path, folder: Path) -> Path:
    """A root from mmdebstrap's archive, without its devices, which only the machine's own root may make."""
    with tarfile.open(archive) as root:
        members = [member for member in root if not member.isdev()]
        root.extractall(folder, members, filter="tar")
    (folder / "dev").mkdir(exist_ok=True)
    return folder
