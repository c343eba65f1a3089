#!/usr/bin/env python3
"""Checks that a folder includes only what the design lets it include, and reports every violation.

The tables below are the rule; src/CMakeLists.txt links the same dependencies.
"""

import re
import sys
from pathlib import Path

# Folder of src: the other folders that its files may include.
ALLOWED = {
    "base": set(),
    "ir": {"base"},
    "emit": {"base", "ir"},
    "kernels": {"base", "ir"},
    "ops": {"base", "ir", "emit", "kernels"},
    "passes": {"base", "ir", "ops"},
    "plan": {"base", "ir", "ops", "emit", "kernels"},
    "lower": {"base", "ir", "ops", "emit", "kernels", "plan"},
    "remote": {"base"},
    "run": {"base", "ir", "ops", "lower", "plan", "kernels", "remote"},
    "engine": {"base", "ir", "ops", "emit", "kernels", "passes", "plan", "lower", "run"},
    "doors/webnn": {"base", "ir", "ops", "engine"},
    "doors/executorch": {"base", "ir", "ops", "engine"},
    "doors/onnx": {"base", "ir", "ops", "engine"},
    "doors/wasi_nn": {"base", "llm", "remote"},
    "llm": {"base", "remote"},
    "backends/common": set(),
    "backends/mlx": {"base", "kernels", "backends/common"},
    "backends/packed": {"base", "ir", "kernels", "backends/common"},
    "cli": {"base", "ir", "ops", "kernels", "engine", "doors", "llm", "remote"},
}

# Headers of a library, and the only folders that may include them.
LIBRARIES = [
    (
        "ggml",
        re.compile(r"(ggml[\w-]*|gguf)\.h"),
        {
            "emit",
            "plan",
            "lower",
            "remote",
            "run",
            "kernels",
            "llm",
            "backends/common",
            "backends/mlx",
            "backends/packed",
        },
    ),
    ("llama.cpp", re.compile(r"llama[\w-]*\.h"), {"llm"}),
    ("llama.cpp's common library", re.compile(r"common/.*"), {"llm"}),
    ("Highway", re.compile(r"hwy/.*"), {"kernels"}),
    ("nlohmann's JSON", re.compile(r"nlohmann/.*"), {"doors/webnn", "doors/wasi_nn", "llm", "cli"}),
]

# Outputs of the build, and the folder that uses each.
GENERATED = {
    "ggml_ir_generated.h": "ir",
    "op_catalog_includes.inc": "ops",
    "op_catalog_rows.inc": "ops",
}

# The public C header of a ggml backend hands out ggml's own types.
PUBLIC_WITH_GGML = {"include/headrace/ggml-mlx.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def folder_of(path):
    """The folder, as ALLOWED names it, of a path relative to src; None when there is no such folder."""
    parts = path.split("/")
    if parts[0] in ("doors", "backends"):
        return "/".join(parts[:2]) if len(parts) > 2 else None
    return parts[0] if len(parts) > 1 else None


def library_violation(target, folder):
    for library, pattern, folders in LIBRARIES:
        by_name = library in ("ggml", "llama.cpp")  # their headers may be reached by any path
        if pattern.fullmatch(target.rsplit("/", 1)[-1] if by_name else target) and folder not in folders:
            return f"{library}'s {target} may be included in {', '.join(sorted(folders))} only"
    return None


def src_violation(folder, target, quoted):
    """Why src/<folder> may not include target, or None."""
    if folder not in ALLOWED:
        return f"src/{folder} is not in the table of {Path(__file__).name}"
    if target in GENERATED:
        return None if GENERATED[target] == folder else f"{target} belongs to src/{GENERATED[target]}"
    other = folder_of(target)
    if other in ALLOWED:
        permitted = ALLOWED[folder] | {folder}
        if other in permitted or ("doors" in permitted and other.startswith("doors/")):
            return None
        return (
            f"src/{folder} may include {', '.join(sorted(ALLOWED[folder])) or 'no other folder'}, not {other}"
        )
    if quoted and not other and not any(pattern.fullmatch(target) for _, pattern, _ in LIBRARIES):
        return f'write the path from src/, such as "{folder}/{target}"'
    return library_violation(target, folder)


def public_violation(path, target):
    """Why a header in include/headrace may not include target, or None."""
    if folder_of(target) in ALLOWED:
        return "a public header includes no header of src"
    return None if path in PUBLIC_WITH_GGML else library_violation(target, "include")


def binding_violation(target):
    """Why python/src may not include target, or None."""
    if folder_of(target) in ALLOWED:
        return "the Python extension includes public headers (<headrace/...>) only"
    return library_violation(target, "python/src")


def check_text(path, text):
    """The violations in one file, as (line number, message); path is relative to the repository."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        include = INCLUDE.match(line)
        if not include:
            continue
        quoted, target = include[1] == '"', include[2]
        if ".." in target.split("/"):
            found.append((number, "write the path from src/, without .."))
            continue
        if path.startswith("src/"):
            message = src_violation(folder_of(path[len("src/") :]), target, quoted)
        elif path.startswith("include/"):
            message = public_violation(path, target)
        else:
            message = binding_violation(target)
        if message:
            found.append((number, message))
    return found


def check_tree(root):
    """Every violation below root, as one printable line each."""
    lines = []
    for top in ("src", "include", "python/src"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".h", ".cpp", ".inc"):
                name = path.relative_to(root).as_posix()
                found = check_text(name, path.read_text())
                lines += [f"{name}:{number}: {message}" for number, message in found]
    return lines


def main():
    lines = check_tree(Path(__file__).resolve().parent.parent)
    print(*lines, sep="\n", end="\n" if lines else "")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
