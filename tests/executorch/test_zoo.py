"""Whole models of real architectures: one delegate each, at every size, equal to eager PyTorch."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")
pytest.importorskip("transformers", reason="transformers is not installed: make executorch installs it")

import torch
import zoo
from executorch_ggml import _runtime

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)


@pytest.mark.parametrize("name", zoo.MODELS)
def test_a_model_is_one_delegate_and_equals_eager_at_every_size(name, lower):
    torch.manual_seed(0)
    model = zoo.MODELS[name]()
    model.module.requires_grad_(False)
    program = lower(model.module, model.inputs, dynamic_shapes=model.dynamic_shapes)
    assert (program.delegates, program.left) == (1, [])
    run = program.load()
    for inputs in [model.inputs, *model.more]:
        model.fresh()
        expected, actual = model.module(*inputs), run(*inputs)[0]
        assert actual.shape == expected.shape
        assert float((actual - expected).abs().max()) <= 1e-4 * float(expected.abs().max())
