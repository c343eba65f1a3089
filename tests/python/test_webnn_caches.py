"""Keys and values of a decoder in device tensors, over dispatches."""

import numpy as np
import pytest

F32 = "float32"
HEADS, WIDTH, LENGTH, STEPS = 2, 8, 16, 12
RNG = np.random.default_rng(3)
TOKENS = RNG.standard_normal((STEPS, HEADS * WIDTH)).astype(np.float32)
WEIGHTS = {
    name: (RNG.standard_normal((HEADS * WIDTH, HEADS * WIDTH)) / 4).astype(np.float32) for name in "qkvo"
}


def attention(q, keys, values, mask):
    """q [heads, 1, width], keys and values [heads, n, width], mask [n] of 0 and -inf."""
    scores = q @ keys.transpose(0, 2, 1) / np.sqrt(WIDTH) + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True)) @ values


def expected_outputs():
    """Every step's output, with the keys and values of all steps before."""
    keys, values, outputs = [], [], []
    for token in TOKENS.astype(np.float64):
        q, k, v = ((token @ WEIGHTS[name]).reshape(HEADS, 1, WIDTH) for name in "qkv")
        keys.append(k)
        values.append(v)
        mixed = attention(q, np.concatenate(keys, 1), np.concatenate(values, 1), np.zeros(len(keys)))
        outputs.append(mixed.reshape(1, -1) @ WEIGHTS["o"])
    return outputs


def projections(builder):
    x = builder.input("x", [1, HEADS * WIDTH], F32)
    return (
        builder.reshape(builder.matmul(x, builder.constant(WEIGHTS[name])), [HEADS, 1, WIDTH])
        for name in "qkv"
    )


def attend(builder, q, keys, values, mask=None):
    scores = builder.matmul(q, builder.transpose(keys, permutation=[0, 2, 1]))
    scores = builder.mul(scores, builder.constant(np.float32(1 / np.sqrt(WIDTH))))
    if mask is not None:
        scores = builder.add(scores, mask)
    mixed = builder.matmul(builder.softmax(scores, 2), values)
    return builder.matmul(builder.reshape(mixed, [1, HEADS * WIDTH]), builder.constant(WEIGHTS["o"]))


def where_graph(builder):
    """The cache has its greatest length; the new row goes where `position` is 1."""
    q, k, v = projections(builder)
    position = builder.input("position", [LENGTH, 1], "uint8")
    mask = builder.input("mask", [LENGTH], F32)
    outputs = {}
    for name, new in (("k", k), ("v", v)):
        past = builder.input(f"past_{name}", [HEADS, LENGTH, WIDTH], F32)
        outputs[f"present_{name}"] = builder.where(position, new, past)
    y = attend(builder, q, outputs["present_k"], outputs["present_v"], mask)
    return builder.build({"y": y, **outputs})


def scatter_graph(builder):
    """The same, with the new rows scattered to their place by index: caches are [length, heads, width]."""
    q, k, v = projections(builder)
    position = builder.input("position", [1, 1], "int32")
    mask = builder.input("mask", [LENGTH], F32)
    outputs, seen = {}, {}
    for name, new in (("k", k), ("v", v)):
        past = builder.input(f"past_{name}", [LENGTH, HEADS, WIDTH], F32)
        row = builder.reshape(new, [1, HEADS, WIDTH])
        outputs[f"present_{name}"] = builder.scatter_nd(past, position, row)
        seen[name] = builder.transpose(outputs[f"present_{name}"], permutation=[1, 0, 2])
    y = attend(builder, q, seen["k"], seen["v"], mask)
    return builder.build({"y": y, **outputs})


def position_of(graph, step):
    if graph is scatter_graph:
        return np.array([[step]], np.int32)
    return (np.arange(LENGTH) == step).astype(np.uint8).reshape(LENGTH, 1)


def mask_of(step):
    return np.where(np.arange(LENGTH) <= step, 0, -1e9).astype(np.float32)


@pytest.mark.parametrize("use", ["swapped", "in place", "arrays in place"])
@pytest.mark.parametrize("make", [where_graph, scatter_graph])
def test_steps_with_caches_equal_the_whole_computation(context, builder, make, use):
    graph = make(builder)
    shape = [LENGTH, HEADS, WIDTH] if make is scatter_graph else [HEADS, LENGTH, WIDTH]

    def cache():
        if use == "arrays in place":
            return np.zeros(shape, np.float32)
        return context.create_device_tensor(graph, shape, F32)

    now = {name: cache() for name in "kv"}
    following = {name: cache() for name in "kv"} if use == "swapped" else now
    y = context.create_device_tensor(graph, [1, HEADS * WIDTH], F32)
    for step, expected in enumerate(expected_outputs()):
        given = {"x": TOKENS[step : step + 1], "position": position_of(make, step), "mask": mask_of(step)}
        given |= {f"past_{name}": tensor for name, tensor in now.items()}
        context.dispatch(graph, given, {"y": y} | {f"present_{n}": t for n, t in following.items()})
        np.testing.assert_allclose(y.read(), expected, rtol=1e-4, atol=1e-5)
        now, following = following, now
    if use != "arrays in place":
        stats = graph.run_stats
        assert stats["outputs_copied"] == 0


def test_a_cache_that_grows_by_a_step_equals_the_whole_computation(context, builder):
    """Shapes change from step to step: each step has tensors of its own size."""
    q, k, v = projections(builder)
    outputs = {}
    for name, new in (("k", k), ("v", v)):
        past = builder.input(f"past_{name}", [HEADS, {"name": "n", "maxSize": LENGTH}, WIDTH], F32)
        outputs[f"present_{name}"] = builder.concat([past, new], 1)
    y = attend(builder, q, outputs["present_k"], outputs["present_v"])
    graph = builder.build({"y": y, **outputs})
    expected = expected_outputs()
    # The first step has no past, and there are no empty tensors: its key and value come from NumPy.
    past = {name: context.create_device_tensor(graph, [HEADS, 1, WIDTH], F32) for name in "kv"}
    for name, tensor in past.items():
        tensor.write((TOKENS[0] @ WEIGHTS[name]).reshape(HEADS, 1, WIDTH))
    for step in range(1, STEPS):
        present = {name: context.create_device_tensor(graph, [HEADS, step + 1, WIDTH], F32) for name in "kv"}
        result = np.zeros((1, HEADS * WIDTH), np.float32)
        context.dispatch(
            graph,
            {"x": TOKENS[step : step + 1]} | {f"past_{name}": tensor for name, tensor in past.items()},
            {"y": result} | {f"present_{name}": tensor for name, tensor in present.items()},
        )
        np.testing.assert_allclose(result, expected[step], rtol=1e-4, atol=1e-5)
        past = present


def test_caches_can_be_passed_from_the_graph_of_a_prompt_to_that_of_a_step(context, builder):
    """One builder, two graphs that share weights: the prompt fills the caches, steps go on in place."""
    prompt = 5
    rows = builder.input("rows", [prompt, HEADS * WIDTH], F32)
    filled = {}
    weights = {name: builder.constant(WEIGHTS[name]) for name in "kv"}
    for name, weight in weights.items():
        heads = builder.reshape(builder.matmul(rows, weight), [prompt, HEADS, WIDTH])
        filled[f"present_{name}"] = builder.pad(heads, [0, 0, 0, LENGTH - prompt, 0, 0])
    fill = builder.build(filled)
    step_graph = scatter_graph(builder)
    assert fill.get_input_names() == ["rows"] and "rows" not in step_graph.get_input_names()
    caches = {name: context.create_device_tensor(fill, [LENGTH, HEADS, WIDTH], F32) for name in "kv"}
    context.dispatch(fill, {"rows": TOKENS[:prompt]}, {f"present_{n}": t for n, t in caches.items()})
    y = np.zeros((1, HEADS * WIDTH), np.float32)
    for step in range(prompt, STEPS):
        given = {
            "x": TOKENS[step : step + 1],
            "position": np.array([[step]], np.int32),
            "mask": mask_of(step),
        }
        given |= {f"past_{name}": tensor for name, tensor in caches.items()}
        context.dispatch(step_graph, given, {"y": y} | {f"present_{n}": t for n, t in caches.items()})
        np.testing.assert_allclose(y, expected_outputs()[step], rtol=1e-4, atol=1e-5)
