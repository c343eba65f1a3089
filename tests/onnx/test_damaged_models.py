"""Damaged models: they are refused, in little time and memory, and never dies."""

from __future__ import annotations

import random
import resource
import time

import operator_cases as cases
import pytest
from damage import damaged
from headrace.onnx import import_graph
from onnx import parser

CONTENTS = [c.model(dims=True).SerializeToString() for c in cases.CASES[::7]]


def test_damaged_models_are_read_or_refused() -> None:
    rng = random.Random(7)
    refused = 0
    for _ in range(3000):
        content = damaged(rng.choice(CONTENTS), rng.choice(CONTENTS), rng)
        begin = time.monotonic()
        try:
            import_graph(content)
        except ValueError:
            refused += 1
        except MemoryError:
            refused += 1
        assert time.monotonic() - begin < 5
    assert refused > 1000


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no graph"),
        (b"\x3a", "cut off"),
        (b"hello, world", "cut off"),
        (b"\x3a\x00", "no graph with outputs"),
        (b"\x3a\x02\x62\x00", "operator set"),
    ],
)
def test_what_is_no_model_is_said_to_be_none(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        import_graph(content)


def test_many_empty_messages_take_no_more_memory_than_the_file() -> None:
    """A node of two bytes must not become a hundred times as many."""
    made = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
    )
    nodes = b"\x0a\x00" * 4_000_000
    size = len(nodes)
    length = bytes(
        (size >> 7 * i & 0x7F) | (0x80 if size >> 7 * (i + 1) else 0) for i in range(4) if size >> 7 * i
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="this operator is not read"):
        import_graph(b"\x3a" + length + nodes + made.SerializeToString())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # KiB, for 8 MB


def test_lengths_beyond_the_file_and_extents_beyond_memory_are_refused() -> None:
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Add(x, w) }'
    )
    tensor = model.graph.initializer.add(name="w", data_type=1)
    for dims in ([2**40], [2**62, 2], [2**31] * 8, [-1]):
        del tensor.dims[:]
        tensor.dims.extend(dims)
        with pytest.raises(ValueError, match="initializer 'w' cannot be read"):
            import_graph(model.SerializeToString())
