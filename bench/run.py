"""Headrace against ONNX Runtime in alternating rounds: `make bench`."""

from __future__ import annotations

import minilm_cases
import tiny_graphs
from headrace._cli import ab_timing

if __name__ == "__main__":
    ab_timing.run([tiny_graphs.cases, minilm_cases.cases], __doc__, tiny_graphs.overheads)
