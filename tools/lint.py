#!/usr/bin/env python3
"""Checks format and rules of all sources and reports every finding; --fix reformats instead."""

import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import check_dialect
import check_includes

ROOT = Path(__file__).resolve().parent.parent
CPP_FOLDERS = ("bench", "examples", "include", "node/src", "python/src", "src", "tests")


def ruff(*arguments):
    return (
        subprocess.run([sys.executable, "-m", "ruff", *arguments, "--quiet", "."], cwd=ROOT).returncode == 0
    )


def clang_format(fix):
    """One line per badly formatted file: the tool itself would print three per place."""
    paths = (path for folder in CPP_FOLDERS for path in (ROOT / folder).rglob("*"))
    files = sorted(path.relative_to(ROOT) for path in paths if path.suffix in (".h", ".cpp"))
    if not files:
        return True
    options = ["-i"] if fix else ["--dry-run", "-Werror"]
    result = subprocess.run(["clang-format", *options, *files], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    places = Counter(re.findall(r"^([^:\n]+):\d+:\d+: error", result.stderr, re.MULTILINE))
    for name, count in places.items():
        print(f"{name}: clang-format would change {count} places")
    if result.returncode and not places:
        print(result.stderr)
    return result.returncode == 0


def report(lines):
    print(*lines, sep="\n", end="\n" if lines else "")
    return not lines


def module_names(root=ROOT):
    """Lines about modules of one name in folders of pytest's path: tests of both would import the first."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    folders = project["tool"]["pytest"]["ini_options"]["pythonpath"]
    found = Counter(path.name for folder in folders for path in (root / folder).glob("*.py"))
    return [
        f"{name}: {count} folders of pytest's pythonpath ({', '.join(folders)}) have it; rename all but one"
        for name, count in sorted(found.items())
        if count > 1 and name != "conftest.py"
    ]


def main():
    fix = "--fix" in sys.argv[1:]
    passed = {
        "ruff check": ruff("check", *(["--fix"] if fix else [])),
        "ruff format": ruff("format", *([] if fix else ["--diff"])),
        "clang-format": clang_format(fix),
        "includes": report(check_includes.check_tree(ROOT)),
        "dialect": report(check_dialect.check_tree(ROOT)),
        "module names": report(module_names()),
    }
    failed = [name for name, fine in passed.items() if not fine]
    print(f"lint: {', '.join(failed)} failed; make format repairs the layout" if failed else "lint: clean")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
