"""Debian's Python of a release and an architecture, in a folder of its own, on CPUs that QEMU emulates."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path

from wheels.build import ARCHITECTURES, RELEASES, WORK
from wheels.debian import Archive
from wheels.pypi import download

PYTHON_OF_RELEASE = {"bookworm": "3.11", "trixie": "3.13"}
# What Python and NumPy load.
LIBRARIES = ("libc6", "libgcc-s1", "libstdc++6", "zlib1g", "libexpat1", "libffi8")


def emulator(arch: str) -> str | None:
    return shutil.which(f"qemu-{arch}")


@dataclass(frozen=True)
class EmulatedPython:
    root: Path
    arch: str
    version: str
    site: Path  # where packages are unpacked

    @classmethod
    def install(cls, arch: str, release: str, site: Path) -> EmulatedPython:
        version = PYTHON_OF_RELEASE[release]
        archive = Archive(WORK / f"debian-{arch}", ARCHITECTURES[arch], RELEASES)
        parts = (f"python{version}-minimal", f"libpython{version}-minimal", f"libpython{version}-stdlib")
        root = archive.packages(release, *parts, *LIBRARIES)
        # Where the release has them in /usr alone, another of its packages makes these links.
        for folder in ("lib", "lib64"):
            if not (root / folder).exists():
                (root / folder).symlink_to(f"usr/{folder}")
        python = cls(root, arch, version, site)
        python.install_numpy()
        return python

    def install_numpy(self) -> None:
        self.unpack(download("numpy", self.arch, self.version, WORK / f"numpy-{self.arch}-{self.version}"))

    def unpack(self, wheel: Path) -> None:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                path = Path(archive.extract(entry, self.site))
                if mode := entry.external_attr >> 16 & 0o777:
                    path.chmod(mode)

    def command(self, cpu: str, program: str | Path, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Runs a program for the architecture: Python itself where it is "python"."""
        if program == "python":
            program = self.root / f"usr/bin/python{self.version}"
        settings = {"PYTHONPATH": str(self.site), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"]}
        return subprocess.run(
            list(map(str, [emulator(self.arch), "-cpu", cpu, "-L", self.root, program, *arguments])),
            capture_output=True,
            text=True,
            timeout=900,
            env=settings,
        )
