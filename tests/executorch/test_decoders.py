"""Decoders of transformers whose caches are arguments that grow, or states of a fixed length."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")
pytest.importorskip("transformers", reason="transformers is not installed: make executorch installs it")

import tiny_models
import torch
from check import exported_program, through_executorch
from decoding import TINY_DECODINGS
from executorch_ggml import _runtime
from executorch_ggml.llm import ExportableDecoder
from torch import nn
from torch.export import Dim
from transformers import DynamicCache

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)

MODELS = {"llama": tiny_models.llama, "qwen3": tiny_models.qwen3, "gpt2": tiny_models.gpt2}
PROMPT, STEPS, MOST = torch.tensor([[3, 14, 15, 9, 26]]), 6, 64
LONG = 64  # greedy steps


class Growing(nn.Module):
    """(tokens, keys and values of the past ...) to (logits, keys and values with the tokens ...)"""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids, *past):
        cache = DynamicCache()  # its layers are empty at first
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        out = self.model(input_ids=ids, past_key_values=cache, use_cache=True)
        return out.logits, *(t for layer in out.past_key_values.layers for t in (layer.keys, layer.values))


def decode(first, step) -> list[torch.Tensor]:
    """The logits of the prompt's last token and of those that follow."""
    logits, *past = first(PROMPT)
    found = [logits[:, -1]]
    while len(found) <= STEPS:
        logits, *past = step(found[-1].argmax(-1)[:, None], *(t.clone() for t in past))
        found.append(logits[:, -1])
    return found


@pytest.fixture(params=MODELS)
def model(request) -> nn.Module:
    return tiny_models.seeded(MODELS[request.param])


def test_a_cache_that_grows_is_handed_from_step_to_step(model, lower):
    module = Growing(model)
    past = module(PROMPT)[1:]
    first = lower(module, (PROMPT,), dynamic_shapes=({1: Dim("tokens", min=2, max=MOST)},))
    # A named dimension has guards that PyTorch cannot prove.
    shapes = (None, tuple({2: Dim.DYNAMIC(min=1, max=MOST)} for _ in past))
    step = lower(module, (PROMPT[:, :1], *past), dynamic_shapes=shapes)
    assert (first.delegates, first.left, step.delegates) == (1, [], 1)
    actual = decode(first.load(), step.load())
    torch.testing.assert_close(actual, decode(module, module), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", TINY_DECODINGS)
def test_a_step_with_open_batch_tokens_and_caches_is_pytorchs_at_two_shapes(name):
    """Llama's and GPT-2's with a mask, T5's and Whisper's with attention to what an encoder gave."""
    architecture = TINY_DECODINGS[name]().architecture
    found = through_executorch(architecture)
    assert len(found.get("errors", [])) == 2, found
    for error in found["errors"]:
        assert not isinstance(error, str) and error < architecture.tolerance, error


@pytest.mark.parametrize("name", TINY_DECODINGS)
def test_tokens_of_64_greedy_steps_are_pytorchs(name, lower):
    """Exports a decoder with caches whose lengths, the encoder's included, are open."""
    decoding = TINY_DECODINGS[name]()
    architecture = decoding.architecture
    program = lower(exported=exported_program(architecture), core_only=False)
    assert program.delegates == 1
    method = program.load()

    def tokens_by(run) -> list[int]:
        def step(feeds):
            with torch.no_grad():
                results = run(*(torch.from_numpy(feeds[given]) for given in architecture.names))
            return [value.numpy().copy() for value in results]

        return decoding.steps(step, LONG)

    expected = tokens_by(architecture.module)
    assert tokens_by(method) == expected
    assert len(set(expected)) > 1


def test_a_cache_of_a_fixed_length_is_kept_by_the_delegate(model, lower):
    program = lower(exported=ExportableDecoder(model, MOST).export())
    assert (program.delegates, program.left) == (1, [])
    run, position = program.load(), 0

    def step(ids, *past):
        nonlocal position
        logits = run(ids, torch.tensor([position]))[0]
        position += ids.shape[1]
        return (logits.clone(),)

    growing = Growing(model)
    torch.testing.assert_close(decode(step, step), decode(growing, growing), rtol=1e-4, atol=1e-5)
