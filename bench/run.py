"""Headrace against ONNX Runtime in alternating rounds: `make bench`."""

from __future__ import annotations

import minilm
import tiny_graphs
from headrace import alternate

if __name__ == "__main__":
    alternate.run([tiny_graphs.cases, minilm.cases], __doc__, tiny_graphs.overheads)
