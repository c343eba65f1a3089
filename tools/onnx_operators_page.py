#!/usr/bin/env python3
"""Prints docs/onnx-operators.md: which operators of ONNX's the library's table has."""

from headrace._core import onnx_operators
from onnx import defs

OLDEST, NEWEST = 1, 28


def names():
    """ai.onnx's operators in the newest set that is read; older ones that it no longer has stay in it."""
    found = {schema.name for schema in defs.get_all_schemas_with_history() if schema.domain == ""}
    return sorted(name for name in found if defs.has(name, NEWEST))


def page():
    read = {(domain, name): since for domain, name, since in onnx_operators()}
    standard = names()
    missing = [name for name in standard if ("", name) not in read]
    count = f"{len(standard) - len(missing)} of {len(standard)}"
    others = ", ".join(f"{domain}.{name}" for domain, name in sorted(read) if domain)
    ever = {schema.name for schema in defs.get_all_schemas_with_history()}
    experiments = ", ".join(name for domain, name in sorted(read) if not domain and name not in ever)
    lines = [
        "# ONNX operators that are read",
        "",
        f"Operator sets {OLDEST} to {NEWEST} of ai.onnx: {count}, all but "
        f"{', '.join(missing)}. Of com.microsoft those [at the end](#other-domains); none of ai.onnx.ml. "
        "`make docs` writes this page from the table of `src/doors/onnx` (`headrace::onnx_operators()`).",
        "",
        "| operator | read, from set |",
        "|---|---|",
        *(f"| {name} | {read.get(('', name), 'no')} |" for name in standard),
        "",
        "## Other domains",
        "",
        f"Experiments of old operator sets and of ONNX Runtime in ai.onnx: {experiments}.",
        "",
        f"Of other domains: {others}.",
        "",
        "Functions that a model brings along are read where they are called.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page())
