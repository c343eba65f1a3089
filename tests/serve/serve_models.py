"""Tiny models that tests of the server write: of stories, a script, vectors and ranks, and an adapter.

Some stand in for published models that llama-server's own tests download.
"""

from __future__ import annotations

import string
from pathlib import Path

import gguf
import numpy as np
from gguf import PoolingType, TokenType

WIDTH, LAYERS, HEADS, INNER = 64, 2, 4, 128
CONTEXT = 2048

#: Merges of English, the first first. "▁" begins a word.
MERGES = (
    "▁t", "he", "an", "▁the", "▁a", "st", "er", "as", "em", "im", "ar", "el", "lo", "▁H", "re", "nd", "ed",
    "in", "ing", "▁w", "ou", "▁b", "▁s", "▁o", "▁m", "▁l", "▁me", "ve", "▁and", "or", "en", "▁I", "▁C",
    "▁T", "▁W",
)  # fmt: skip

WORDS = [
    "i",
    "believe",
    "the",
    "meaning",
    "of",
    "life",
    "is",
    "this",
    "a",
    "test",
    "another",
    "hello",
    "world",
    "string",
    "write",
    "joke",
    "about",
    "ai",
    "from",
    "very",
    "long",
    "prompt",
    "which",
    "will",
    "not",
    "be",
    "truncated",
    "base",
    "embedding",
    "output",
    "what",
    "best",
    "panda",
    "bear",
    "china",
    "machine",
    "learning",
    "bread",
]


class Writer:
    """A GGUF file; random numbers come in the order of the calls, the same in every file."""

    def __init__(self, path: Path, architecture: str, seed: int = 7, **split) -> None:
        self.gguf = gguf.GGUFWriter(path, architecture, **split)
        self.random = np.random.default_rng(seed)

    def tensor(self, name: str, values: np.ndarray) -> None:
        self.gguf.add_tensor(name, values.astype(np.float32))

    def matrix(
        self, name: str, rows: int, columns: int, scale: float = 1.0, keeps_first: bool = False
    ) -> None:
        """keeps_first: what it gives is 0 at its first place."""
        values = self.random.standard_normal((rows, columns)) * (scale / columns**0.5)
        if keeps_first:
            values[0] = 0
        self.tensor(name, values)

    def close(self) -> None:
        self.gguf.write_header_to_file()
        self.gguf.write_kv_data_to_file()
        self.gguf.write_tensors_to_file()
        self.gguf.close()

    def shape(self, context: int = CONTEXT) -> None:
        self.gguf.add_context_length(context)
        self.gguf.add_embedding_length(WIDTH)
        self.gguf.add_block_count(LAYERS)
        self.gguf.add_head_count(HEADS)
        self.gguf.add_feed_forward_length(INNER)

    def transformer(self, tokens: int, attention: float = 1.0, has_biases: bool = False) -> None:
        """The tensors of a model that writes letters and merges. attention: the scale of its matrices."""
        # The first place is 1 all the way, so that a row of the output can make its token impossible.
        embeddings = self.random.standard_normal((tokens, WIDTH))
        embeddings[:, 0] = 1
        self.tensor("token_embd.weight", embeddings)
        for layer in range(LAYERS):
            block = f"blk.{layer}."
            self.tensor(block + "attn_norm.weight", np.ones(WIDTH))
            for name in ("attn_q", "attn_k", "attn_v"):
                self.matrix(f"{block}{name}.weight", WIDTH, WIDTH, attention)
                if has_biases:
                    self.tensor(f"{block}{name}.bias", np.zeros(WIDTH))
            self.matrix(block + "attn_output.weight", WIDTH, WIDTH, attention, keeps_first=True)
            self.tensor(block + "ffn_norm.weight", np.ones(WIDTH))
            self.matrix(block + "ffn_gate.weight", INNER, WIDTH)
            self.matrix(block + "ffn_up.weight", INNER, WIDTH)
            self.matrix(block + "ffn_down.weight", WIDTH, INNER, keeps_first=True)
        self.tensor("output_norm.weight", np.ones(WIDTH))
        output = self.random.standard_normal((tokens, WIDTH)) * (1.5 / WIDTH**0.5)
        output[:, 0] = 0
        output[: 3 + 256, 0] = -200
        self.tensor("output.weight", output)


