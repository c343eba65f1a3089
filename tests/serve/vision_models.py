"""Tiny models that read images, with random weights: language models and the projectors that see for them.

`llava` reads an image of one size in order, `gemma3` at once and with a sliding window, and `qwen2vl` in its
own size, at positions of several dimensions.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from serve_models import HEADS, LAYERS, WIDTH, Writer, add_story_vocabulary

SEEING, SEEING_LAYERS, SEEING_HEADS, SEEING_INNER = 32, 3, 2, 64
IMAGE, PATCH = 32, 8
KINDS = ("llava", "gemma3", "qwen2vl")
ARCHITECTURES = {"llava": "llama", "gemma3": "gemma3", "qwen2vl": "qwen2vl"}
#: Tokens that every other layer of gemma3 looks back: less than a prompt has.
WINDOW = 24
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
PROJECTORS = {"llava": "mlp", "gemma3": "gemma3", "qwen2vl": "qwen2vl_merger"}


def write_language_model(path: Path, kind: str, context: int = 1024) -> None:
    """The story model with a chat template, of the kind's architecture."""
    writer = Writer(path, ARCHITECTURES[kind])
    writer.gguf.add_name(f"Tiny {kind}")
    writer.shape(context)
    writer.gguf.add_head_count_kv(HEADS)
    writer.gguf.add_layer_norm_rms_eps(1e-5)
    writer.gguf.add_rope_dimension_count(WIDTH // HEADS)
    if kind == "qwen2vl":
        writer.gguf.add_rope_dimension_sections([4, 2, 2, 0])
    if kind == "gemma3":
        writer.gguf.add_key_length(WIDTH // HEADS)
        writer.gguf.add_value_length(WIDTH // HEADS)
        writer.gguf.add_sliding_window(WINDOW)
        writer.gguf.add_sliding_window_pattern(2)
    writer.gguf.add_chat_template(TEMPLATE)
    tokens = add_story_vocabulary(writer.gguf)
    writer.transformer(len(tokens), attention=2, has_biases=kind == "qwen2vl")
    if kind == "gemma3":
        for layer in range(LAYERS):
            for name in ("attn_q_norm", "attn_k_norm"):
                writer.tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH // HEADS))
            # Its embeddings are multiplied by 8: what layers add must be heard beside them.
            for name in ("post_attention_norm", "post_ffw_norm"):
                writer.tensor(f"blk.{layer}.{name}.weight", np.full(WIDTH, 12))
    writer.close()


def write_projector(path: Path, kind: str) -> None:
    writer = Writer(path, "clip")
    add = writer.gguf
    add.add_string("general.type", "mmproj")
    add.add_bool("clip.has_vision_encoder", True)
    add.add_string("clip.projector_type", PROJECTORS[kind])
    add.add_bool("clip.use_gelu", True)
    for name, value in {
        "image_size": IMAGE, "patch_size": PATCH, "embedding_length": SEEING,
        "feed_forward_length": SEEING_INNER, "block_count": SEEING_LAYERS, "projection_dim": WIDTH,
        "attention.head_count": SEEING_HEADS,
    }.items():  # fmt: skip
        add.add_uint32(f"clip.vision.{name}", value)
    add.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    for name in ("image_mean", "image_std"):
        add.add_array(f"clip.vision.{name}", [0.5, 0.5, 0.5])
    if kind == "gemma3":
        add.add_uint32("clip.vision.projector.scale_factor", 2)
    add_seeing_layers(writer, kind)
    inner = 4 * SEEING if kind == "qwen2vl" else SEEING
    if kind == "gemma3":
        writer.tensor("mm.soft_emb_norm.weight", np.ones(SEEING))
        writer.matrix("mm.input_projection.weight", SEEING, WIDTH, scale=4)
    else:
        writer.matrix("mm.0.weight", inner, inner, scale=2)
        writer.matrix("mm.2.weight", WIDTH, inner, scale=2)
        writer.tensor("mm.0.bias", np.zeros(inner))
        writer.tensor("mm.2.bias", np.zeros(WIDTH))
    writer.close()


def add_seeing_layers(writer: Writer, kind: str) -> None:
    def patches(name: str) -> None:
        values = writer.random.standard_normal((SEEING, 3, PATCH, PATCH)) / PATCH
        writer.tensor(name, values)

    patches("v.patch_embd.weight")
    if kind == "qwen2vl":
        patches("v.patch_embd.weight.1")
    else:
        writer.matrix("v.position_embd.weight", (IMAGE // PATCH) ** 2, SEEING)
    norms = ["v.post_ln"]
    for layer in range(SEEING_LAYERS):
        block = f"v.blk.{layer}."
        matrices = {name: (SEEING, SEEING) for name in ("attn_q", "attn_k", "attn_v", "attn_out")}
        matrices |= {"ffn_up": (SEEING_INNER, SEEING), "ffn_down": (SEEING, SEEING_INNER)}
        for name, (rows, columns) in matrices.items():
            writer.matrix(f"{block}{name}.weight", rows, columns)
            writer.tensor(f"{block}{name}.bias", np.zeros(rows))
        norms += [block + "ln1", block + "ln2"]
    for name in norms:
        writer.tensor(name + ".weight", np.ones(SEEING))
        writer.tensor(name + ".bias", np.zeros(SEEING))


def write_pair(folder: Path, kind: str) -> tuple[Path, Path]:
    """The language model and its projector."""
    model, projector = folder / f"{kind}.gguf", folder / f"mmproj-{kind}.gguf"
    write_language_model(model, kind)
    write_projector(projector, kind)
    return model, projector


def png(seed: int, width: int = 48, height: int = 40) -> bytes:
    """A picture of squares, another one for each seed."""
    colors = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    rows = np.arange(height) * 4 // height
    columns = np.arange(width) * 4 // width
    return png_of(colors[rows][:, columns])


def png_of(pixels: np.ndarray) -> bytes:
    """uint8 [height, width, 3]"""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )
