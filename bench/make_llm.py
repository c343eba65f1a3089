#!/usr/bin/env python3
"""Writes language models of real size with random weights, the same bytes on every machine, for benchmarks.

    python bench/make_llm.py [--size 0.6b|small] [--type TYPE] [--layers N] [--period N] [--output FILE]

"0.6b" has the shape of Qwen3-0.6B: 637 MB as q8_0, 339 MB as q4_0. "small" has 20 MB and is made in a second.
A token is a word like " Bacado", and such words become one token each, so a prompt of N words has N tokens.
With --period the likeliest text goes round in circles of N words, as lists, tables and quoted code do.
"""

import argparse
import itertools
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType, LlamaFileType, TokenType

ROOT = Path(__file__).resolve().parent.parent
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    r"{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    r"{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CONSONANTS, VOWELS = "bcdfghjklmnpqrstvwxyz", "aeiou"


@dataclass(frozen=True)
class Shape:
    """A decoder of the qwen3 architecture, with one matrix for both ends unless it has a period."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    feed_forward: int
    context: int = 40960
    period: int = 0  # words after which greedy text repeats; 0: it is slow to


SIZES = {
    "0.6b": Shape(151936, 1024, 28, 16, 8, 128, 3072),
    "small": Shape(4096, 512, 6, 8, 4, 64, 1536),
}


def half_float(value: float) -> np.ndarray:
    """The bytes of a float16."""
    return np.frombuffer(np.array(value, "<f2").tobytes(), np.uint8)


def q4_k_header(deviation: float) -> np.ndarray:
    """Two float16, then 8 scales and 8 minima of 6 bits, each 32: weights are 32 (first · code - second)."""
    scale = deviation / 32 / (8 / 3**0.5)
    packed = np.repeat(np.uint8([160, 0]), [8, 4])
    return np.concatenate([half_float(scale), half_float(7.5 * scale), packed])


@dataclass(frozen=True)
class BlockFormat:
    """Blocks of weights: what makes the deviation of random data bytes, and those bytes."""

    kind: GGMLQuantizationType
    file_type: LlamaFileType
    elements: int
    header: Callable[[float], np.ndarray]
    data_bytes: int

    def draw(self, generator: np.random.Generator, rows: int, columns: int, deviation: float) -> np.ndarray:
        blocks, header = columns // self.elements, self.header(deviation)
        matrix = np.empty((rows, blocks, len(header) + self.data_bytes), np.uint8)
        matrix[..., : len(header)] = header
        data = np.frombuffer(generator.bytes(rows * blocks * self.data_bytes), np.int8)
        # -128 is no value of q8_0; as two weights of 4 bits it may become another pair.
        np.maximum(data.reshape(rows, blocks, -1), -127, out=matrix[..., len(header) :].view(np.int8))
        return matrix.reshape(rows, -1)


@dataclass(frozen=True)
class PlainFormat:
    """One number for each weight."""

    kind: GGMLQuantizationType
    file_type: LlamaFileType

    def draw(self, generator: np.random.Generator, rows: int, columns: int, deviation: float) -> np.ndarray:
        values = generator.standard_normal((rows, columns), np.float32) * np.float32(deviation)
        return gguf.quants.quantize(values, self.kind).view(np.uint8)


FORMATS = {
    "q8_0": BlockFormat(
        GGMLQuantizationType.Q8_0, LlamaFileType.MOSTLY_Q8_0, 32, lambda d: half_float(d / (127 / 3**0.5)), 32
    ),
    "q4_0": BlockFormat(
        GGMLQuantizationType.Q4_0, LlamaFileType.MOSTLY_Q4_0, 32, lambda d: half_float(d / (8 / 3**0.5)), 16
    ),
    "q4_k": BlockFormat(GGMLQuantizationType.Q4_K, LlamaFileType.MOSTLY_Q4_K_M, 256, q4_k_header, 128),
    "f16": PlainFormat(GGMLQuantizationType.F16, LlamaFileType.MOSTLY_F16),
    "bf16": PlainFormat(GGMLQuantizationType.BF16, LlamaFileType.MOSTLY_BF16),
}
Format = BlockFormat | PlainFormat


def random_matrix(name: str, rows: int, columns: int, deviation: float, form: Format) -> np.ndarray:
    """Independent weights, seeded by the matrix's name: uint8 [rows, bytes of a row]"""
    generator = np.random.Generator(np.random.SFC64(zlib.crc32(name.encode())))
    return form.draw(generator, rows, columns, deviation)


def byte_characters() -> list[str]:
    """How byte-level BPE spells each byte: printable Latin-1 as itself, the others from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = itertools.count(256)
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def merges() -> Iterator[tuple[str, str]]:
    """Pairs that join, so that each word " Bacado" becomes one token, left to right, whatever follows it."""
    space = byte_characters()[ord(" ")]
    syllables = [consonant + vowel for consonant in CONSONANTS for vowel in VOWELS]
    yield from itertools.product(CONSONANTS, VOWELS)
    starts = [space + consonant.upper() for consonant in CONSONANTS]
    yield from itertools.product([space], CONSONANTS.upper())
    yield from itertools.product(starts, VOWELS)
    words = [start + vowel for start in starts for vowel in VOWELS]
    while True:
        yield from itertools.product(words, syllables)
        words = [word + syllable for word in words for syllable in syllables]


def add_tokenizer(writer: gguf.GGUFWriter, vocabulary: int) -> None:
    first = [*byte_characters(), *SPECIAL_TOKENS]
    pairs = list(itertools.islice(merges(), vocabulary - len(first)))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([*first, *map("".join, pairs)])
    types = [TokenType.NORMAL] * 256 + [TokenType.CONTROL] * len(SPECIAL_TOKENS)
    writer.add_token_types([int(kind) for kind in types] + [int(TokenType.NORMAL)] * len(pairs))
    writer.add_token_merges([" ".join(pair) for pair in pairs])
    writer.add_bos_token_id(first.index("<|endoftext|>"))
    writer.add_eos_token_id(first.index("<|im_end|>"))
    writer.add_eot_token_id(first.index("<|im_end|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def is_silent(token: int) -> bool:
    """Bytes that alone are no printable text, and special tokens, should never be generated."""
    return token < 256 + len(SPECIAL_TOKENS) and not (token < 128 and chr(token).isprintable())


def embeddings(shape: Shape, form: Format) -> np.ndarray:
    matrix = random_matrix("token_embd.weight", shape.vocabulary, shape.width, 0.05, form)
    silent = [token for token in range(shape.vocabulary) if is_silent(token)]
    matrix[silent] = 0  # scales of 0
    return matrix


def successors(shape: Shape) -> np.ndarray:
    """The word that follows each token: the next of its circle of `period` words, or some word."""
    first = 256 + len(SPECIAL_TOKENS)
    circles = (shape.vocabulary - first) // shape.period
    tokens = np.arange(shape.vocabulary)
    index = (tokens - first) % (circles * shape.period)  # what is no word, or in no whole circle, enters one
    return first + index - index % shape.period + (index + 1) % shape.period


def circling_output(shape: Shape, embedded: np.ndarray) -> np.ndarray:
    """An output matrix to which each token looks like the word before it."""
    matrix = np.zeros_like(embedded)  # scales of 0: never likely
    words = np.arange(256 + len(SPECIAL_TOKENS), shape.vocabulary)
    following = successors(shape)[words]
    kept, place = np.unique(following, return_index=True)
    matrix[kept] = embedded[words[place]]
    return matrix


def matrices(shape: Shape) -> dict[str, tuple[int, int, float]]:
    """Rows, columns and gain of a layer's matrices; with these, greedy text is slow to run in circles, or
    follows its circle, since the layers hardly change what they get."""
    queries, keys = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    written = 1e-3 if shape.period else 1.0
    return {
        "attn_q": (queries, shape.width, 1.0),
        "attn_k": (keys, shape.width, 1.0),
        "attn_v": (keys, shape.width, 1.0),
        "attn_output": (shape.width, queries, 0.25 * written),
        "ffn_gate": (shape.feed_forward, shape.width, 1.0),
        "ffn_up": (shape.feed_forward, shape.width, 1.0),
        "ffn_down": (shape.width, shape.feed_forward, written),
    }


def norms(shape: Shape) -> dict[str, int]:
    head, width = shape.head_size, shape.width
    return {"attn_norm": width, "ffn_norm": width, "attn_q_norm": head, "attn_k_norm": head}


def add_shape(writer: gguf.GGUFWriter, shape: Shape) -> None:
    writer.add_vocab_size(shape.vocabulary)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_size)
    writer.add_value_length(shape.head_size)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_rope_freq_base(1e6)
    writer.add_layer_norm_rms_eps(1e-6)


def write_model(output: Path, shape: Shape, form: Format) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(output, "qwen3")
    writer.add_name("Random weights")
    writer.add_file_type(form.file_type)
    add_shape(writer, shape)
    add_tokenizer(writer, shape.vocabulary)
    embedded = embeddings(shape, form)
    writer.add_tensor("token_embd.weight", embedded, raw_dtype=form.kind)
    if shape.period:
        writer.add_tensor("output.weight", circling_output(shape, embedded), raw_dtype=form.kind)
    writer.add_tensor("output_norm.weight", np.ones(shape.width, np.float32))
    for layer in range(shape.layers):
        for part, size in norms(shape).items():
            writer.add_tensor(f"blk.{layer}.{part}.weight", np.ones(size, np.float32))
        for part, (rows, columns, gain) in matrices(shape).items():
            name = f"blk.{layer}.{part}.weight"
            matrix = random_matrix(name, rows, columns, gain * columns**-0.5, form)
            writer.add_tensor(name, matrix, raw_dtype=form.kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="0.6b", help="default: %(default)s")
    parser.add_argument("--type", choices=FORMATS, default="q8_0", help="default: %(default)s")
    parser.add_argument("--layers", type=int, help="another number of layers than the size's")
    parser.add_argument("--period", type=int, default=0, help="words after which greedy text repeats")
    parser.add_argument("--output", type=Path, help="default: build/bench/SIZE-TYPE.gguf")
    arguments = parser.parse_args()
    shape = SIZES[arguments.size]
    if arguments.layers is not None:
        if arguments.layers < 1:
            parser.error(f"--layers must be 1 or more, not {arguments.layers}")
        shape = replace(shape, layers=arguments.layers)
    if not 0 <= arguments.period <= shape.vocabulary // 2:
        parser.error(f"--period must be 0 to {shape.vocabulary // 2}, not {arguments.period}")
    shape = replace(shape, period=arguments.period)
    output = arguments.output or ROOT / f"build/bench/{arguments.size}-{arguments.type}.gguf"
    write_model(output, shape, FORMATS[arguments.type])
    print(f"{output}: {output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
