"""Attention whose caches are as long as they will be: ONNX Runtime writes into them in place."""

from __future__ import annotations

import headrace
import numpy as np
import onnxruntime
import pytest
from operator_cases_base import F32, I32, MICROSOFT, Case, Constant
from peers import on_headrace

HEADS, GROUPS, WIDTH, BLOCK, LONGEST = 4, 2, 16, 16, 64
LAYOUTS = np.array(
    [
        [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1]],
        [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1]],
    ]
)


def reals(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(F32)


def in_place(case: Case, caches: dict[str, str]) -> dict[str, np.ndarray]:
    """ONNX Runtime's results; caches: of outputs, the inputs whose memory they are."""
    session = onnxruntime.InferenceSession(
        case.model().SerializeToString(), providers=["CPUExecutionProvider"]
    )
    arrays = {name: x.copy() for name, x in case.feeds.items()}
    held = {name: onnxruntime.OrtValue.ortvalue_from_numpy(x) for name, x in arrays.items()}
    binding = session.io_binding()
    for name, value in held.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("y0")
    for output, given in caches.items():
        binding.bind_ortvalue_output(output, held[given])
    session.run_with_iobinding(binding)
    y = binding.get_outputs()[0].numpy().copy()
    return {"y0": y} | {output: arrays[given] for output, given in caches.items()}


def near(actual: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


# --- SparseAttention --------------------------------------------------------------------------------------


def rows_and_columns(layouts: np.ndarray) -> list[Constant]:
    """The compressed rows of each layout, the shorter ones with -1 behind them."""
    columns = [[int(c) for row in layout for c in np.nonzero(row)[0]] for layout in layouts]
    most = max(map(len, columns))
    starts = [np.concatenate([[0], np.cumsum(layout.sum(1))]) for layout in layouts]
    padded = [list_ + [-1] * (most - len(list_)) for list_ in columns]
    return [Constant(np.array(x, I32)) for x in (starts, padded)]


def sparse_case(steps: int, lengths: list[int], layouts: np.ndarray = LAYOUTS, turned: int = 0) -> Case:
    rng, batch = np.random.default_rng(steps), len(lengths)
    operands = [reals(rng, batch, steps, n * WIDTH) for n in (HEADS, GROUPS, GROUPS)]
    caches = [reals(rng, batch, GROUPS, LONGEST, WIDTH) for _ in range(2)]
    angles = rng.uniform(0, 6, [LONGEST, WIDTH // 2])
    tables = [Constant(f(angles).astype(F32)) for f in (np.cos, np.sin)] if turned else []
    told = [np.array([max(lengths)], I32), np.array(lengths, I32)]
    inputs = [*operands, *caches, *rows_and_columns(layouts), *told, *tables]
    options = {"num_heads": HEADS, "kv_num_heads": GROUPS, "sparse_block_size": BLOCK, "do_rotary": turned}
    return Case("SparseAttention", inputs, 18, 3, MICROSOFT, options)


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize(("steps", "length"), [(40, 40), (1, 41), (3, 43), (1, 1)])
def test_queries_see_chosen_blocks_as_on_onnx_runtime(steps: int, length: int, turned: int) -> None:
    # A first step of one token: ONNX Runtime places that of the first sequence alone, the others anywhere.
    sequences = 1 if length == 1 else 2
    case = sparse_case(steps, [length] * sequences, turned=turned)
    near(on_headrace(case.model(dims=True), case.feeds), in_place(case, {"y1": "x3", "y2": "x4"}))


def test_one_layout_is_of_all_heads() -> None:
    case = sparse_case(40, [40], LAYOUTS[:1])
    near(on_headrace(case.model(), case.feeds), in_place(case, {"y1": "x3", "y2": "x4"}))


def attended(case: Case, lengths: list[int]) -> np.ndarray:
    """By the definition, a head and a sequence at a time."""
    query, key, value, keys, values = (x.copy() for x in case.inputs[:5])
    batch, steps = query.shape[:2]
    y = np.zeros([batch, steps, HEADS, WIDTH])
    for b, length in enumerate(lengths):
        places = np.arange(length - steps, length)
        for cache, new in ((keys, key), (values, value)):
            cache[b][:, places] = new[b].reshape(steps, GROUPS, WIDTH).transpose(1, 0, 2)
        for head in range(HEADS):
            group, layout = head * GROUPS // HEADS, LAYOUTS[head % len(LAYOUTS)]
            scores = query[b].reshape(steps, HEADS, WIDTH)[:, head] @ keys[b, group].T / np.sqrt(WIDTH)
            all_ = np.arange(LONGEST)
            is_seen = layout[places[:, None] // BLOCK, all_ // BLOCK] * (all_ <= places[:, None])
            weights = np.exp(scores) * is_seen
            y[b, :, head] = weights / weights.sum(1, keepdims=True) @ values[b, group]
    return y.reshape(batch, steps, HEADS * WIDTH)


def test_each_sequence_has_its_own_length() -> None:
    """By the definition: ONNX Runtime reads memory of the other sequences there."""
    lengths = [41, 23]
    case = sparse_case(1, lengths)
    near(on_headrace(case.model(), case.feeds), {"y0": attended(case, lengths)})


def test_places_outside_the_cache_and_blocks_that_are_not_there_are_errors() -> None:
    case = sparse_case(1, [41, 41])
    model = headrace.load(case.model(), device="cpu")
    with pytest.raises(ValueError, match=r"a place in the caches \(inputs 3 and 4\) is 64; at most 63"):
        model(case.feeds | {"x8": np.array([65, 41], I32)})
    case.inputs[6] = Constant(np.full_like(case.inputs[6].value, 4))
    with pytest.raises(ValueError, match=r"block_col_indices .* has a block 4 of 4 in layout 0"):
        headrace.load(case.model(), device="cpu")


# --- DecoderMaskedMultiHeadAttention ----------------------------------------------------------------------


def step_case(before: int, masked: bool = False, biased: bool = False) -> Case:
    rng, batch, heads, width = np.random.default_rng(before), 2, 3, 8
    operands = [reals(rng, batch, 1, heads * width) for _ in range(3)]
    caches = [reals(rng, batch, heads, 10, width) for _ in range(2)]
    mask = rng.integers(0, 2, [batch, before + 1]).astype(I32) if masked else None
    if mask is not None:
        mask[:, 0] = 1
    scores = reals(rng, 1, heads, 1, before + 1) if biased else None
    bias = Constant(reals(rng, 3 * heads * width)) if biased else None
    inputs = [*operands, mask, scores, *caches, np.array([before], I32), None, None, bias]
    options = {"num_heads": heads, "past_present_share_buffer": 1}
    return Case("DecoderMaskedMultiHeadAttention", inputs, 18, 3, MICROSOFT, options)


@pytest.mark.parametrize("before", [0, 3, 9])
@pytest.mark.parametrize(("masked", "biased"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_step_is_written_into_its_caches(before: int, masked: bool, biased: bool) -> None:
    case = step_case(before, masked, biased)
    near(on_headrace(case.model(), case.feeds), in_place(case, {"y1": "x5", "y2": "x6"}))


def test_a_step_with_a_cache_that_grows_is_that_of_multi_head_attention() -> None:
    case = step_case(4, masked=True, biased=True)
    query, key, value, mask, scores, keys, values, _, _, _, bias = case.inputs
    past = [cache[:, :, :4] for cache in (keys, values)]
    step = Case(case.op, [query, key, value, mask, scores, *past, None, None, None, bias], 18, 3, MICROSOFT)
    plain = Case("MultiHeadAttention", [query, key, value, bias, mask, scores, *past], 18, 3, MICROSOFT)
    step.attributes = plain.attributes = {"num_heads": 3}
    near(
        on_headrace(step.model(), step.feeds),
        dict(zip(("y0", "y1", "y2"), on_headrace(plain.model(), plain.feeds).values(), strict=True)),
    )


def test_steps_of_beams_are_refused() -> None:
    case = step_case(3)
    case.inputs[8:10] = [np.array([1], I32), np.zeros([2, 1, 10], I32)]
    with pytest.raises(ValueError, match=r"of beams .* Export the decoder without beams"):
        headrace.load(case.model(), device="cpu")
