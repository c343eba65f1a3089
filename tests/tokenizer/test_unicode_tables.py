"""The tables of characters are those that tools/unicode_tables.py writes."""

from __future__ import annotations

import re
from bisect import bisect_right

import pytest
import unicode_tables

DATA = unicode_tables.OUTPUT.read_text()


def entries(name: str) -> list[list[int]]:
    lines = re.search(rf"{name} =\n(.*?);\n", DATA + "\n", re.DOTALL)[1]
    text = "".join(re.findall(r'"(.*)"', lines))
    return [[int(number, 16) for number in entry.split(" ")] for entry in text.split(";") if entry]


@pytest.mark.parametrize("first", range(0, 0x20000, 0x8000))
def test_every_97th_character_has_the_properties_that_the_library_sees(first):
    runs = entries("kPropertyRuns")
    starts = [start for start, _ in runs]
    tests = unicode_tables.property_tests()
    for code in range(first, first + 0x8000, 97):
        if 0xD800 <= code < 0xE000:
            continue
        bits = runs[bisect_right(starts, code) - 1][1]
        expected = sum(test(chr(code)) << i for i, test in enumerate(tests.values()))
        assert bits == expected, hex(code)


def test_mappings_are_the_librarys():
    for name, function in (
        ("kLowercase", unicode_tables.normalizers.Lowercase().normalize_str),
        ("kCanonical", unicode_tables.NFD.normalize_str),
        ("kCompatible", unicode_tables.NFKD.normalize_str),
    ):
        for code, *parts in entries(name):
            assert function(chr(code)) == "".join(map(chr, parts)), hex(code)
    for code, *parts in entries("kCompositions"):
        assert unicode_tables.NFC.normalize_str("".join(map(chr, parts))) == chr(code)
