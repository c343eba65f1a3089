"""The real MiniLM through this door gives what the WebNN door gives."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")

import numpy as np
import torch
import webnn
from executorch_ggml import _runtime
from minilm import model as minilm

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)
try:
    minilm.model_file("model.safetensors")
except FileNotFoundError as error:
    pytest.skip(str(error), allow_module_level=True)

TEXTS = ["A cat sleeps on the warm stones.", "Rain.", "The committee postponed its decision until spring."]


def test_the_pte_and_the_webnn_graph_give_the_same_embeddings(lower):
    from minilm.torch_model import MiniLMModule

    other_door = minilm.MiniLM(webnn.ML().create_context(accelerated=False))
    seq = 32
    example = (torch.ones(1, seq, dtype=torch.long), torch.ones(1, seq, dtype=torch.long))
    program = lower(MiniLMModule.pretrained(), example)
    assert (program.delegates, program.left) == (1, [])
    run = program.load()
    for text in TEXTS:
        inputs = other_door.tokenize(text)
        padded = {name: np.pad(value, ((0, 0), (0, seq - value.shape[1]))) for name, value in inputs.items()}
        feeds = [torch.from_numpy(padded[name].astype(np.int64)) for name in ("input_ids", "attention_mask")]
        ours, theirs = run(*feeds)[0][0].numpy(), other_door.run(padded)
        assert float(ours @ theirs) >= 0.99999
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("name", "size", "least"), [("q8_0", 0.28, 0.999), ("q4_k", 0.18, 0.97)])
def test_a_quantized_pte_is_small_and_close_to_f32(lower, name, size, least):
    from executorch_ggml import GgmlPartitioner
    from minilm.torch_model import MiniLMModule

    module = MiniLMModule.pretrained()
    tokenizer = minilm.MiniLM(webnn.ML().create_context(accelerated=False))
    ids, mask = (
        torch.from_numpy(tokenizer.tokenize(TEXTS[0])[name].astype(np.int64))
        for name in ("input_ids", "attention_mask")
    )
    program = lower(module, (ids, mask), partitioner=GgmlPartitioner(quantize=name))
    assert (program.delegates, program.left) == (1, [])
    assert len(program.buffer) < size * sum(4 * p.numel() for p in module.parameters())
    with torch.no_grad():
        expected = module(ids, mask)[0]
    assert float(program.load()(ids, mask)[0][0] @ expected) >= least
