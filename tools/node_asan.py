#!/usr/bin/env python3
"""Runs the npm package's tests on addons with the address and undefined-behaviour sanitizers: `make asan-node`.

    python tools/node_asan.py [FILE.test.mjs ...]

cmake puts those addons into build/asan/npm/node/native. The package and its tests are copied beside them, as they find
each other by relative paths. Node has no sanitizer of its own, so its library is loaded before Node is.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "build/asan/npm"
# Of the package's tests those that run the addons; examples run the checkout's own.
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
OPTIONS = {
    # Node and V8 keep what they allocate until the process ends. What is freed stays poisoned for a while, but not so
    # long that tests of what is left behind see it.
    "ASAN_OPTIONS": "detect_leaks=0:strict_string_checks=1:quarantine_size_mb=16",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def copy_package():
    for name in ("node", "tests/node"):
        shutil.copytree(
            ROOT / name,
            TREE / name,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("native", "node_modules", "src", "types"),
        )
    for link, target in {TREE / "models": ROOT / "models", TREE.parent / "shared": ROOT.parent / "shared"}.items():
        if target.exists() and not link.exists():
            link.symlink_to(target)


def sanitizer():
    """The library of the compiler that built the addons."""
    cache = (TREE.parent / "CMakeCache.txt").read_text()
    compiler = next(line.partition("=")[2] for line in cache.splitlines() if line.startswith("CMAKE_CXX_COMPILER:"))
    found = subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def main():
    if not (TREE / "node/native/headrace.node").exists():
        sys.exit("build/asan/npm/node/native/headrace.node is not there: make asan-node builds it")
    copy_package()
    names = sys.argv[1:] or [f"{name}.test.mjs" for name in TESTS]
    tests = [str(TREE / "tests/node" / Path(name).name) for name in names]
    run = subprocess.run(
        ["node", "--test", "--test-reporter=spec", *tests], env=os.environ | OPTIONS | {"LD_PRELOAD": sanitizer()}
    )
    sys.exit(run.returncode)


if __name__ == "__main__":
    main()
