"""Language models with a cache of keys and values, through this door."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch", reason="ExecuTorch is not installed: make executorch installs it")
pytest.importorskip("transformers", reason="transformers is not installed: make executorch installs it")

import torch
from executorch_ggml import _runtime
from executorch_ggml.llm import ExportableDecoder
from transformers import Qwen3Config, Qwen3ForCausalLM

if _runtime.runtime_path() is None:
    pytest.skip("libexecutorch_ggml_runtime.so is not built: make build", allow_module_level=True)

MOST, STEPS = 96, 64
PROMPT = torch.tensor([[3, 14, 15, 92, 65, 35, 89, 79, 32, 38]])


def small_qwen3(**options) -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=256,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        initializer_range=0.3,  # larger than usual, so that tokens differ from step to step
        attn_implementation="sdpa",
        **options,
    )
    return Qwen3ForCausalLM(config).eval()


def greedy(step, steps: int = STEPS) -> list[int]:
    """step(ids, position) gives the logits of the last token."""
    found = [int(step(PROMPT, torch.tensor([0]))[0, -1].argmax())]
    while len(found) < steps:
        position = torch.tensor([PROMPT.shape[1] + len(found) - 1])
        found.append(int(step(torch.tensor([found[-1:]]), position)[0, -1].argmax()))
    return found


@pytest.fixture(scope="module")
def expected() -> list[int]:
    """What transformers itself generates, with its own cache."""
    ids = small_qwen3().generate(PROMPT, max_new_tokens=STEPS, min_new_tokens=STEPS, do_sample=False)
    tokens = ids[0, PROMPT.shape[1] :].tolist()
    assert len(set(tokens)) > 8  # a model that repeats itself would hide a cache that does not work
    return tokens


def test_one_method_of_any_length_generates_what_transformers_does(expected, lower):
    program = lower(exported=ExportableDecoder(small_qwen3(), MOST).export())
    assert (program.delegates, program.left) == (1, [])
    run = program.load()
    assert greedy(lambda ids, position: run(ids, position)[0]) == expected


def test_a_prompt_in_pieces_gives_the_logits_of_the_whole(lower):
    run = lower(exported=ExportableDecoder(small_qwen3(), MOST, last_only=False).export()).load()
    whole = run(PROMPT, torch.tensor([0]))[0].clone()
    pieces = [run(PROMPT[:, at : at + 4], torch.tensor([at]))[0].clone() for at in (0, 4, 8)]
    torch.testing.assert_close(torch.cat(pieces, 1), whole, rtol=1e-4, atol=1e-4)


def test_the_last_token_alone_gives_the_last_logits():
    decoder = ExportableDecoder(small_qwen3(), MOST)
    every = ExportableDecoder(small_qwen3(), MOST, last_only=False)
    position = torch.tensor([0])
    torch.testing.assert_close(decoder(PROMPT, position), every(PROMPT, position)[:, -1:])


def test_the_initial_zeros_of_a_cache_take_no_room_in_the_file(lower):
    short, long = (lower(exported=ExportableDecoder(small_qwen3(), most).export()) for most in (16, 4096))
    cache = 2 * 2 * 2 * 4096 * 32 * 4  # layers, keys and values, heads, tokens, width, bytes
    assert len(long.buffer) - len(short.buffer) < cache / 10  # positions grow, too


def test_methods_name_the_states_of_one_cache_alike(lower):
    decoder = ExportableDecoder(small_qwen3(), MOST)
    program = lower(exported={"prefill": decoder.export(7), "decode": decoder.export(1)})
    assert (program.delegates, program.left) == (2, [])
    for method in ("prefill", "decode"):
        graph = program.edge.exported_program(method).graph_module.lowered_module_0.processed_bytes
        assert all(
            f"past.{name}_{layer}".encode() in graph for name in ("keys", "values") for layer in (0, 1)
        )


def test_limits_are_errors_that_name_the_values():
    with pytest.raises(ValueError, match="max_length is 0"):
        ExportableDecoder(small_qwen3(), 0)
    with pytest.raises(ValueError, match=r"tokens is 17; it must lie in 1\.\.16"):
        ExportableDecoder(small_qwen3(), 16).export(17)
    sliding = {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 0}
    with pytest.raises(ValueError, match="sliding window"):
        ExportableDecoder(small_qwen3(**sliding), 16)


def test_a_prompt_method_and_a_step_method_share_the_cache(expected, lower):
    decoder = ExportableDecoder(small_qwen3(), MOST)
    program = lower(exported={"prefill": decoder.export(PROMPT.shape[1]), "decode": decoder.export(1)})
    assert (program.delegates, program.left) == (2, [])
    prefill, decode = program.load("prefill", "decode")
    step = lambda ids, position: (prefill if ids.shape[1] > 1 else decode)(ids, position)[0]  # noqa: E731
    assert greedy(step) == expected


def test_norms_rotations_gates_and_attention_run_as_one_node_each(lower, tmp_path):
    """By the names of the nodes that a profiled step ran; what was fused has the name of its last node."""
    import executorch.extension.pybindings.portable_lib as runtime
    from executorch.devtools import Inspector

    program = lower(exported=ExportableDecoder(small_qwen3(), MOST).export(1))
    module = runtime._load_for_executorch_from_buffer(program.buffer, enable_etdump=True)
    module.run_method("forward", (torch.tensor([[5]]), torch.tensor([0])))
    path = tmp_path / "step.etdp"
    module.write_etdump_result_to_file(str(path))
    blocks = Inspector(etdump_path=str(path)).event_blocks
    ran = [event.name for block in blocks for event in block.events if event.is_delegated_op]
    count = lambda part: sum(part in name for name in ran)  # noqa: E731
    layers = 2
    assert count("scaled_dot_product_attention") == layers
    assert count("index_put") == 2 * layers  # keys and values, in place
    assert count("linear") == 7 * layers + 1
    for part in ("rsqrt", "pow", "mean", "neg", "slice", "silu", "softmax", "expand"):
        assert count(part) == 0, ran
    # two norms of the layer and two of its heads, a gate; the last norm, and the angles' scales
    assert count("aten_mul_tensor") <= 5 * layers + 1 + 3
