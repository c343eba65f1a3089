#!/usr/bin/env python3
"""Runs the npm package's tests on addons that carry the address sanitizer and its like: `make asan-node`.

    python tools/node_asan.py [FILE.test.mjs ...]

cmake puts those addons into build/asan/npm/node/native. The package and its tests are copied beside them, as
they find each other by relative paths. Node has no sanitizer of its own, so its library is loaded first.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "build/asan/npm"
# The package's tests that run the addons; examples run the checkout's own.
TESTS = (
    "builder",
    "extensions",
    "idl_conversions",
    "language_models",
    "lifetimes",
    "models",
    "onnxruntime",
    "operator_rules",
    "operators",
    "tensors",
)
REPORTS = TREE / "reports"
OPTIONS = {
    # What is freed stays poisoned, but not so long that tests of what is left behind see it.
    "ASAN_OPTIONS": f"log_path={REPORTS}/process:strict_string_checks=1:quarantine_size_mb=16",
    "LSAN_OPTIONS": f"exitcode=0:suppressions={ROOT}/tools/lsan.supp:print_suppressions=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
# The allocating code is in the first frame that is of Node, or of an addon or its libraries.
NODES, OURS = re.compile(r"\(\S*/node\+0x"), re.compile(r"headrace|ggml|llama")


def is_ours(leak):
    """V8 keeps what it has where a process exits, and Node its wrapper of a handle that is alive then."""
    for frame in re.findall(r"^ +#\d+ .*", leak, re.MULTILINE):
        if NODES.search(frame):
            return False
        if OURS.search(frame):
            return True
    return False


def faults(report):
    """Errors, and leaks of what is not Node's."""
    found = [] if "ERROR: LeakSanitizer" in report else [report]
    return found + [part for part in report.split("\n\n") if " leak of " in part and is_ours(part)]


def copy_package():
    for name in ("node", "tests/node"):
        shutil.copytree(
            ROOT / name,
            TREE / name,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("native", "node_modules", "src", "types"),
        )
    for link, target in {
        TREE / "models": ROOT / "models",
        TREE.parent / "shared": ROOT.parent / "shared",
    }.items():
        if target.exists() and not link.exists():
            link.symlink_to(target)


def sanitizer():
    """The library of the compiler that built the addons."""
    cache = (TREE.parent / "CMakeCache.txt").read_text()
    compiler = next(
        line.partition("=")[2] for line in cache.splitlines() if line.startswith("CMAKE_CXX_COMPILER:")
    )
    found = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    return found.stdout.strip()


def main():
    if not (TREE / "node/native/headrace.node").exists():
        sys.exit("build/asan/npm/node/native/headrace.node is not there: make asan-node builds it")
    copy_package()
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir()
    names = sys.argv[1:] or [f"{name}.test.mjs" for name in TESTS]
    tests = [str(TREE / "tests/node" / Path(name).name) for name in names]
    run = subprocess.run(
        ["node", "--test", "--test-reporter=spec", *tests],
        env=os.environ | OPTIONS | {"LD_PRELOAD": sanitizer()},
    )
    found = [
        fault for path in sorted(REPORTS.iterdir()) for fault in faults(path.read_text(errors="replace"))
    ]
    print(*found, sep="\n\n")
    print(f"{len(found)} faults found by the sanitizers")
    sys.exit(run.returncode or bool(found))


if __name__ == "__main__":
    main()
