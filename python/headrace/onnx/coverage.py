"""Which ONNX operators are read: `python -m headrace.onnx.coverage [page.md]`."""

from __future__ import annotations

import sys
from pathlib import Path

from onnx import defs

from . import OPERATORS
from .control_flow import CONTROL_FLOW
from .source import NEWEST, OLDEST

COMPOSED = "where what ONNX makes it of is read"


def how_read(name: str) -> str:
    """ "yes", by what other means, or "" for an operator that is not read."""
    if ("", name) in OPERATORS or name in CONTROL_FLOW:
        return "yes"
    schema = defs.get_schema(name, NEWEST)
    return COMPOSED if schema.has_function or schema.has_context_dependent_function else ""


def names() -> list[str]:
    """ai.onnx's operators in any set that is read."""
    found = {s.name for s in defs.get_all_schemas_with_history() if s.domain == ""}
    return sorted(name for name in found if defs.has(name, NEWEST))


def page() -> str:
    read = {name: how_read(name) for name in names()}
    composed = sum(how == COMPOSED for how in read.values())
    direct = sum(map(bool, read.values())) - composed
    lines = [
        "# ONNX operators that are read",
        "",
        f"Operator sets {OLDEST} to {NEWEST} of ai.onnx: {direct} of {len(read)}, and {composed} more "
        "by what ONNX makes them of. `make docs` writes this page from the table of `headrace.onnx`.",
        "",
        "| operator | read |",
        "|---|---|",
        *(f"| {name} | {how} |" for name, how in read.items()),
        "",
        "Of other domains: "
        + ", ".join(sorted(f"{domain}.{name}" for domain, name in OPERATORS if domain))
        + ". Functions that a model brings along are inlined.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page())
    else:
        print(page(), end="")


if __name__ == "__main__":
    main()
