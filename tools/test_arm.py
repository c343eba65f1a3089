#!/usr/bin/env python3
"""Runs the tests of src/kernels as programs for 64-bit ARM, in QEMU's emulation of single programs.

Zig's C++ compiler builds them, with a static musl library, so that nothing else of another system is needed.
Which results are right is what this tells, never how fast they are.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cross_check import BUILD, OUT, ROOT, include_flags, zig

# Without dot products of bytes, and with all that QEMU knows.
CPUS = ("cortex-a53", "max")
GOOGLETEST = Path("/usr/src/googletest")
FLAGS = ["-O2", "-DNDEBUG", "-DFMT_HEADER_ONLY"]
OWN_WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]


def llama_source():
    """The tree that has ggml's sources: the tests quantise with its base library."""
    found = re.search(r'HEADRACE_LLAMA_SOURCE "(.*)"', (BUILD / "setup.cmake").read_text())
    if not found:
        sys.exit("error: the tests compile ggml from its sources, and HEADRACE_GGML=system names none")
    return Path(found[1])


def write_ggml_version(folder):
    """A header that ggml's own build would make."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ggml-version.h").write_text('#define GGML_VERSION "any"\n#define GGML_COMMIT "any"\n')


def compilations(out):
    """(source, flags) for everything the program is made of."""
    own = ["-std=c++20", *FLAGS, *OWN_WARNINGS, *include_flags(), f"-I{ROOT / 'tests'}"]
    own += [
        part for kit in ("googletest", "googlemock") for part in ("-isystem", GOOGLETEST / kit / "include")
    ]
    for folder in ("src/kernels", "tests/kernels"):
        yield from ((source, own) for source in sorted((ROOT / folder).rglob("*.cpp")))
    yield ROOT / "src/ir/block_format.cpp", own
    for kit, file in (
        ("googletest", "gtest-all.cc"),
        ("googlemock", "gmock-all.cc"),
        ("googlemock", "gmock_main.cc"),
    ):
        yield GOOGLETEST / kit / "src" / file, [*own, "-w", f"-I{GOOGLETEST / kit}"]
    ggml = llama_source() / "ggml"
    theirs = [*FLAGS, "-w", "-D_GNU_SOURCE", f"-I{out}", f"-I{ggml / 'src'}", f"-I{ggml / 'include'}"]
    for file in ("ggml.c", "ggml-alloc.c", "ggml-quants.c"):
        yield ggml / "src" / file, ["-x", "c", "-std=gnu11", *theirs]
    for file in ("ggml.cpp", "ggml-backend.cpp", "ggml-backend-meta.cpp", "ggml-threading.cpp"):
        yield ggml / "src" / file, ["-std=c++17", *theirs]


def run_compiler(command):
    caches = dict.fromkeys(("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"), str(OUT / "zig"))
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env={**os.environ, **caches}
    )
    if done.returncode:
        sys.exit(f"error: {shlex.join(map(str, command))}\n{done.stderr}")


def build(compiler):
    """Returns the program. Zig itself knows what has changed since it last compiled a file."""
    out = OUT / "test-arm"
    write_ggml_version(out)
    sources = list(compilations(out))
    objects = [out / f"{source.parent.name}-{source.name}.o" for source, _ in sources]
    commands = [
        [*compiler, *flags, "-c", source, "-o", made]
        for (source, flags), made in zip(sources, objects, strict=True)
    ]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(run_compiler, commands))
    program = out / "kernels_test"
    run_compiler([*compiler, "-static", *objects, "-o", program])
    return program


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="*", help="of GoogleTest")
    parser.add_argument("--compiler", help='in place of Zig\'s: "aarch64-linux-gnu-g++-12"')
    arguments = parser.parse_args()
    compiler = shlex.split(arguments.compiler or "") or [*zig(), "c++", "-target", "aarch64-linux-musl"]
    print("compiling the tests of src/kernels for 64-bit ARM (minutes, the first time)", flush=True)
    program = build(compiler)
    failures = 0
    for cpu in CPUS:
        print(f"== {cpu}", flush=True)
        command = [
            "qemu-aarch64",
            "-cpu",
            cpu,
            program,
            "--gtest_brief=1",
            f"--gtest_filter={arguments.filter}",
        ]
        failures += subprocess.run(command).returncode != 0
    return failures


if __name__ == "__main__":
    sys.exit(main())
