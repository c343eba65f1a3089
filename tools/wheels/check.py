"""What a finished wheel must fulfil, as far as it can be seen without running it."""

import json
import re
import subprocess
import sys
import zipfile

from provision import base

MOST_BYTES = 30_000_000
STUBS = ("headrace/_core.pyi", "headrace/_llm.pyi", "headrace/_serve.pyi", "webnn/__init__.pyi")
PLATFORM = re.compile(r"manylinux_2_28_\w+(?=\.whl$)")
# What these wheels take from those that they require, or from the system.
NEIGHBORS = {
    "executorch_ggml": {
        "libheadrace.so",
        "libheadrace-c++.so",
        "libexecutorch.so",
        "libexecutorch_threadpool.so",
    },
    "headrace_vulkan": {"libheadrace-ggml-base.so", "libheadrace-c++.so", "libvulkan.so.1"},
}


def platform_tag(wheel):
    """The oldest manylinux that auditwheel finds the wheel to fit, by its libraries and their symbols."""
    command = [sys.executable, "-m", "auditwheel", "show", "--json", wheel]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        found = json.loads(done.stdout)
        tags = found["overall_tag"], found["sym_tag"]
    except (ValueError, KeyError):
        raise base.SetupError(
            f"auditwheel does not know what {wheel.name} fits:\n{done.stdout}{done.stderr}"
        ) from None
    # auditwheel gives up a wheel with libraries of others, but knows whose symbols it needs.
    borrows = found["external_libs"].keys() <= NEIGHBORS.get(wheel.name.partition("-")[0], set())
    return tags[1] if borrows else tags[0]


def glibc_of(tag):
    return tuple(map(int, re.search(r"manylinux_(\d+)_(\d+)", tag).groups()))


def checked_size(file):
    size = file.stat().st_size
    if size > MOST_BYTES:
        raise base.SetupError(f"{file.name} has {size:,} bytes; {MOST_BYTES:,} are allowed")
    return size


def newest_glibc(folder):
    """The newest version of glibc that a library or addon in a folder takes symbols of."""
    files = [path for path in folder.rglob("*") if path.suffix in (".so", ".node")]
    command = ["readelf", "--version-info", "--wide", *files]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return max(tuple(map(int, found)) for found in re.findall(r"\bGLIBC_(\d+)\.(\d+)", listed))


def check_wheel(wheel):
    """One line about a wheel that is fine; a SetupError about another."""
    size = checked_size(wheel)
    promised, found = PLATFORM.search(wheel.name)[0], platform_tag(wheel)
    if not found.startswith("manylinux") or glibc_of(found) > glibc_of(promised):
        raise base.SetupError(f"{wheel.name} promises {promised}, and auditwheel finds {found}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    if wheel.name.startswith("headrace-") and not set(STUBS) <= set(names):
        raise base.SetupError(f"{wheel.name} lacks type stubs; make build writes them: {', '.join(STUBS)}")
    libraries = sum(".so" in name for name in names)
    return f"{size / 1e6:.1f} MB, {libraries} libraries, fits {found}"
