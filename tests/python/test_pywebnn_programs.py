"""Whole programs as users of pywebnn write them, with their results computed in NumPy."""

import asyncio
import pathlib

import numpy as np
import pytest
import webnn

RNG = np.random.default_rng(7)


def random(*shape, scale=1.0):
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def test_the_readmes_first_program(tmp_path):
    ml = webnn.ML()
    context = ml.create_context(accelerated=False)
    builder = context.create_graph_builder()
    x = builder.input("x", [2, 3], "float32")
    y = builder.input("y", [2, 3], "float32")
    output = builder.relu(builder.add(x, y))
    graph = builder.build({"output": output})
    x_data = np.array([[1, -2, 3], [4, -5, 6]], dtype=np.float32)
    y_data = np.array([[-1, 2, -3], [-4, 5, 7]], dtype=np.float32)
    results = context.compute(graph, {"x": x_data, "y": y_data})
    np.testing.assert_array_equal(results["output"], np.maximum(x_data + y_data, 0))
    assert graph.get_input_names() == ["x", "y"] and graph.get_output_names() == ["output"]
    graph.save(tmp_path / "model.webnn")
    loaded = webnn.MLGraph.load(pathlib.Path(tmp_path / "model.webnn"))
    np.testing.assert_array_equal(
        context.compute(loaded, {"x": x_data, "y": y_data})["output"], results["output"]
    )


def conv2d(x, w, stride):
    """NCHW with a border of 1."""
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    patches = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    return np.einsum("nchwij,ocij->nohw", patches, w)


