"""Writes models for the MLX backend's tests: quantised layers, a chat model in f32, encoders of images."""

from __future__ import annotations

import struct
import zlib

import gguf
import numpy as np


def write(writer, tensors):
    for name, values in tensors.items():
        writer.add_tensor(name, np.ascontiguousarray(values, np.float32))
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_q4_0_model(path, layers=12, width=2048, hidden=8192, vocabulary=512):
    """A llama of 455 MB, nearly all of it matrices of random codes, without a tokenizer."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("no_vocab")
    writer.add_vocab_size(vocabulary)
    writer.add_context_length(512)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(hidden)
    writer.add_head_count(width // 128)
    writer.add_head_count_kv(width // 512)
    writer.add_layer_norm_rms_eps(1e-5)
    random = np.random.default_rng(1)

    def matrix(name, rows, columns):
        blocks = random.integers(0, 256, (rows, columns // 32, 18), dtype=np.uint8)
        blocks[..., :2] = np.array([0.002], np.float16).view(np.uint8)
        writer.add_tensor(name, blocks.reshape(rows, -1), raw_dtype=gguf.GGMLQuantizationType.Q4_0)

    matrix("token_embd.weight", vocabulary, width)
    matrix("output.weight", vocabulary, width)
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    sizes = {"attn_q": width, "attn_k": width // 4, "attn_v": width // 4, "attn_output": width}
    for layer in range(layers):
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{norm}.weight", np.ones(width, np.float32))
        for name, rows in {**sizes, "ffn_gate": hidden, "ffn_up": hidden}.items():
            matrix(f"blk.{layer}.{name}.weight", rows, width)
        matrix(f"blk.{layer}.ffn_down.weight", width, hidden)
    finish(writer)


def write_f32_copy(source, path):
    """The same model with every tensor in f32."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path, reader.get_field("general.architecture").contents())
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        nested = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, nested)
    write(writer, {t.name: gguf.dequantize(t.data, t.tensor_type) for t in reader.tensors})


def write_image_encoder(path, projector, text_width, width=64, hidden=128, layers=2, image=64, patch=8):
    """A small vision transformer for llama.cpp's --mmproj: "gemma3" pools patches, "mlp" is LLaVA's."""
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", projector)
    writer.add_bool("clip.use_gelu", projector == "gemma3")
    numbers = {"image_size": image, "patch_size": patch, "embedding_length": width, "block_count": layers}
    numbers |= {"feed_forward_length": hidden, "projection_dim": text_width, "attention.head_count": 4}
    for key, value in numbers.items():
        writer.add_uint32(f"clip.vision.{key}", value)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-6)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])
    random = np.random.default_rng(2)

    def matrix(*shape):
        return random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))

    def norm(name):
        return {f"{name}.weight": 1 + 0.1 * matrix(width), f"{name}.bias": 0.1 * matrix(width)}

    patches = (image // patch) ** 2
    tensors = {"v.patch_embd.weight": matrix(width, 3, patch, patch)}
    if projector == "gemma3":
        tensors["v.patch_embd.bias"] = 0.1 * matrix(width)
        tensors["v.position_embd.weight"] = 0.5 * matrix(patches, width)
        tensors |= norm("v.post_ln")
        tensors["mm.input_projection.weight"] = matrix(width, text_width)
        tensors["mm.soft_emb_norm.weight"] = 1 + 0.1 * matrix(width)
    else:
        tensors["v.class_embd"] = matrix(width)
        tensors["v.position_embd.weight"] = 0.5 * matrix(patches + 1, width)
        tensors |= norm("v.pre_ln")
        for index, columns in {0: width, 2: text_width}.items():
            tensors[f"mm.{index}.weight"] = matrix(text_width, columns)
            tensors[f"mm.{index}.bias"] = 0.1 * matrix(text_width)
    for layer in range(layers):
        block = f"v.blk.{layer}"
        tensors |= norm(f"{block}.ln1") | norm(f"{block}.ln2")
        sizes = {name: (width, width) for name in ("attn_q", "attn_k", "attn_v", "attn_out")}
        sizes |= {"ffn_up": (hidden, width), "ffn_down": (width, hidden)}
        for name, (rows, columns) in sizes.items():
            tensors[f"{block}.{name}.weight"] = matrix(rows, columns)
            tensors[f"{block}.{name}.bias"] = 0.1 * matrix(rows)
    write(writer, tensors)


def png(pixels):
    """A PNG file of uint8 pixels [rows, columns, 3]"""
    rows, columns, _ = pixels.shape

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )
