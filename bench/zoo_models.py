"""Writes one model of the zoo in every form that the benchmark's programs read.

    python bench/zoo_models.py CASE FOLDER
    python bench/zoo_models.py zoo|micro        their names

The folder gets headrace.pte, xnnpack.pte, model.onnx, inputs.npz and facts.json (operations, bytes of
weights); a form that cannot be made is a line in facts.json that says why. Products with weights in blocks
have quantized.onnx for ONNX Runtime, which has weights of its own of as many bits.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import torch
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/executorch"))
import zoo
from micro_models import MICRO, weights_of


def _minilm(batch: int, length: int) -> zoo.Model:
    model = zoo.minilm()
    ids = zoo.tokens(batch, length, below=1000)
    return zoo.Model(model.module, (ids, torch.ones_like(ids)))


def _qwen3(length: int) -> zoo.Model:
    """Two layers. With a mask, or the model would look for sequences in a row, by operators that PyTorch's
    export to ONNX lacks."""

    def run(model: torch.nn.Module, ids: torch.Tensor) -> torch.Tensor:
        return model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False, return_dict=False)[
            0
        ]

    return zoo.Model(zoo.Call(zoo.qwen3_model(), run), (zoo.tokens(1, length, below=4096),))


CASES: dict[str, Callable[[], zoo.Model]] = {
    "mlp": zoo.mlp,
    "minilm_16": lambda: _minilm(1, 16),
    "minilm_128": lambda: _minilm(1, 128),
    "minilm_512": lambda: _minilm(1, 512),
    "minilm_8x128": lambda: _minilm(8, 128),
    "vit_tiny": zoo.vit_tiny,
    "resnet18": zoo.resnet18,
    "mobilenet_v2": zoo.mobilenet_v2,
    "whisper_encoder": zoo.whisper_encoder,
    "unet_block": zoo.unet_block,
    "lstm": zoo.lstm,
    "qwen3_prefill": lambda: _qwen3(128),
    "qwen3_decode": lambda: _qwen3(1),
}
ONE_IMAGE = ("vit_tiny", "resnet18", "mobilenet_v2", "mlp")


def model(case: str) -> zoo.Model:
    """The same weights and inputs in every process."""
    torch.manual_seed(0)
    made = (CASES | MICRO)[case]()
    made.module.eval().requires_grad_(False)
    if case in ONE_IMAGE:
        made.inputs = tuple(x[:1].contiguous() for x in made.inputs)
    return made


def _program(made: zoo.Model, partitioner: object) -> bytes:
    from executorch.exir import to_edge_transform_and_lower

    exported = torch.export.export(made.module, made.inputs, strict=False)
    return to_edge_transform_and_lower(exported, partitioner=[partitioner]).to_executorch().buffer


def _headrace(made: zoo.Model, path: Path, weights: str | None = None) -> None:
    from executorch_ggml import GgmlPartitioner

    path.write_bytes(_program(made, GgmlPartitioner(quantize=weights)))


def _xnnpack(made: zoo.Model, path: Path) -> None:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    path.write_bytes(_program(made, XnnpackPartitioner()))


def _onnx(made: zoo.Model, path: Path) -> None:
    torch.onnx.export(made.module, made.inputs, str(path), dynamo=False, opset_version=17)


def _quantized(bits: str, source: Path, path: Path) -> None:
    """Products as ONNX Runtime multiplies them: rounded to 8 bits when they run, or blocks of 32 x 4 bits."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    if bits == "q8_0":
        return quantize_dynamic(source, path, weight_type=QuantType.QInt8)
    quantizer = MatMulNBitsQuantizer(onnx.load(source), block_size=32, is_symmetric=True, accuracy_level=4)
    quantizer.process()
    return quantizer.model.save_model_to_file(str(path))


def forms(case: str) -> dict[str, Callable[[zoo.Model, Path], None]]:
    bits = weights_of(case)
    if bits is None:
        return {"headrace.pte": _headrace, "xnnpack.pte": _xnnpack, "model.onnx": _onnx}
    return {
        "headrace.pte": lambda made, path: _headrace(made, path, bits),
        "model.onnx": _onnx,
        "quantized.onnx": lambda _, path: _quantized(bits, path.with_name("model.onnx"), path),
    }


def _flops(made: zoo.Model) -> int:
    """Counts products, also those of attention and recurrent networks: fused ops count for nothing."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with (
        sdpa_kernel(SDPBackend.MATH),
        torch.backends.mkldnn.flags(enabled=False),
        FlopCounterMode(display=False) as counter,
    ):
        made.module(*made.inputs)
    return counter.get_total_flops()


def write(case: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    made = model(case)
    np.savez(folder / "inputs.npz", *[x.numpy() for x in made.inputs])
    tensors = [*made.module.parameters(), *made.module.buffers()]
    facts = {
        "is_micro": case in MICRO,
        "weights": weights_of(case),
        "flops": _flops(made),
        "weight_bytes": sum(t.numel() * t.element_size() for t in tensors),
        "cannot": {},
    }
    if weights_of(case):
        facts["cannot"] = dict.fromkeys(("xnnpack.pte", "torch.compile"), "it is compared in f32")
    for name, make in forms(case).items():
        (folder / name).unlink(missing_ok=True)
        try:
            make(made, folder / name)
        except Exception as error:  # a peer's exporter may raise anything
            facts["cannot"][name] = (str(error).splitlines() or [repr(error)])[0][:160]
    (folder / "facts.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    if len(sys.argv) == 2:
        print(*{"zoo": CASES, "micro": MICRO}[sys.argv[1]])
    else:
        write(sys.argv[1], Path(sys.argv[2]))
