"""What several replicas say to Prometheus, as one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def merged(pages: Mapping[str, str]) -> str:
    """One page of several in Prometheus's text format; each sample gets the label `replica`, its page's key.

    The samples of a metric stay together, under its HELP and TYPE, as the format wants it.
    """
    families: dict[str, tuple[list[str], list[str]]] = {}  # by the metric's name: what describes it, samples
    for replica, page in pages.items():
        name = ""
        for line in page.splitlines():
            if line.startswith("# HELP "):
                name = line.split(" ", 3)[2]
            about, samples = families.setdefault(name, ([], []))
            if not line.startswith("#"):
                samples.append(_labeled(line, replica))
            elif line not in about:
                about.append(line)
    return "".join(f"{line}\n" for about, samples in families.values() for line in (*about, *samples))


def _labeled(sample: str, replica: str) -> str:
    """`name{a="b"} 1`, or `name 1`, with one label more. A label's text may hold braces and spaces."""
    name, brace, rest = sample.partition("{")
    if brace and " " not in name:
        return f'{name}{{replica="{replica}",{rest}'
    name, _, value = sample.partition(" ")
    return f'{name}{{replica="{replica}"}} {value}'
