#!/usr/bin/env python3
"""The chart in README.md: the first table of docs/performance.md, its rows of the most threads, as bars.

`make docs` writes it; a test compares.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, PICTURE = ROOT / "docs/performance.md", ROOT / "docs/pictures/peers.svg"
PEERS = {"ONNX Runtime": "#4f46e5", "OpenVINO": "#059669", "XNNPACK": "#ea580c"}
LEFT, WIDTH, BAR, GAP, TOP, MOST = 250, 500, 9, 8, 44, 4.0
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1f2937}line{stroke:#6b7280}"
    "@media(prefers-color-scheme:dark){text{fill:#e5e7eb}line{stroke:#9ca3af}}"
)


def rows(page: str) -> list[tuple[str, dict[str, float]]]:
    """Models with their ratios, peer / ours, of the last row that each has."""
    lines = [line for line in page.partition("\n## ")[0].splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    header, found = cells[0], {}
    model = ""
    for row in cells[2:]:
        model = row[0] or model
        found[model] = {peer: float(row[header.index(peer)]) for peer in PEERS}
    return list(found.items())


def picture(models: list[tuple[str, dict[str, float]]]) -> str:
    def x(ratio: float) -> float:
        return LEFT + WIDTH * min(ratio, MOST) / MOST

    step = BAR * len(PEERS) + GAP
    height = TOP + step * len(models) + 8
    title = "How many times as fast as ONNX Runtime, OpenVINO and XNNPACK on two threads"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 60} {height}" '
        f'width="{LEFT + WIDTH + 60}" height="{height}" role="img" aria-label="{title}">',
        f"<title>{title}</title><style>{STYLE}</style>",
    ]
    for index, (peer, color) in enumerate(PEERS.items()):
        at = LEFT + 130 * index
        parts.append(f'<rect x="{at}" y="8" width="11" height="11" fill="{color}"/>')
        parts.append(f'<text x="{at + 16}" y="18">{peer}</text>')
    for index, (model, ratios) in enumerate(models):
        y = TOP + step * index
        label = html.escape(re.sub(r"[*_]", "", model))
        parts.append(f'<text x="{LEFT - 8}" y="{y + 18}" text-anchor="end">{label}</text>')
        for place, (peer, color) in enumerate(PEERS.items()):
            top, end = y + BAR * place, x(ratios[peer])
            parts.append(
                f'<rect x="{LEFT}" y="{top}" width="{end - LEFT:.1f}" height="{BAR - 1}" fill="{color}"/>'
                f'<text x="{end + 4:.1f}" y="{top + 8}" style="font-size:9px">{ratios[peer]:.2f}</text>'
            )
    one = x(1.0)
    parts.append(f'<line x1="{one}" y1="{TOP - 6}" x2="{one}" y2="{height}" stroke-dasharray="3"/>')
    parts.append(f'<text x="{one + 4}" y="{TOP - 8}">as fast</text></svg>')
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(rows(PAGE.read_text(encoding="utf-8"))), encoding="utf-8")
