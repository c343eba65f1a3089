"""What objects show of themselves, and what tensors keep of how they were made."""

import asyncio

import numpy as np
import pytest
import webnn

F32 = "float32"


@pytest.fixture
def graph(builder):
    x = builder.input("x", [{"name": "n", "maxSize": 8}, 4], F32)
    return builder.build({"y": builder.cast(builder.relu(x), "float16")})


def test_tensors_show_type_shape_and_what_they_allow(context, graph):
    shown = {
        context.create_tensor([2, 3], F32): "MLTensor(float32[2, 3])",
        context.create_tensor([], "int64", readable=True): "MLTensor(int64[], readable)",
        context.create_host_tensor([4], "uint8"): "MLTensor(uint8[4], readable, writable)",
        context.create_tensor([1], F32, exportable_to_gpu=True): "MLTensor(float32[1], exportable_to_gpu)",
        context.create_constant_tensor(np.zeros(2, np.int32)): "MLTensor(int32[2], constant)",
        context.create_device_tensor(graph, [2, 4], "float16"): (
            "MLDeviceTensor(float16[2, 4], device='cpu', backend='ggml')"
        ),
    }
    for tensor, text in shown.items():
        assert repr(tensor) == text
        tensor.destroy()
        assert repr(tensor) == text[:-1] + ", destroyed)"


def test_graphs_contexts_and_operands_show_what_they_are(context, builder, graph):
    assert repr(graph) == "MLGraph({x: float32[n, 4]} -> {y: float16[n, 4]}, 2 operations)"
    assert repr(context) == "MLContext(device='cpu', power_preference='default', accelerated=False)"
    assert repr(webnn.AsyncMLContext(context)) == f"AsyncMLContext({context!r})"
    z = builder.input("z", [2, 3], F32)
    assert repr(z) == "MLOperand('z': float32[2, 3])"
    assert repr(builder.neg(z)) == "MLOperand(float32[2, 3])"


def exportable(context, *arguments, **options):
    return context.create_tensor(*arguments, **options).exportable_to_gpu


def test_exportable_to_gpu_is_kept(context):
    descriptor = {"dataType": F32, "shape": [2], "exportableToGPU": True}
    for owner in (context, webnn.AsyncMLContext(context)):
        assert exportable(owner, [2], F32) is False
        assert exportable(owner, [2], F32, exportable_to_gpu=True) is True
        assert exportable(owner, [2], F32, True, True, True) is True
        assert exportable(owner, [2], F32, exportableToGPU=True) is True
        assert exportable(owner, descriptor) is True
    assert context.createTensor(descriptor).exportable_to_gpu is True
    assert context.create_host_tensor([2], F32).exportable_to_gpu is False


def test_tensors_that_can_be_exported_compute(context, graph):
    async def main():
        async with webnn.AsyncMLContext(context) as asynchronous:
            x = asynchronous.create_tensor([2, 4], F32, exportable_to_gpu=True)
            y = asynchronous.create_tensor([2, 4], "float16", exportable_to_gpu=True)
            asynchronous.write_tensor(x, np.full((2, 4), -1.5, np.float32))
            await asynchronous.dispatch(graph, {"x": x}, {"y": y})
            return await asynchronous.read_tensor_async(y)

    assert (asyncio.run(main()) == 0).all()


def test_descriptors_say_how_a_tensor_is_made(context):
    tensor = context.createTensor({"dataType": "int8", "shape": (2, 3), "readable": True, "writable": True})
    assert (tensor.data_type, tensor.shape, tensor.readable, tensor.writable) == ("int8", [2, 3], True, True)
    assert context.create_tensor({"data_type": "int8", "shape": [1]}).readable is False
    assert context.create_tensor(shape=[1], dataType="int8").data_type == "int8"
    with pytest.raises(TypeError, match="unknown option 'usage'; it takes shape, dataType, readable"):
        context.createTensor({"dataType": F32, "shape": [1], "usage": 3})
    with pytest.raises(TypeError, match="data_type is missing"):
        context.create_tensor([1])
    with pytest.raises(TypeError, match="shape is missing"):
        context.create_tensor({"dataType": F32})
    for shape in ("ab", 3, [1.5]):
        with pytest.raises(TypeError, match=r"create_tensor: shape is .*; it must be a list of integers"):
            context.create_tensor({"dataType": F32, "shape": shape})
    with pytest.raises(TypeError, match="exportable_to_gpu is 'yes'; it must be True or False"):
        context.create_tensor([1], F32, exportable_to_gpu="yes")
