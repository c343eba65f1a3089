"""Models in f16 and bf16: computed in f32 from the same weights, and rounded once at the end."""

from __future__ import annotations

import copy

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")
pytest.importorskip("transformers", reason="transformers is not installed: make executorch installs it")

import torch
import zoo
from executorch_ggml import _runtime

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)


def converted(inputs: tuple, dtype: torch.dtype) -> tuple:
    return tuple(value.to(dtype) if value.is_floating_point() else value for value in inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("name", ["mlp", "vit_tiny", "mobilenet_v2", "lstm", "qwen3"])
def test_a_model_of_halves_is_one_delegate_and_rounds_what_f32_gives(name, dtype, lower):
    torch.manual_seed(0)
    model = zoo.MODELS[name]()
    module = model.module.requires_grad_(False).to(dtype)
    inputs = converted(model.inputs, dtype)
    program = lower(module, inputs)
    assert (program.delegates, program.left) == (1, [])
    actual = program.load()(*inputs)[0]
    expected = copy.deepcopy(module).float()(*converted(inputs, torch.float32))
    assert actual.dtype == dtype
    rounding = torch.finfo(dtype).eps  # of a value near the largest: twice what rounding to nearest costs
    assert float((actual.float() - expected).abs().max()) <= rounding * float(expected.abs().max())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
def test_matrices_of_halves_keep_two_bytes_an_element_in_the_file(dtype, lower):
    module = zoo.mlp().module.requires_grad_(False).to(dtype)
    program = lower(module, (torch.randn(3, 1024, dtype=dtype),))
    elements = sum(p.numel() for p in module.parameters())
    assert 2 * elements <= len(program.buffer) <= 2.05 * elements
