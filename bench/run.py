"""Headrace against ONNX Runtime in alternating rounds: `make bench`."""

from __future__ import annotations

import minilm_cases
import tiny_graphs
from headrace._cli import alternate

if __name__ == "__main__":
    alternate.run([tiny_graphs.cases, minilm_cases.cases], __doc__, tiny_graphs.overheads)
