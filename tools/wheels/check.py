"""What a finished wheel must fulfil, as far as it can be seen without running it."""

import re
import subprocess
import sys
import zipfile

from provision import base

MOST_BYTES = 30_000_000
PLATFORM = re.compile(r"manylinux_2_28_\w+(?=\.whl$)")


def platform_tag(wheel):
    """The oldest manylinux that auditwheel finds the wheel to fit, by its libraries and their symbols."""
    command = [sys.executable, "-m", "auditwheel", "show", wheel]
    done = subprocess.run(command, capture_output=True, text=True)
    text = " ".join(done.stdout.split())
    found = re.search(r'platform tag: "(\w+)"', text)
    if not found:
        raise base.SetupError(f"auditwheel does not know what {wheel.name} fits:\n{done.stdout}{done.stderr}")
    return found[1]


def glibc_of(tag):
    return tuple(map(int, re.search(r"manylinux_(\d+)_(\d+)", tag).groups()))


def check_wheel(wheel):
    """One line about a wheel that is fine; a SetupError about another."""
    size = wheel.stat().st_size
    if size > MOST_BYTES:
        raise base.SetupError(f"{wheel.name} has {size:,} bytes; {MOST_BYTES:,} are allowed")
    promised, found = PLATFORM.search(wheel.name)[0], platform_tag(wheel)
    if not found.startswith("manylinux") or glibc_of(found) > glibc_of(promised):
        raise base.SetupError(f"{wheel.name} promises {promised}, and auditwheel finds {found}")
    with zipfile.ZipFile(wheel) as archive:
        libraries = sum(".so" in name for name in archive.namelist())
    return f"{size / 1e6:.1f} MB, {libraries} libraries, fits {found}"
