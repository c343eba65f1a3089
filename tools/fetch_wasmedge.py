#!/usr/bin/env python3
"""Unpacks Debian sid's WasmEdge and all that it needs into build/wasmedge; nothing is installed.

apt works with lists of its own, and with the mirror and keys that this system's apt has. 55 MB are fetched.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from provision.base import BUILD, SetupError, run_logged, run_main

OUT = BUILD / "wasmedge"
PACKAGES = ["wasmedge", "libwasmedge-dev"]
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def mirror():
    """The first one in this system's sources."""
    sources = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    for path in filter(Path.is_file, sources):
        found = re.search(r"^(?:URIs:|deb(?: \[.*?\])?)\s+(\S+)", path.read_text(), re.MULTILINE)
        if found:
            return found[1]
    raise SetupError("apt's sources name no mirror")


def apt_options(folder):
    for path in ("state/lists/partial", "cache/archives/partial"):
        (folder / path).mkdir(parents=True)
    (folder / "status").touch()  # as if nothing were installed: every dependency is fetched
    source = f"Types: deb\nURIs: {mirror()}\nSuites: sid\nComponents: main\nSigned-By: {KEYS}\n"
    (folder / "sid.sources").write_text(source)
    settings = {
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::sourcelist": folder / "sid.sources",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "APT::Sandbox::User": "root",
        "APT::Install-Recommends": "false",
        "Acquire::Languages": "none",
        "Debug::NoLocking": "true",
    }
    return [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]


def main():
    if OUT.exists():
        return
    if not shutil.which("apt-get") or not KEYS.exists():
        raise SetupError("WasmEdge is taken from Debian, and this system has no apt with Debian's keys.")
    print("fetching WasmEdge from Debian sid (55 MB)", flush=True)
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as scratch:
        folder = Path(scratch)
        apt = ["apt-get", *apt_options(folder)]
        run_logged("wasmedge", [*apt, "update"])
        run_logged("wasmedge", [*apt, "install", "--download-only", "-y", *PACKAGES])
        for package in sorted(folder.glob("cache/archives/*.deb")):
            subprocess.run(["dpkg-deb", "-x", package, folder / "root"], check=True)
        (folder / "root").rename(OUT)


if __name__ == "__main__":
    sys.exit(run_main(main))