def test_an_image_classifier_with_tensors(context):
    weights = {"stem": random(8, 3, 3, 3, scale=0.3), "fc": random(8, 10), "bias": random(10)}
    mean, variance = random(8, scale=0.1), np.abs(random(8)) + 0.5
    builder = context.create_graph_builder()
    image = builder.input("image", [1, 3, 16, 16], "float32")
    x = builder.conv2d(image, builder.constant(weights["stem"]), strides=[2, 2], pads=[1, 1, 1, 1])
    x = builder.relu(builder.batch_normalization(x, builder.constant(mean), builder.constant(variance)))
    x = builder.max_pool2d(x, window_dimensions=[2, 2], strides=[2, 2])
    x = builder.reshape(builder.global_average_pool(x), [1, 8])
    logits = builder.gemm(x, builder.constant(weights["fc"]), c=builder.constant(weights["bias"]))
    graph = builder.build({"probabilities": builder.softmax(logits, axis=1), "logits": logits})

    source = context.create_tensor([1, 3, 16, 16], "float32", writable=True)
    found = context.create_tensor([1, 10], "float32", readable=True)
    raw = np.zeros((1, 10), np.float32)
    for _ in range(3):
        pixels = random(1, 3, 16, 16)
        context.write_tensor(source, pixels)
        context.dispatch(graph, {"image": source}, {"probabilities": found, "logits": raw})
        y = conv2d(pixels.astype(np.float64), weights["stem"], 2)
        y = (y - mean[:, None, None]) / np.sqrt(variance[:, None, None] + 1e-5)
        y = np.maximum(y, 0).reshape(1, 8, 4, 2, 4, 2).max((3, 5)).mean((2, 3))
        y = y @ weights["fc"] + weights["bias"]
        np.testing.assert_allclose(raw, y, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(context.read_tensor(found), softmax(y), rtol=1e-3, atol=1e-5)


def test_sentence_embeddings_with_device_tensors(context):
    """MiniLM's parts: embeddings, one layer of attention and feed-forward, the mean over unmasked tokens."""
    vocabulary, length, width, heads = 40, 6, 16, 2
    table = random(vocabulary, width)
    w = {name: random(width, width, scale=0.3) for name in "qkvo"}
    builder = context.create_graph_builder()
    ids = builder.input("input_ids", [1, length], "int64")
    mask = builder.input("attention_mask", [1, length], "int64")
    tokens = builder.gather(builder.constant(table), ids, axis=0)

    def split_heads(name):
        product = builder.matmul(tokens, builder.constant(w[name]))
        return builder.transpose(builder.reshape(product, [1, length, heads, width // heads]), [0, 2, 1, 3])

    q, k, v = (split_heads(name) for name in "qkv")
    scores = builder.matmul(q, builder.transpose(k, permutation=[0, 1, 3, 2]))
    scores = builder.mul(scores, builder.constant(np.float32(1 / np.sqrt(width // heads))))
    kept = builder.cast(mask, "float32")
    hidden = builder.mul(
        builder.sub(builder.constant(np.float32(1)), kept), builder.constant(np.float32(-1e9))
    )
    scores = builder.add(scores, builder.unsqueeze(hidden, [1, 2]))
    mixed = builder.transpose(builder.matmul(builder.softmax(scores, axis=3), v), [0, 2, 1, 3])
    mixed = builder.matmul(builder.reshape(mixed, [1, length, width]), builder.constant(w["o"]))
    layer = builder.layer_normalization(builder.add(tokens, mixed), axes=[2])
    weight = builder.unsqueeze(kept, [2])
    total = builder.reduce_sum(builder.mul(layer, weight), axes=[1])
    mean = builder.div(total, builder.reduce_sum(weight, axes=[1]))
    norm = builder.sqrt(builder.reduce_sum(builder.mul(mean, mean), axes=[1], keep_dimensions=True))
    graph = builder.build({"embedding": builder.div(mean, norm)})

    id_tensor = context.create_device_tensor(graph, [1, length], "int64")
    result = context.create_device_tensor(graph, [1, width], "float32", device="cpu")
    for count in (6, 4, 2):
        numbers, keep = (
            RNG.integers(0, vocabulary, (1, length)),
            (np.arange(length) < count).astype(np.int64)[None],
        )
        id_tensor.write(numbers)
        context.dispatch(graph, {"input_ids": id_tensor, "attention_mask": keep}, {"embedding": result})
        x = table[numbers[0, :count]].astype(np.float64)
        qkv = [(x @ w[n]).reshape(count, heads, -1).transpose(1, 0, 2) for n in "qkv"]
        attended = softmax(qkv[0] @ qkv[1].transpose(0, 2, 1) / np.sqrt(width // heads)) @ qkv[2]
        x = x + attended.transpose(1, 0, 2).reshape(count, width) @ w["o"]
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        expected = x.mean(0) / np.linalg.norm(x.mean(0))
        np.testing.assert_allclose(result.read()[0], expected, rtol=1e-3, atol=1e-4)


def test_an_async_pipeline_over_a_batch_of_requests(context):
    async_context = webnn.AsyncMLContext(context)
    builder = async_context.create_graph_builder()
    weight = random(8, 4)
    x = builder.input("x", [2, 8], "float32")
    graph = builder.build({"y": builder.tanh(builder.matmul(x, builder.constant(weight)))})
    requests = [random(2, 8) for _ in range(6)]

    async def serve(request):
        given = async_context.create_tensor([2, 8], "float32")
        answer = async_context.create_tensor([2, 4], "float32")
        await async_context.write_tensor_async(given, request)
        await async_context.dispatch(graph, {"x": given}, {"y": answer})
        return await async_context.read_tensor_async(answer)

    async def main():
        async with async_context:
            return await asyncio.gather(*map(serve, requests))

    for request, answer in zip(requests, asyncio.run(main()), strict=True):
        np.testing.assert_allclose(answer, np.tanh(request @ weight), rtol=1e-4, atol=1e-5)


def test_greedy_decoding_with_dynamic_lengths(context):
    """The whole text goes in at every step; its length is a dynamic dimension."""
    table, weight = random(12, 8), random(8, 12)
    builder = context.create_graph_builder()
    ids = builder.input("ids", [{"name": "length", "maxSize": 32}], "int64")
    seen = builder.cumulative_sum(builder.gather(builder.constant(table), ids), 0)
    logits = builder.matmul(seen, builder.constant(weight))
    graph = builder.build({"best": builder.arg_max(logits, axis=1, output_data_type="int64")})
    text = expected = [3]
    for _ in range(8):
        best = np.zeros(len(text), np.int64)
        context.dispatch(graph, {"ids": np.array(text)}, {"best": best})
        assert context.compute(graph, {"ids": np.array(text)})["best"].tolist() == best.tolist()
        text = [*text, int(best[-1])]
        expected = [*expected, int(np.argmax(table[expected].sum(0) @ weight))]
    assert text == expected


def test_iterations_that_hand_their_tensors_on(context):
    """A diffusion on a grid: two tensors swap, or one is both."""
    builder = context.create_graph_builder()
    grid = builder.input("grid", [1, 1, 8, 8], "float32")
    kernel = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], np.float32).reshape(1, 1, 3, 3) / 4
    graph = builder.build({"next": builder.conv2d(grid, builder.constant(kernel), pads=[1, 1, 1, 1])})
    start = random(1, 1, 8, 8)
    expected = start.astype(np.float64)
    a, b, c = (context.create_host_tensor([1, 1, 8, 8], "float32") for _ in range(3))
    context.write_tensor(a, start)
    context.write_tensor(c, start)
    for _ in range(7):
        context.dispatch_with_host_tensors(graph, {"grid": a}, {"next": b})
        context.dispatch(graph, {"grid": c}, {"next": c})
        a, b = b, a
        expected = conv2d(expected, kernel, 1)
    np.testing.assert_allclose(context.read_tensor(a), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(context.read_tensor(a), context.read_tensor(c))


def test_training_with_gradients_written_out(context):
    """Logistic regression: the weights are a tensor that every step replaces."""
    features, labels = random(64, 4), None
    labels = (features @ np.array([[1], [-2], [0.5], [3]], np.float32) > 0).astype(np.float32)
    builder = context.create_graph_builder()
    x, y = builder.input("x", [64, 4], "float32"), builder.input("y", [64, 1], "float32")
    w = builder.input("w", [4, 1], "float32")
    p = builder.sigmoid(builder.matmul(x, w))
    gradient = builder.matmul(builder.transpose(x), builder.sub(p, y))
    step = builder.sub(w, builder.mul(gradient, builder.constant(np.float32(0.05))))
    graph = builder.build({"w": step})
    predict = builder.build({"p": p})  # the same builder
    weights = context.create_device_tensor(graph, [4, 1], "float32")
    weights.write(np.zeros((4, 1), np.float32))
    for _ in range(100):
        context.dispatch_with_device_tensors(
            graph, {"x": features, "y": labels, "w": weights}, {"w": weights}
        )
    found = context.compute(predict, {"x": features, "w": weights})["p"]
    assert ((found > 0.5) == labels).mean() > 0.95


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8"]
)
def test_every_type_goes_through_tensors_and_arrays(context, dtype):
    builder = context.create_graph_builder()
    x = builder.input("x", [2, 3], dtype)
    graph = builder.build({"y": builder.concat([x, x], 1), "z": builder.transpose(x)})
    values = np.arange(6).reshape(2, 3).astype(dtype)
    tensor, z = context.create_tensor([2, 3], dtype, writable=True), np.zeros((3, 2), dtype)
    context.write_tensor(tensor, values)
    y = context.create_device_tensor(graph, [2, 6], dtype)
    context.dispatch(graph, {"x": tensor}, {"y": y, "z": z})
    assert y.read().dtype == np.dtype(dtype)
    np.testing.assert_array_equal(y.read(), np.concatenate([values, values], 1))
    np.testing.assert_array_equal(z, values.T)


def test_a_quantized_layer_as_pywebnn_writes_it(context):
    whole, scale, zero = RNG.integers(-100, 100, (64, 32)).astype(np.int8), np.float32(0.02), np.int8(3)
    builder = context.create_graph_builder()
    x = builder.input("x", [4, 64], "float32")
    w = builder.dequantize_linear(
        builder.constant(whole),
        builder.constant(np.full((1, 1), scale)),
        builder.constant(np.full((1, 1), zero)),
    )
    graph = builder.build({"y": builder.gelu(builder.matmul(x, w))})
    assert graph.count_scalar_constants() == 0 and graph.debug_operand(0).startswith("Operand[0]")
    value = random(4, 64, scale=0.2)
    product = value.astype(np.float64) @ ((whole.astype(np.float64) - zero) * scale)
    erf = np.vectorize(__import__("math").erf)
    expected = product * (1 + erf(product / np.sqrt(2))) / 2
    np.testing.assert_allclose(context.compute(graph, {"x": value})["y"], expected, rtol=1e-3, atol=1e-3)


def test_a_context_is_asked_what_it_can_do(context):
    assert context.backend_info()["backend_available"]
    limits = context.op_support_limits()
    assert "float32" in limits["matmul"]["a"]["dataTypes"]
    for arguments in (("high-performance", False), ("low-power", False, "cpu")):
        other = webnn.ML().create_context(*arguments)
        assert other.power_preference == arguments[0] and other.accelerated is False
