"""The tiny chat model in K-quants, as most GGUF files have them, answers as it does in q8_0."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

gguf = pytest.importorskip("gguf", reason="writing GGUF files needs the package gguf")
ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "models/tiny-chat-q8_0.gguf"
PROGRAM = ROOT / "build/bin/headrace"
SETUP = ROOT / "build/setup.cmake"
if not PROGRAM.exists() or not SETUP.exists():
    pytest.skip("build/bin/headrace is not built: make build", allow_module_level=True)


@pytest.fixture(scope="module")
def ggml():
    prefix = re.search(r'HEADRACE_GGML_DIR "([^"]+)"', SETUP.read_text())
    if not prefix:
        pytest.skip("ggml is the system's, whose library is not looked for")
    library = ctypes.CDLL(str(Path(prefix[1], "lib/libggml-base.so")))
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    library.ggml_quantize_chunk.argtypes = [
        *(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p),
        *(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p),
    ]
    return library


def quantized(ggml, data: np.ndarray, stored: gguf.GGMLQuantizationType, kind: gguf.GGMLQuantizationType):
    """Rows of blocks of that kind, by llama.cpp's own quantisation."""
    values = np.ascontiguousarray(gguf.quants.dequantize(data, stored), np.float32)
    rows, columns = values.shape
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = np.zeros((rows, columns // elements * size), np.uint8)
    written = ggml.ggml_quantize_chunk(
        int(kind), values.ctypes.data, blocks.ctypes.data, 0, rows, columns, None
    )
    assert written == blocks.nbytes
    return blocks


def write_in(ggml, kind: gguf.GGMLQuantizationType, path: Path) -> None:
    """The tiny chat model with all its matrices in that kind of block."""
    reader, writer = gguf.GGUFReader(MODEL), gguf.GGUFWriter(path, "llama")
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(name, field.contents())
        else:
            writer.add_key_value(name, field.contents(), field.types[0])
    for tensor in reader.tensors:
        if tensor.tensor_type == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(tensor.name, np.array(tensor.data))
        else:
            blocks = quantized(ggml, tensor.data, tensor.tensor_type, kind)
            writer.add_tensor(tensor.name, blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("kind", ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"])
def test_a_model_in_k_quants_answers(kind, ggml, tmp_path):
    path = tmp_path / f"{kind}.gguf"
    write_in(ggml, gguf.GGMLQuantizationType[kind], path)
    assert path.stat().st_size < MODEL.stat().st_size
    command = [PROGRAM, "chat", "-m", path, "--temp", "0", "-p", "What is the capital of France?"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "The capital of France is Paris.\n", done.stderr
