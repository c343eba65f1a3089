"""Headrace against ONNX Runtime in alternating rounds: `make bench`."""

from __future__ import annotations

import alternate
import minilm
import tiny_graphs

if __name__ == "__main__":
    alternate.run([tiny_graphs.cases, minilm.cases], __doc__, tiny_graphs.overheads)
