#!/usr/bin/env python3
"""Writes src/tokenizer/unicode_data.inc: what Hugging Face's tokenizers (as requirements.txt pins them) take
each character for, asked of that library itself, character by character. Half a minute.

Its parts know different versions of Unicode (Rust's own tables for cases and white space, others for marks,
punctuation, normal forms, regular expressions and graphemes), so that no table of one version would agree.
"""

import struct
import sys
import unicodedata
from functools import partial
from pathlib import Path

from tokenizers import Regex, normalizers, pre_tokenizers

OUTPUT = Path(__file__).resolve().parent.parent / "src/tokenizer/unicode_data.inc"
CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)  # composed by rule
#: In the order of their bits; src/tokenizer/unicode.h names them alike.
PROPERTIES = [
    "bert_removed",
    "space",
    "nonspacing_mark",
    "combining_mark",
    "bert_punctuation",
    "punctuation",
    "numeric",
    "letter",
    "number",
    "pattern_space",
    "word",
    "joins",
    "spacing_mark",
    "prepends",
    "breaks",
    "pictographic",
    "indic_consonant",
    "indic_linker",
]


def removes(normalizer, text):
    return normalizer.normalize_str(text) == ""


def splits(pre_tokenizer, text):
    """Whether the character stands alone between two letters, or is dropped there."""
    return len(pre_tokenizer.pre_tokenize_str(f"a{text}a")) > 1


def matches(pattern, text):
    return not pattern.pre_tokenize_str(text)


def everything_charsmap():
    """A map of sentencepiece's kind that makes X of every character in use: a double array of bytes."""
    tree = {}
    for c in [*range(1, 0xD800), *range(0xE000, 0x1FFFF), *range(0xE0000, 0xE0200)]:
        node = tree
        for byte in chr(c).encode():
            node = node.setdefault(byte, {})
    units, waiting, nodes, leaves = {}, [(0, 0, tree)], 0, 1 << 20
    while waiting:
        place, label, children = waiting.pop()
        if children:
            nodes += 256
            base = nodes
            waiting += [(base ^ byte, byte, child) for byte, child in children.items()]
        else:  # its value, the first text, lies where the byte 0 leads
            leaves += 1
            base = leaves
            units[base] = 1 << 31
        units[place] = label | (place ^ base) << 10 | (not children) << 8
    array = [units.get(i, 0) for i in range((leaves | 255) + 1)]
    return struct.pack(f"<I{len(array)}I", 4 * len(array), *array) + b"X\0"


def grapheme_tests():
    """A cluster of fewer than 6 bytes becomes one X, any other an X for each character."""
    to_x = normalizers.Precompiled(everything_charsmap())

    def count(*parts):
        return len(to_x.normalize_str("".join(parts)))

    return {
        "joins": lambda c: count("a", c) == 1,
        "spacing_mark": lambda c: count("a", c) == 1 and count("©", c, "\u200d", "©\u0301") == 4,
        "prepends": lambda c: count(c, "a") == 1,
        "breaks": lambda c: ord(c) < 0x10000 and count(c, "\u0301") == 2 and len(c.encode()) < 4,
        "pictographic": lambda c: count("©\u200d", c) == 3 and count("a", c) == 2,
        "indic_consonant": lambda c: (
            (len(c.encode()) == 3 and count("क\u094d", c, "\u0301") == 4 and count(c, "\u0301") == 1)
            and count("a", c) == 2
        ),
        "indic_linker": lambda c: count("क", c, "क\u0301") == 4 and count("क", c, "©\u0301") != 4,
    }


