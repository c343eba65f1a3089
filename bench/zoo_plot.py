"""Ratios of the zoo benchmark as a picture."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from zoo_peers import Row

ROW, LEFT, WIDTH, MOST = 16, 260, 520, 8.0
COLORS = {"ONNX Runtime": "#3b6fb6", "OpenVINO": "#7a4fa3", "XNNPACK": "#c07a1e", "torch.compile": "#b5413b"}


def _x(ratio: float) -> float:
    """1 is in the middle; each side doubles or halves."""
    limited = min(max(ratio, 1 / MOST), MOST)
    return LEFT + WIDTH / 2 * (1 + math.log(limited) / math.log(MOST))


def write_plot(rows: list[Row], path: Path) -> None:
    """A bar a comparison, to the right of the line where Headrace is faster."""
    height = ROW * (len(rows) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 80}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for index, row in enumerate(rows):
        y, start, end = ROW * (index + 1), *sorted((_x(1.0), _x(row.ratio)))
        label = html.escape(f"{row.case} {row.threads}T, {row.peer}")
        parts.append(f'<text x="{LEFT - 8}" y="{y + 11}" text-anchor="end">{label}</text>')
        parts.append(
            f'<rect x="{start:.1f}" y="{y + 2}" width="{end - start:.1f}" height="{ROW - 4}" '
            f'fill="{COLORS.get(row.peer, "#777")}"/>'
        )
        parts.append(f'<text x="{max(end, _x(1.0)) + 4:.1f}" y="{y + 11}">{row.ratio:.2f}</text>')
    middle = _x(1.0)
    parts.append(f'<line x1="{middle}" y1="0" x2="{middle}" y2="{height}" stroke="black"/>')
    parts.append(f'<text x="{middle + 4}" y="11">Headrace is faster: peer / ours, logarithmic</text></svg>')
    path.write_text("\n".join(parts) + "\n")
