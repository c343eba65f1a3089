"""The tiny chat model as GGUF: llama architecture, byte-level BPE, ChatML, matrices in Q8_0."""

import json
from pathlib import Path

import gguf
from gguf import GGMLQuantizationType, LlamaFileType, TokenType
from tokenizers import Tokenizer

from tiny_chat import corpus
from tiny_chat.model import Shape, TinyChat

NAME = "Tiny Chat"
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    r"{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    r"{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def write_gguf(path: Path, model: TinyChat, tokenizer: Tokenizer) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(NAME)
    writer.add_license("Apache-2.0")
    writer.add_file_type(LlamaFileType.MOSTLY_Q8_0)
    add_shape(writer, model.shape)
    add_tokenizer(writer, tokenizer)
    for name, weight in model.state_dict().items():
        values = weight.float().numpy()
        if values.ndim == 1:
            writer.add_tensor(name, values)
        else:
            kind = GGMLQuantizationType.Q8_0
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


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
    writer.add_rope_dimension_count(shape.head_size)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(shape.norm_epsilon)


def add_tokenizer(writer: gguf.GGUFWriter, tokenizer: Tokenizer) -> None:
    bpe = json.loads(tokenizer.to_str())
    special = {token["id"] for token in bpe["added_tokens"]}
    tokens = sorted(bpe["model"]["vocab"], key=bpe["model"]["vocab"].get)
    types = [TokenType.CONTROL if index in special else TokenType.NORMAL for index in range(len(tokens))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([int(kind) for kind in types])
    writer.add_token_merges([" ".join(merge) for merge in bpe["model"]["merges"]])
    end_of_conversation = tokenizer.token_to_id(corpus.END_OF_CONVERSATION)
    writer.add_bos_token_id(end_of_conversation)
    writer.add_pad_token_id(end_of_conversation)
    writer.add_eos_token_id(tokenizer.token_to_id(corpus.END))
    writer.add_eot_token_id(tokenizer.token_to_id(corpus.END))
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
