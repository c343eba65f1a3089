#!/usr/bin/env python3
"""Compiles the folders of src that need no library of ggml for other systems, with Zig's C++ compiler.

Nothing is linked or run: this finds code that only builds on Linux x86-64. Files that have not changed since
they last compiled are left out.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
OUT = BUILD / "cross"
# Debian's Highway does not know that clang 18 split AVX-512, and leaves out the half with long vectors.
TARGETS = {"aarch64-linux-gnu": [], "x86_64-windows-gnu": ["-mevex512"]}
FOLDERS = ("base", "ir", "emit", "kernels", "ops", "passes", "plan", "lower")
# Used from their headers alone, so that their builds for this machine do not matter.
HEADER_ONLY = ("fmt", "hwy", "flatbuffers")
# -O0: twice as quick, and the code is thrown away.
FLAGS = ["-std=c++20", "-O0", "-c", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]
FLAGS += ['-DHEADRACE_VERSION="any"']


def system_include():
    """The folder with the headers of the development packages; CMake found fmt there."""
    cache = (BUILD / "CMakeCache.txt").read_text()
    package = Path(re.search(r"^fmt_DIR:PATH=(.*)$", cache, re.MULTILINE)[1])
    return next(folder / "include" for folder in package.parents if (folder / "include/fmt").exists())


def ggml_include():
    found = re.search(r'HEADRACE_GGML_DIR "(.*)"', (BUILD / "setup.cmake").read_text())
    return Path(found[1]) / "include" if found else system_include()


def include_flags():
    """The libraries' headers are links in a folder: the system's C headers are not the target's."""
    headers = OUT / "include"
    headers.mkdir(parents=True, exist_ok=True)
    for library in HEADER_ONLY:
        link = headers / library
        if not link.is_symlink():
            link.symlink_to(system_include() / library)
    own = [ROOT / "src", ROOT / "include", BUILD / "generated"]
    others = [BUILD / "generated/schema", headers, ggml_include()]
    return [*(f"-I{path}" for path in own), *(part for path in others for part in ("-isystem", str(path)))]


def digest_of_headers():
    """Changes when anything that a source may include changes, or the compiler does."""
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    version = subprocess.run([*zig(), "version"], capture_output=True)
    digest.update(version.stdout)
    for top in (ROOT / "src", ROOT / "include", BUILD / "generated"):
        for path in sorted(top.rglob("*")):
            if path.suffix in (".h", ".inc"):
                digest.update(path.read_bytes())
    return digest


def zig():
    return [sys.executable, "-m", "ziglang"]


def compile_file(source, target, includes, digest):
    """The compiler's messages, empty when all is well."""
    digest = digest.copy()
    digest.update(source.read_bytes())
    object_file = OUT / target / source.relative_to(ROOT).with_suffix(".o")
    stamp = object_file.with_suffix(".stamp")
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return ""
    object_file.parent.mkdir(parents=True, exist_ok=True)
    command = [*zig(), "c++", "-target", target, *TARGETS[target], *FLAGS, "-DFMT_HEADER_ONLY", *includes]
    caches = dict.fromkeys(("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"), str(OUT / "zig"))
    command += [str(source), "-o", str(object_file)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **caches})
    object_file.unlink(missing_ok=True)
    if done.returncode:
        return f"{target}: {source.relative_to(ROOT)}\n{done.stderr}"
    stamp.write_text(digest.hexdigest())
    return ""


def check(sources, targets):
    """Compiles every source for every target and returns the messages of those that fail."""
    includes, digest = include_flags(), digest_of_headers()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        jobs = [
            pool.submit(compile_file, source, target, includes, digest)
            for target in targets
            for source in sources
        ]
        return [message for job in jobs if (message := job.result())]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="default: every source of " + ", ".join(FOLDERS))
    arguments = parser.parse_args()
    sources = [file.resolve() for file in arguments.files]
    sources = sources or sorted(file for folder in FOLDERS for file in (ROOT / "src" / folder).glob("*.cpp"))
    failures = check(sources, TARGETS)
    print(*failures, sep="\n", end="\n" if failures else "")
    print(f"cross-check: {len(sources)} files for {' and '.join(TARGETS)}, {len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
