#!/usr/bin/env python3
"""Prints docs/onnxruntime-options.md: what ONNX Runtime's session options do in headrace.onnxruntime."""

from headrace.onnxruntime.entries import ACTING, ACTING_METHODS, KEPT, KEPT_ENTRIES, REFUSED, REFUSED_ENTRIES
from headrace.onnxruntime.options import LOAD_ENTRIES


def table(heads, rows):
    return [
        f"| {' | '.join(heads)} |",
        "|---" * len(heads) + "|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]


def named(rows):
    return [(f"`{name}`", text) for name, text in rows.items()]


def page():
    own = ", ".join(f"`headrace.{name}`" for name in LOAD_ENTRIES)
    refused = [(f"`{key}` = `{entry.value}`", entry.remedy) for key, entry in REFUSED_ENTRIES.items()]
    kept = [(what, ", ".join(f"`{key}`" for key in keys)) for what, keys in KEPT_ENTRIES.items()]
    lines = [
        "# ONNX Runtime's session options",
        "",
        "What they do in [programs of ONNX Runtime](onnxruntime.md) that run by Headrace. `make docs` writes "
        "this page from the tables of `headrace.onnxruntime`.",
        "",
        "## SessionOptions",
        "",
        "These act:",
        "",
        *table(("attribute or method", "does"), named(ACTING | ACTING_METHODS)),
        "These are checked, kept and have no effect:",
        "",
        *table(("attribute", "because"), named(KEPT)),
        "These are refused, by an exception that says so:",
        "",
        *table(("attribute or method", "do this instead"), named(REFUSED)),
        "## Configuration entries",
        "",
        f"`add_session_config_entry(key, value)` with a key of Headrace's own acts: {own} "
        "([settings](onnxruntime.md#settings-of-headraces-own)).",
        "",
        "These are refused (`NotImplemented`), as they would change what the program gets; other values are "
        "kept:",
        "",
        *table(("entry", "do this instead"), refused),
        "All others are kept, `get_session_config_entry` gives them back, and they have no effect; an "
        "unknown key, too, as in ONNX Runtime. ONNX Runtime's are of:",
        "",
        *table(("what it is of", "keys"), kept),
        "`RunOptions`: `terminate` ends a run before it begins. The rest, with `add_run_config_entry`, is "
        "kept and has no effect.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page())
