"""A component that searches by meaning: finds the lines of its standard input that are nearest to each of its
arguments. The vectors are MiniLM's, an ONNX model that its host calls `minilm`; the words of its
tokenizer are in /minilm/vocab.txt, a folder that the host gives it.
"""

import re
import struct
import sys
import unicodedata

import wit_world.exports
from componentize_py_types import Err
from wit_world.imports import graph
from wit_world.imports.tensor import Tensor, TensorType

SHOWN = 2


class WordPieces:
    """BERT's tokenizer of lower case: words, and the longest known pieces of each."""

    def __init__(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            self._numbers = {line.rstrip("\n"): number for number, line in enumerate(file)}

    def tokens(self, text: str) -> list[int]:
        plain = unicodedata.normalize("NFD", text.lower())
        letters = "".join(c for c in plain if unicodedata.category(c) != "Mn")
        found = [self._numbers["[CLS]"]]
        for word in re.findall(r"\w+|[^\w\s]", letters):
            found += self._pieces(word)
        return [*found, self._numbers["[SEP]"]]

    def _pieces(self, word: str) -> list[int]:
        pieces, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                number = self._numbers.get(("##" if start else "") + word[start:end])
                if number is not None:
                    break
            else:
                return [self._numbers["[UNK]"]]
            pieces.append(number)
            start = end
        return pieces


class Run(wit_world.exports.Run):
    def run(self) -> None:
        lines = [line for line in sys.stdin.read().splitlines() if line]
        words = WordPieces("/minilm/vocab.txt")
        try:
            with graph.load_by_name("minilm") as model, model.init_execution_context() as context:

                def vector(text: str) -> tuple[float, ...]:
                    tokens = words.tokens(text)
                    inputs = [
                        (
                            name,
                            Tensor(
                                [1, len(tokens)], TensorType.I64, struct.pack(f"<{len(tokens)}q", *values)
                            ),
                        )
                        for name, values in (("input_ids", tokens), ("attention_mask", [1] * len(tokens)))
                    ]
                    outputs = dict(context.compute(inputs))
                    return struct.unpack("<384f", outputs["sentence_embedding"].data())

                vectors = {line: vector(line) for line in lines}
                for question in sys.argv[1:]:
                    print(question)
                    asked = vector(question)
                    likeness = {
                        line: sum(a * b for a, b in zip(asked, other, strict=True))
                        for line, other in vectors.items()
                    }
                    for line in sorted(likeness, key=likeness.get, reverse=True)[:SHOWN]:
                        print(f"  {likeness[line]:.4f}  {line}")
        except Err as error:
            print(error.value.code().name, error.value.data(), file=sys.stderr)
            sys.exit(1)