def property_tests():
    bert = partial(
        normalizers.BertNormalizer,
        clean_text=False,
        handle_chinese_chars=False,
        strip_accents=False,
        lowercase=False,
    )

    def removed(pattern):
        return partial(matches, pre_tokenizers.Split(Regex(pattern), "removed"))

    marks, spaces = bert(strip_accents=True), pre_tokenizers.WhitespaceSplit()
    return {
        "bert_removed": partial(removes, bert(clean_text=True)),
        "space": partial(matches, pre_tokenizers.WhitespaceSplit()),
        "nonspacing_mark": lambda c: NFD.normalize_str(c) == c and removes(marks, c),
        "combining_mark": partial(removes, normalizers.StripAccents()),
        "bert_punctuation": lambda c: len(pre_tokenizers.BertPreTokenizer().pre_tokenize_str(f"a{c}a")) == 3,
        "punctuation": partial(splits, pre_tokenizers.Punctuation()),
        "numeric": partial(splits, pre_tokenizers.Digits()),
        "letter": removed(r"\p{L}"),
        "number": removed(r"\p{N}"),
        "pattern_space": removed(r"\s"),
        "word": lambda c: (
            len(pre_tokenizers.Whitespace().pre_tokenize_str("a" + c)) == 1 and not matches(spaces, c)
        ),
        **grapheme_tests(),
    }


NFC, NFD, NFKD = normalizers.NFC(), normalizers.NFD(), normalizers.NFKD()


def combining_class(c):
    """Python's, which never changes, where the library reorders the mark."""
    known = unicodedata.combining(chr(c))
    if known == 0:
        return 0
    before, after = (chr(c), "\u0334") if known > 1 else ("\u0301", chr(c))
    return known if NFD.normalize_str(before + after) == after + before else 0


def hexadecimal(text):
    return " ".join(f"{ord(c):X}" for c in text)


def runs_of_properties():
    tests, before = property_tests(), None
    if list(tests) != PROPERTIES:
        raise SystemExit(f"the tests are of {list(tests)}")
    tests = list(tests.values())
    for c in CHARACTERS:
        bits = sum(test(chr(c)) << i for i, test in enumerate(tests))
        if bits != before:
            yield f"{c:X} {bits:X}"
        before = bits


def runs_of_classes():
    before = 0
    for c in CHARACTERS:
        number = combining_class(c)
        if number != before:
            yield f"{c:X} {number:X}"
        before = number


def mapped(function, ignored=lambda c, text: False):
    for c in CHARACTERS:
        text = function(chr(c))
        if text != chr(c) and c not in HANGUL and not ignored(c, text):
            yield f"{c:X} {hexadecimal(text)}"


def compositions():
    for c in CHARACTERS:
        parts = unicodedata.decomposition(chr(c)).split()
        if len(parts) != 2 or parts[0].startswith("<") or c in HANGUL:
            continue
        if NFC.normalize_str("".join(chr(int(part, 16)) for part in parts)) == chr(c):
            yield f"{c:X} {parts[0].lstrip('0')} {parts[1].lstrip('0')}"


def table(name, entries):
    """A text of entries that end with ';', in lines of 110 characters."""
    lines, line = [], ""
    for entry in entries:
        if len(line) + len(entry) > 105:
            lines.append(line)
            line = ""
        line += entry + ";"
    texts = [f'    "{text}"' for text in [*lines, line]]
    return [f"constexpr std::string_view {name} =", *texts[:-1], texts[-1] + ";"]


def text():
    lines = [
        "// Written by tools/unicode_tables.py. Numbers are hexadecimal.",
        f"// From a character on, until the next: bits of {', '.join(PROPERTIES)}.",
        *table("kPropertyRuns", runs_of_properties()),
        "// From a character on, until the next: the canonical combining class.",
        *table("kClassRuns", runs_of_classes()),
        "// A character, and what it becomes.",
        *table("kLowercase", mapped(normalizers.Lowercase().normalize_str)),
        *table("kCanonical", mapped(NFD.normalize_str)),
        "// The same, where it is not the canonical decomposition.",
        *table("kCompatible", mapped(NFKD.normalize_str, lambda c, text: text == NFD.normalize_str(chr(c)))),
        "// A character, and the two that it is composed of.",
        *table("kCompositions", compositions()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    OUTPUT.write_text(text())
