"""Where the libraries of an installation come from."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def private_to_this_machine() -> list[str]:
    """Folders that no installation may depend on: the checkout and the user's ggml cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"
    return [f"{ROOT}/", f"{cache}/"]


def native_ggml() -> Path | None:
    """The ggml of the checkout's own build; None where that is the system's, or nothing has been built."""
    setup = ROOT / "build/setup.cmake"
    found = re.search(r'HEADRACE_GGML_DIR "(.*)"', setup.read_text()) if setup.exists() else None
    return Path(found[1]) if found else None


def is_elf(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF"


def _dynamic_entries(binary: Path, kinds: str) -> list[str]:
    dynamic = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True).stdout
    return re.findall(rf"\((?:{kinds})\).*\[(.*)\]", dynamic)


def needed_libraries(binary: Path) -> list[str]:
    """The names of the libraries that it is linked to."""
    return _dynamic_entries(binary, "NEEDED")


def run_paths(binary: Path) -> list[str]:
    """The entries of RPATH and RUNPATH."""
    found = _dynamic_entries(binary, "RPATH|RUNPATH")
    return [entry for entries in found for entry in entries.split(":") if entry]


def resolved_libraries(binary: Path) -> dict[str, str]:
    """Name and path of each library that the loader takes for a binary; "not found" where it has none."""
    # A library path in the environment would hide a missing RPATH.
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    listed = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True, env=environment)
    return dict(re.findall(r"^\s*(\S+) => (not found|\S+)", listed.stdout, re.MULTILINE))
