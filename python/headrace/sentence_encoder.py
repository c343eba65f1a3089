"""Vectors of sentences, called as sentence-transformers and fastembed are: docs/sentence-embeddings.md."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from ._core import TextEncoder
from ._similarities import normalized, similarities, tensor
from ._texts import batches, check_batch_size, several, texts_of, vectors_of, with_characters

# Names that exporters give a model's file, in its folder or in that folder's "onnx"; the plain one first.
_NAMES = ("model.onnx", "model.hrg", "model_optimized.onnx", "model_quantized.onnx")
_AT_ONCE = 4096  # texts that are handed over together: their vectors are made in batches of near lengths
_PROMPTS_OF_DOCUMENTS = ("document", "passage", "corpus")
_POOLINGS = {
    "lasttoken": "last",
    "mean_sqrt_len_tokens": "mean_sqrt_length",
}  # as the folders' files have them

# What the two libraries' constructors take for downloads, devices and Python's own models: it says nothing of
# a folder on the CPU.
_OF_SENTENCE_TRANSFORMERS = (
    *("cache_folder", "config_kwargs", "local_files_only", "model_card_data", "modules", "revision", "token"),
    *("tokenizer_kwargs", "trust_remote_code", "use_auth_token"),
)
_OF_FASTEMBED = (
    *("cuda", "device_ids", "enable_cpu_mem_arena", "extra_session_options", "lazy_load"),
    *("local_files_only", "providers"),
)


class SentenceEncoder:
    """A sentence-transformers model in a local folder: SentenceEncoder(folder).encode(sentences).

    The folder has an ONNX model (onnx/model.onnx, model.onnx, an optimised or quantised one) or a graph file,
    tokenizer.json, and what sentence-transformers writes beside: modules.json, 1_Pooling/config.json,
    sentence_bert_config.json, config_sentence_transformers.json. Threads may call it at the same time.

    prompts, default_prompt_name, max_seq_length, truncate_dim: as sentence-transformers has them.
    """

    def __init__(
        self,
        model_name_or_path: str | os.PathLike[str],
        *,
        device: str | None = None,
        prompts: dict[str, str] | None = None,
        default_prompt_name: str | None = None,
        truncate_dim: int | None = None,
        model_kwargs: dict[str, Any] | None = None,
        backend: str = "onnx",
        pooling: str | None = None,
        normalizes: bool | None = None,
        max_seq_length: int | None = None,
        threads: int = 0,
        precision: str = "exact",
        similarity_fn_name: str | None = None,
        **options: Any,
    ) -> None:
        """device: None or "cpu", where it runs. model_kwargs: {"file_name": "onnx/model_quint8_avx2.onnx"}
        chooses a file. backend: whatever it is, Headrace runs the model. pooling (mean, cls, last, max,
        mean_sqrt_length, pooled, or as 1_Pooling/config.json has them), normalizes and max_seq_length: what
        the folder says where they are None; without modules.json the mean as it is, as sentence-transformers
        does. precision: "fast" lets products be rounded where that is faster, as headrace.load has it.
        options: others of sentence-transformers (cache_folder, trust_remote_code, ...), which say
        nothing here.

        Errors: FileNotFoundError for a folder without a model or without tokenizer.json; ValueError for what
        cannot be read, and for a folder that says what is not known here (a Dense module); TypeError for an
        option that there is not.
        """
        _check_options("SentenceEncoder", options, _OF_SENTENCE_TRANSFORMERS, self.__init__)
        if changing := [name for name in ("tokenizer_kwargs", "config_kwargs") if options.get(name)]:
            raise ValueError(f"{changing[0]} is {options[changing[0]]!r}: the folder's files say that here")
        if device not in (None, "cpu"):
            raise ValueError(
                f"device is {device!r}; sentences are encoded on the CPU: None or 'cpu' is right"
            )
        folder = _folder(model_name_or_path)
        file = _model_file(folder, (model_kwargs or {}).get("file_name"))
        if normalizes is None and not (folder / "modules.json").exists():
            normalizes = False
        self._made_of = (file, pooling, normalizes)
        self._runs = {"threads": threads, "precision": precision}
        self._encoder = _load(*self._made_of, max_seq_length, **self._runs)
        config = _read_json(folder / "config_sentence_transformers.json")
        given = config.get("prompts") if prompts is None else prompts
        self.prompts: dict[str, str] = {"query": "", "document": "", **(given or {})}
        self.default_prompt_name = default_prompt_name or config.get("default_prompt_name")
        if self.default_prompt_name is not None:
            self._prompt(self.default_prompt_name)
        self.truncate_dim = truncate_dim
        self.similarity_fn_name = similarity_fn_name or config.get("similarity_fn_name") or "cosine"

    @property
    def max_seq_length(self) -> int:
        """Tokens of a sentence that are read, special ones included."""
        return self._encoder.most_tokens

    @max_seq_length.setter
    def max_seq_length(self, tokens: int) -> None:
        """Reads the model again. Errors: ValueError, also for more tokens than the model has positions."""
        if not isinstance(tokens, int) or tokens < 1:
            raise ValueError(f"max_seq_length is {tokens!r}; it must be a number of at least 1")
        self._encoder = _load(*self._made_of, tokens, **self._runs)

    def get_max_seq_length(self) -> int:
        return self.max_seq_length

    def __repr__(self) -> str:
        return f"SentenceEncoder({self._made_of[0]}: {_described(self._encoder)})"

    def get_embedding_dimension(self) -> int:
        return min(self.truncate_dim or self._encoder.width, self._encoder.width)

    get_sentence_embedding_dimension = get_embedding_dimension

    def encode(
        self,
        sentences: str | Sequence[str] | np.ndarray,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: str = "sentence_embedding",
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
    ) -> Any:
        """Vectors in the order of the sentences: float32 [sentences, width], or [width] of a single text.

        batch_size: how often the progress bar moves; sentences of near lengths share batches, whatever it is.
        convert_to_tensor: as PyTorch's tensor; convert_to_numpy=False: a list of such.
        Errors: TypeError for what is no text; ValueError for a prompt that there is not, half of a character,
        and output_value and precision that are not those of the defaults.
        """
        check_batch_size(batch_size)
        for name, given, due in (
            ("output_value", output_value, "sentence_embedding"),
            ("precision", precision, "float32"),
            ("device", device or "cpu", "cpu"),
        ):
            if given != due:
                raise ValueError(f"{name} is {given!r}; {due!r} is what there is")
        is_single = isinstance(sentences, str)
        texts = texts_of("sentences", sentences)
        added = self._added_prompt(prompt_name, prompt)
        if added:
            texts = [added + text for text in texts]
        vectors = self._vectors(texts, batch_size, bool(show_progress_bar))
        width = truncate_dim or self.truncate_dim
        if width is not None:
            vectors = vectors[:, :width]
        if normalize_embeddings:
            vectors = normalized(vectors)
        vectors = np.ascontiguousarray(vectors)
        return _converted(vectors[0] if is_single else vectors, convert_to_numpy, convert_to_tensor)

    def encode_query(self, sentences: str | Sequence[str], **options: Any) -> Any:
        """encode() with the prompt "query", where there is one and no other is named."""
        return self._with_prompt(["query"], sentences, options)

    def encode_document(self, sentences: str | Sequence[str], **options: Any) -> Any:
        """encode() with the prompt "document", "passage" or "corpus", likewise."""
        return self._with_prompt(_PROMPTS_OF_DOCUMENTS, sentences, options)

    def tokenize(self, texts: Sequence[str]) -> dict[str, Any]:
        """input_ids, attention_mask and token_type_ids, filled up to the longest text: int64 [texts, tokens]

        As similarity's result: PyTorch's tensors where that is installed.
        """
        rows = self._encoder.tokenize(with_characters(texts_of("texts", texts)))
        shape = (len(rows), max((len(ids) for ids, _ in rows), default=0))
        made = {name: np.zeros(shape, np.int64) for name in ("input_ids", "attention_mask", "token_type_ids")}
        made["input_ids"][:] = self._encoder.tokenizer.padding_id
        for i, (ids, types) in enumerate(rows):
            made["input_ids"][i, : len(ids)] = ids
            made["attention_mask"][i, : len(ids)] = 1
            made["token_type_ids"][i, : len(ids)] = types
        return {name: tensor(array) for name, array in made.items()}

    def similarity(self, a: Any, b: Any) -> Any:
        """The similarities of each of `a` with each of `b`, by similarity_fn_name: float32 [len(a), len(b)]

        As sentence-transformers gives it, a tensor of PyTorch's; where that is not installed, an array.
        """
        return similarities(self.similarity_fn_name, a, b, pairs=False)

    def similarity_pairwise(self, a: Any, b: Any) -> Any:
        """The similarity of each of `a` with the one of `b` in its place, as similarity() gives it: [len(a)].

        Errors: ValueError for two lists of different lengths.
        """
        return similarities(self.similarity_fn_name, a, b, pairs=True)

    def _with_prompt(self, names: Sequence[str], sentences: Any, options: dict[str, Any]) -> Any:
        if options.get("prompt_name") is None and options.get("prompt") is None:
            options["prompt_name"] = next((name for name in names if self.prompts.get(name)), None)
        return self.encode(sentences, **options)

    def _added_prompt(self, name: str | None, prompt: str | None) -> str:
        if prompt is not None:
            return prompt
        name = name if name is not None else self.default_prompt_name
        return "" if name is None else self._prompt(name)

    def _prompt(self, name: str) -> str:
        if name not in self.prompts:
            raise ValueError(f"there is no prompt {name!r}; there are {sorted(self.prompts)}")
        return self.prompts[name]

    def _vectors(self, texts: list[str], batch_size: int, shows: bool) -> np.ndarray:
        parts = batches(texts, _AT_ONCE)
        if shows:
            from tqdm.auto import tqdm

            parts = tqdm(batches(texts, batch_size), "Batches", -(-len(texts) // batch_size))
        made, first = [], 0
        for part in parts:
            made.append(vectors_of(self._encoder, part, first))
            first += len(part)
        return np.concatenate(made) if made else np.zeros((0, self._encoder.width), np.float32)


class TextEmbedding:
    """A fastembed model in a local folder: TextEmbedding(name, specific_model_path=folder).embed(texts).

    The folder is model_name where no other is given; it is as SentenceEncoder's, or fastembed's cache has it.
    Texts are cut where fastembed cuts them: sentence_bert_config.json does not count.
    """

    def __init__(
        self,
        model_name: str | os.PathLike[str],
        cache_dir: str | None = None,
        threads: int | None = None,
        *,
        specific_model_path: str | os.PathLike[str] | None = None,
        model_file: str | None = None,
        pooling: str | None = None,
        normalization: bool | None = None,
        precision: str = "exact",
        **options: Any,
    ) -> None:
        """pooling, normalization: what the folder says, and normalised where it says nothing. A folder that
        says nothing of pooling, of a model that does not pool itself, needs one. precision: as
        SentenceEncoder's. cache_dir and options
        (providers, cuda, lazy_load, ...) say nothing here.

        Errors: SentenceEncoder's.
        """
        _check_options("TextEmbedding", options, _OF_FASTEMBED, self.__init__)
        folder = _folder(specific_model_path or model_name)
        self.model_name = os.fspath(model_name)
        file = _model_file(folder, model_file)
        self._encoder = _load(
            file, pooling, normalization, None, threads or 0, precision, sentence_config=False
        )
        says = pooling or (folder / "1_Pooling/config.json").exists() or self._encoder.pooling == "pooled"
        if not says:
            raise ValueError(
                f"{folder} does not say how the vectors of tokens become one (1_Pooling/config.json): give"
                " pooling='cls', as fastembed does for BGE, or 'mean', as for MiniLM"
            )

    def __repr__(self) -> str:
        return f"TextEmbedding({self.model_name}: {_described(self._encoder)})"

    @property
    def embedding_size(self) -> int:
        return self._encoder.width

    def embed(
        self,
        documents: str | Iterable[str],
        batch_size: int = 256,
        parallel: int | None = None,
        **options: Any,
    ) -> Iterator[np.ndarray]:
        """A vector of each document, in order: float32 [width]. batch_size: how many are read ahead at least.

        Errors: TypeError for what is no text, ValueError for half a character.
        """
        check_batch_size(batch_size)
        first = 0
        for part in batches(several("documents", documents), max(batch_size, 256)):
            yield from vectors_of(self._encoder, texts_of("documents", part, first), first)
            first += len(part)

    def token_count(self, texts: str | Iterable[str], batch_size: int = 1024, **options: Any) -> int:
        """The tokens of all texts together, each cut as embed() cuts it, special tokens included."""
        rows = self._encoder.tokenize(with_characters(texts_of("texts", texts)))
        return sum(len(ids) for ids, _ in rows)

    def query_embed(self, query: str | Iterable[str], **options: Any) -> Iterator[np.ndarray]:
        return self.embed(query)

    def passage_embed(self, texts: Iterable[str], **options: Any) -> Iterator[np.ndarray]:
        return self.embed(texts)


def _check_options(name: str, given: Iterable[str], known: Sequence[str], own: Any) -> None:
    """Errors: TypeError for a name that neither `known` has nor the signature of `own`."""
    for option in given:
        if option in known:
            continue
        all_names = [
            *(parameter for parameter in signature(own).parameters if parameter != "options"),
            *known,
        ]
        near = get_close_matches(option, all_names, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(all_names)}"
        raise TypeError(f"{name}: there is no option {option!r}; {remedy}")


def _described(encoder: TextEncoder) -> str:
    return f"{encoder.width} wide, pooling {encoder.pooling}, at most {encoder.most_tokens} tokens"


def _folder(path: str | os.PathLike[str]) -> Path:
    folder = Path(path)
    if folder.is_file():
        raise FileNotFoundError(
            f"{folder} is a file; give its folder, {folder.parent}, and the file's name as"
            f" model_kwargs={{'file_name': {folder.name!r}}} (SentenceEncoder) or model_file (TextEmbedding)"
        )
    if not folder.is_dir():
        raise FileNotFoundError(
            f"there is no folder {folder}: models are read from local folders; download it first, for example"
            " with `hf download`"
        )
    return folder


def _model_file(folder: Path, name: str | None) -> Path:
    if name is not None:
        found = [folder / name, folder / "onnx" / name]
    else:
        found = [place / known for known in _NAMES for place in (folder / "onnx", folder)]
        found += sorted(p for place in (folder / "onnx", folder) for p in place.glob("*.onnx"))
    for path in found:
        if path.is_file():
            return path
    looked_for = name or ", ".join(_NAMES)
    raise FileNotFoundError(
        f"{folder} and its folder onnx have no {looked_for}; sentence-transformers writes one with"
        " SentenceTransformer(..., backend='onnx').save_pretrained(folder)"
    )


def _load(
    file: Path,
    pooling: str | None,
    normalizes: bool | None,
    most_tokens: int | None,
    threads: int,
    precision: str,
    sentence_config: bool = True,
) -> TextEncoder:
    places = [file.parent, *([file.parent.parent] if file.parent.name == "onnx" else [])]
    if not any((place / "tokenizer.json").exists() for place in places):
        raise FileNotFoundError(
            f"there is no tokenizer.json in {' or '.join(map(str, places))}; transformers writes one with"
            " AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
        )
    pooling = None if pooling is None else _POOLINGS.get(pooling, pooling)
    return TextEncoder.load(
        str(file),
        pooling=pooling,
        normalizes=normalizes,
        most_tokens=most_tokens or 0,
        sentence_config=sentence_config,
        threads=threads,
        precision=precision,
    )


def _read_json(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path}: a {type(found).__name__} is there; an object is due")
    return found


def _converted(vectors: np.ndarray, to_numpy: bool, to_tensor: bool) -> Any:
    if to_numpy and not to_tensor:
        return vectors
    import torch

    tensor = torch.from_numpy(vectors)
    return tensor if to_tensor or tensor.dim() == 1 else list(tensor)
