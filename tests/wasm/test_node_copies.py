"""Tensors of components in Node: the library reads and writes the buffers that hold them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import wasm_chat

SCRIPT = Path(__file__).parent / "node_copies.mjs"
#: Around what has a buffer of its own, and around the first size of the memory that calls share.
SIZES = [0, 1, 4095, 4096, 4097, 65407, 65408, 65409, 300001]


@pytest.fixture(scope="module")
def passed() -> list[dict]:
    try:
        program, _ = wasm_chat.find_node()
    except wasm_chat.MissingError as missing:
        pytest.skip(str(missing))
    done = subprocess.run([program, SCRIPT, *map(str, SIZES)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_tensors_of_all_sizes_reach_the_library_and_come_back(passed):
    assert [one["size"] for one in passed] == SIZES
    for one in passed:
        assert one["right"], one
        assert (one["name"], one["rank"], one["extent"], one["given"]) == ("y", 1, one["size"], one["size"])


def test_a_tensor_from_4096_bytes_on_is_not_copied_between_the_guest_and_the_library(passed):
    assert [one["size"] for one in passed if one["own"]] == [size for size in SIZES if size >= 4096]
