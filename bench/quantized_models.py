"""Writes one quantised model as ONNX files: what onnxruntime.quantization makes of a network.

    python bench/quantized_models.py CASE FOLDER
    python bench/quantized_models.py names

A case is a network and a form, such as resnet18.qdq, or resnet18.f32 as it was before. The folder gets
model.onnx, inputs.npz and facts.json.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from onnxruntime import quantization

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/executorch"))
import zoo


def _image(make: Callable[[], zoo.Model]) -> zoo.Model:
    return zoo.Model(make().module, (torch.randn(1, 3, 224, 224),))


def _vit_tiny() -> zoo.Model:
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(hidden_size=192, num_hidden_layers=12, num_attention_heads=3, intermediate_size=768)
    module = zoo.Call(
        ViTModel(config, add_pooling_layer=False), lambda m, x: m(pixel_values=x, return_dict=False)[0]
    )
    return zoo.Model(module, (torch.randn(1, 3, 224, 224),))


def _minilm() -> zoo.Model:
    ids = zoo.tokens(1, 128, below=1000)
    return zoo.Model(zoo.minilm().module, (ids, torch.ones_like(ids)))


def _decoder(model: torch.nn.Module, length: int, below: int) -> zoo.Model:
    def run(model: torch.nn.Module, ids: torch.Tensor) -> torch.Tensor:
        mask = torch.ones_like(ids)
        return model(input_ids=ids, attention_mask=mask, use_cache=False, return_dict=False)[0]

    return zoo.Model(zoo.Call(model, run), (zoo.tokens(1, length, below=below),))


def _gpt2(length: int) -> zoo.Model:
    """GPT-2's widths and layers with a vocabulary that keeps the file small."""
    from transformers import GPT2Config, GPT2LMHeadModel

    return _decoder(GPT2LMHeadModel(GPT2Config(vocab_size=8192)), length, 8192)


NETWORKS: dict[str, Callable[[], zoo.Model]] = {
    "resnet18": lambda: _image(zoo.resnet18),
    "mobilenet_v2": lambda: _image(zoo.mobilenet_v2),
    "minilm": _minilm,
    "vit_tiny": _vit_tiny,
    "gpt2": lambda: _gpt2(64),
    "gpt2_1": lambda: _gpt2(1),
    "qwen3": lambda: _decoder(zoo.qwen3_model(), 128, 4096),
    "qwen3_1": lambda: _decoder(zoo.qwen3_model(), 1, 4096),
}
IMAGES, TEXTS = ("resnet18", "mobilenet_v2", "vit_tiny"), ("minilm", "gpt2")


class _Calibration(quantization.CalibrationDataReader):
    """The model's own inputs, and inputs like them."""

    def __init__(self, names: list[str], inputs: tuple[torch.Tensor, ...]) -> None:
        self._feeds: Iterator[dict[str, np.ndarray]] = iter(
            [dict(zip(names, [x.roll(i, -1).numpy() for x in inputs], strict=True)) for i in range(3)]
        )

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._feeds, None)


def _static(source: Path, path: Path, made: zoo.Model, form: str) -> None:
    names = [x.name for x in onnx.load(source, load_external_data=False).graph.input]
    formats = quantization.QuantFormat
    quantization.quantize_static(
        source,
        path,
        _Calibration(names, made.inputs),
        quant_format=formats.QDQ if form == "qdq" else formats.QOperator,
        per_channel=form == "qdq",
        weight_type=quantization.QuantType.QInt8,
        activation_type=quantization.QuantType.QUInt8,
    )


def _dynamic(source: Path, path: Path) -> None:
    quantization.quantize_dynamic(source, path, weight_type=quantization.QuantType.QInt8)


BLOCK = 32


def in_blocks(weights: np.ndarray, has_zeros: bool) -> list[np.ndarray]:
    """[n, blocks, bytes] of 4 bits, scales, and zero points: of a matrix [k, n]."""
    blocks = weights.T.reshape(weights.shape[1], -1, BLOCK)
    if has_zeros:
        low, high = np.minimum(blocks.min(-1), 0), np.maximum(blocks.max(-1), 0)
        scales = (high - low) / 15
        zeros = np.round(-low / scales)
    else:
        scales = np.abs(blocks).max(-1) / 7
        zeros = np.full(scales.shape, 8.0)
    codes = np.clip(np.round(blocks / scales[..., None]) + zeros[..., None], 0, 15).astype(np.uint8)
    packed = [codes[..., ::2] | codes[..., 1::2] << 4, scales.astype(np.float32).ravel()]
    if has_zeros:
        pairs = np.pad(zeros.astype(np.uint8), [(0, 0), (0, zeros.shape[1] % 2)])
        packed.append((pairs[:, ::2] | pairs[:, 1::2] << 4).ravel())
    return packed


def _n_bits(source: Path, path: Path, form: str) -> None:
    """Products with constant matrices as MatMulNBits: in f32, by activations in 8 bits, with zero points."""
    model = onnx.load(source)
    graph = model.graph
    stored = {x.name: x for x in graph.initializer}
    level = 4 if form == "4bits_level4" else 0
    for node in graph.node:
        if node.op_type != "MatMul" or node.input[1] not in stored:
            continue
        weights = numpy_helper.to_array(stored[node.input[1]])
        if weights.ndim != 2 or weights.shape[0] % BLOCK:
            continue
        names = [f"{node.name}_{i}" for i in range(3)]
        parts = in_blocks(weights, form == "4bits_zeros")
        graph.initializer.extend(
            numpy_helper.from_array(part, name) for part, name in zip(parts, names, strict=False)
        )
        attributes = {"K": weights.shape[0], "N": weights.shape[1], "bits": 4, "block_size": BLOCK}
        made = helper.make_node(
            "MatMulNBits",
            [node.input[0], *names[: len(parts)]],
            list(node.output),
            node.name,
            domain="com.microsoft",
            accuracy_level=level,
            **attributes,
        )
        node.CopyFrom(made)
    read = {name for node in graph.node for name in node.input}
    kept = [x for x in graph.initializer if x.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, path)


def cases() -> list[str]:
    static = [f"{name}.{form}" for name in (*IMAGES, *TEXTS) for form in ("qdq", "qoperator")]
    dynamic = [f"{name}.dynamic" for name in ("minilm", "vit_tiny", "gpt2", "gpt2_1")]
    blocks = [
        f"{name}.{form}" for name in ("qwen3", "qwen3_1") for form in ("4bits", "4bits_level4", "4bits_zeros")
    ]
    return [*static, *dynamic, *blocks]


def write(case: str, folder: Path) -> None:
    name, form = case.split(".")
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    made = NETWORKS[name]()
    made.module.eval().requires_grad_(False)
    np.savez(folder / "inputs.npz", *[x.numpy() for x in made.inputs])
    source, path = folder / "f32.onnx", folder / "model.onnx"
    torch.onnx.export(made.module, made.inputs, str(source), dynamo=False, opset_version=17)
    if form in ("qdq", "qoperator"):
        quantization.shape_inference.quant_pre_process(source, source, skip_symbolic_shape=True)
        _static(source, path, made, form)
    elif form == "dynamic":
        _dynamic(source, path)
    elif form == "f32":
        source.rename(path)
    else:
        _n_bits(source, path, form)
    source.unlink(missing_ok=True)
    (folder / "facts.json").write_text(json.dumps({"weights": None, "is_micro": True}))


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    if len(sys.argv) == 2:
        print(*cases())
    else:
        write(sys.argv[1], Path(sys.argv[2]))