def write_story_model(path: Path, files: int = 1, context: int = CONTEXT, seed: int = 7) -> None:
    """Llama's architecture with random weights, and the vocabulary of its first tokenizers.

    That is bytes, letters and some merges; 1 is "<s>" and 2 "</s>". It writes letters and merges only, and
    never ends an answer. It has no chat template. files: more than one splits it; their names are made of the
    path's. seed: another one gives other weights.
    """
    split = {"split_max_tensors": -(-(3 + LAYERS * 9) // files)} if files > 1 else {}
    writer = Writer(path, "llama", seed, **split)
    writer.gguf.add_name("Tiny Stories")
    writer.shape(context)
    writer.gguf.add_head_count_kv(HEADS)
    writer.gguf.add_layer_norm_rms_eps(1e-5)
    writer.gguf.add_rope_dimension_count(WIDTH // HEADS)
    tokens = add_story_vocabulary(writer.gguf)
    writer.transformer(len(tokens))
    writer.close()


def add_story_vocabulary(
    writer: gguf.GGUFWriter, more: list[str] | None = None, controls: int = 0
) -> list[str]:
    """Returns the tokens; those of more are the last, of which the first few are controls."""
    pieces = [*MERGES, "▁", *string.ascii_letters, *string.digits, *string.punctuation, *(more or [])]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    types = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL, *[TokenType.BYTE] * 256]
    types += [TokenType.NORMAL] * len(pieces)
    for at in range(controls):
        types[len(tokens) - len(more or []) + at] = TokenType.CONTROL
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * (3 + 256) + [-float(rank) for rank in range(len(pieces))])
    writer.add_token_types([int(kind) for kind in types])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(True)
    return tokens


#: Of a text with a gap: before its prefix, before its suffix, and where the gap is filled.
MARKS = ("<PRE>", "<SUF>", "<MID>")


def write_script_model(path: Path, pieces: list[str], marks: bool = False) -> None:
    """Whatever it reads: after a line's end it writes these pieces, each a token, and ends the answer.

    marks: it can fill gaps, and begins after the mark of the middle.
    """
    writer = Writer(path, "llama")
    writer.gguf.add_name("Tiny Script")
    writer.shape()
    writer.gguf.add_head_count_kv(HEADS)
    writer.gguf.add_layer_norm_rms_eps(1e-5)
    writer.gguf.add_rope_dimension_count(WIDTH // HEADS)
    named = list(MARKS) if marks else []
    tokens = add_story_vocabulary(
        writer.gguf, [*named, *(piece.replace(" ", "▁") for piece in pieces)], len(named)
    )
    if marks:
        for kind, mark in zip(("pre", "suf", "mid"), MARKS, strict=True):
            writer.gguf.add_uint32(f"tokenizer.ggml.fim_{kind}_token_id", tokens.index(mark))
    embeddings = writer.random.standard_normal((len(tokens), WIDTH))
    output = np.zeros((len(tokens), WIDTH))
    written = range(len(tokens) - len(pieces), len(tokens))
    for before, after in zip(
        [tokens.index("<MID>" if marks else "<0x0A>"), *written],
        [*written, tokens.index("</s>")],
        strict=True,
    ):
        output[after] = embeddings[before]
    writer.tensor("token_embd.weight", embeddings)
    writer.tensor("output.weight", output)
    writer.tensor("output_norm.weight", np.ones(WIDTH))
    for layer in range(LAYERS):  # they add nothing
        for name, shape in {
            "attn_norm": [WIDTH], "attn_q": [WIDTH, WIDTH], "attn_k": [WIDTH, WIDTH],
            "attn_v": [WIDTH, WIDTH], "attn_output": [WIDTH, WIDTH], "ffn_norm": [WIDTH],
            "ffn_gate": [INNER, WIDTH], "ffn_up": [INNER, WIDTH], "ffn_down": [WIDTH, INNER],
        }.items():  # fmt: skip
            writer.tensor(f"blk.{layer}.{name}.weight", np.zeros(shape))
    writer.close()


def write_vector_model(path: Path, ranks: bool = False) -> None:
    """BERT's architecture with random weights, some words and all letters. ranks: with a ranker's head."""
    writer = Writer(path, "bert")
    writer.gguf.add_name("Tiny Ranker" if ranks else "Tiny Vectors")
    writer.shape()
    writer.gguf.add_layer_norm_eps(1e-12)
    writer.gguf.add_causal_attention(False)
    writer.gguf.add_pooling_type(PoolingType.RANK if ranks else PoolingType.CLS)
    size = add_word_vocabulary(writer.gguf)
    writer.matrix("token_embd.weight", size, WIDTH, scale=WIDTH**0.5)
    writer.matrix("position_embd.weight", CONTEXT, WIDTH)
    writer.matrix("token_types.weight", 2, WIDTH)
    norms = ["token_embd_norm"]
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        matrices = {"attn_q": (WIDTH, WIDTH), "attn_k": (WIDTH, WIDTH), "attn_v": (WIDTH, WIDTH)}
        matrices |= {"attn_output": (WIDTH, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER)}
        for name, (rows, columns) in matrices.items():
            writer.matrix(f"{block}{name}.weight", rows, columns)
            writer.tensor(f"{block}{name}.bias", np.zeros(rows))
        norms += [block + "attn_output_norm", block + "layer_output_norm"]
    for name in norms:
        writer.tensor(name + ".weight", np.ones(WIDTH))
        writer.tensor(name + ".bias", np.zeros(WIDTH))
    if ranks:
        for name, rows in (("cls", WIDTH), ("cls.output", 1)):
            writer.matrix(name + ".weight", rows, WIDTH)
            writer.tensor(name + ".bias", np.zeros(rows))
    writer.close()


def add_word_vocabulary(writer: gguf.GGUFWriter) -> int:
    """Returns its size."""
    controls = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [*string.ascii_lowercase, *string.digits, *string.punctuation]
    words = [f"▁{word}" for word in dict.fromkeys([*WORDS, *letters])]
    tokens = [*controls, *words, *(letter for letter in letters)]
    types = [TokenType.UNKNOWN if token == "[UNK]" else TokenType.CONTROL for token in controls]
    types += [TokenType.NORMAL] * (len(tokens) - len(controls))
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([int(kind) for kind in types])
    writer.add_token_type_count(2)
    writer.add_bos_token_id(tokens.index("[CLS]"))
    writer.add_eos_token_id(tokens.index("[SEP]"))
    writer.add_sep_token_id(tokens.index("[SEP]"))
    writer.add_unk_token_id(tokens.index("[UNK]"))
    writer.add_pad_token_id(tokens.index("[PAD]"))
    writer.add_mask_token_id(tokens.index("[MASK]"))
    return len(tokens)


def write_adapter(path: Path, rank: int = 2) -> None:
    """A LoRA adapter of the story model that changes what it writes."""
    writer = Writer(path, "llama")
    writer.gguf.add_type("adapter")
    writer.gguf.add_string("adapter.type", "lora")
    writer.gguf.add_float32("adapter.lora.alpha", float(rank))
    writer.matrix("blk.0.ffn_down.weight.lora_a", rank, INNER, scale=8)
    writer.matrix("blk.0.ffn_down.weight.lora_b", WIDTH, rank, scale=8)
    writer.close()


def write_all(folder: Path) -> None:
    write_story_model(folder / "stories.gguf")
    write_story_model(folder / "split.gguf", files=3)
    write_vector_model(folder / "vectors.gguf")
    write_vector_model(folder / "ranker.gguf", ranks=True)
    write_adapter(folder / "adapter.gguf")
