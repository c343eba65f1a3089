"""AsyncMLContext: coroutines that leave the event loop free and overlap."""

from __future__ import annotations

import asyncio
import threading
import time

import numpy as np
import pytest
import webnn


def slow_graph(context, size: int = 384, depth: int = 24):
    """A chain of products that takes some milliseconds."""
    builder = context.create_graph_builder()
    x = builder.input("x", [size, size], "float32")
    y = x
    weight = builder.constant(np.eye(size, dtype=np.float32))
    for _ in range(depth):
        y = builder.matmul(y, weight)
    return builder.build({"y": y})


def small_graph(context):
    builder = context.create_graph_builder()
    return builder.build({"y": builder.neg(builder.input("x", [2], "float32"))})


def test_compute_gives_what_the_context_gives(context):
    async def main():
        async with webnn.AsyncMLContext(context) as asynchronous:
            return await asynchronous.compute(small_graph(context), {"x": np.array([1, -2], np.float32)})

    assert asyncio.run(main())["y"].tolist() == [-1, 2]


def test_outputs_can_be_the_callers_arrays(context):
    mine = np.zeros(2, np.float32)

    async def main():
        async with webnn.AsyncMLContext(context) as asynchronous:
            inputs = {"x": np.array([1, -2], np.float32)}
            return await asynchronous.compute(small_graph(context), inputs, {"y": mine})

    assert asyncio.run(main())["y"] is mine
    assert mine.tolist() == [-1, 2]


def test_the_event_loop_stays_free_during_a_run(context):
    graph = slow_graph(context)
    value = np.ones((384, 384), np.float32)

    async def main():
        ticks = 0
        async with webnn.AsyncMLContext(context) as asynchronous:
            run = asyncio.ensure_future(asynchronous.compute(graph, {"x": value}))
            while not run.done():
                await asyncio.sleep(0)
                ticks += 1
        return ticks, run.result()

    ticks, results = asyncio.run(main())
    assert ticks > 10
    np.testing.assert_allclose(results["y"], value, rtol=1e-5)


def test_runs_of_several_tasks_overlap(context, monkeypatch):
    """All four are inside compute at once: a barrier lets none leave before."""
    graph, barrier = small_graph(context), threading.Barrier(4, timeout=20)

    class Meeting:
        def compute(self, *arguments):
            barrier.wait()
            return context.compute(*arguments)

    async def main():
        async with webnn.AsyncMLContext(context) as asynchronous:
            monkeypatch.setattr(asynchronous, "_context", Meeting())
            inputs = [{"x": np.array([i, i], np.float32)} for i in range(4)]
            return await asyncio.gather(*(asynchronous.compute(graph, each) for each in inputs))

    assert [result["y"].tolist() for result in asyncio.run(main())] == [[-i, -i] for i in range(4)]


def test_compute_releases_the_interpreter(context):
    """While one thread computes, this one goes on executing Python: on a busy machine not at each attempt."""
    graph, value = slow_graph(context), np.ones((384, 384), np.float32)

    def steps_during_compute() -> int:
        thread = threading.Thread(target=context.compute, args=(graph, {"x": value}))
        thread.start()
        steps = 0
        while thread.is_alive():
            steps += 1
            time.sleep(0)
        thread.join()
        return steps

    assert any(steps_during_compute() > 10 for _ in range(20))


def test_a_cancelled_call_leaves_the_context_usable(context):
    graph, value = slow_graph(context), np.ones((384, 384), np.float32)

    async def main():
        async with webnn.AsyncMLContext(context) as asynchronous:
            run = asyncio.ensure_future(asynchronous.compute(graph, {"x": value}))
            await asyncio.sleep(0.001)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            return await asynchronous.compute(graph, {"x": value})

    np.testing.assert_allclose(asyncio.run(main())["y"], value, rtol=1e-5)


def test_tensors_dispatch_and_read_back(context):
    async def main():
        async with webnn.AsyncMLContext(context) as asynchronous:
            x, y, z = (asynchronous.create_tensor([2], "float32") for _ in range(3))
            assert x.readable and x.writable
            await asynchronous.write_tensor_async(x, np.array([3, -4], np.float32))
            graph = small_graph(context)
            await asynchronous.dispatch(graph, {"x": x}, {"y": y})
            asynchronous.write_tensor(z, asynchronous.read_tensor(y))
            return await asynchronous.read_tensor_async(z)

    assert asyncio.run(main()).tolist() == [-3, 4]


def test_errors_arrive_at_the_awaiting_task(context):
    async def main():
        async with webnn.AsyncMLContext(context) as asynchronous:
            with pytest.raises(ValueError, match="Missing input: x"):
                await asynchronous.compute(small_graph(context), {})
        with pytest.raises(RuntimeError):
            await asynchronous.compute(small_graph(context), {"x": np.ones(2, np.float32)})

    asyncio.run(main())


def test_it_shows_its_contexts_properties_and_wraps_nothing_else(context):
    asynchronous = webnn.AsyncMLContext(context)
    assert asynchronous.accelerated == context.accelerated
    assert asynchronous.power_preference == "default"
    assert isinstance(asynchronous.create_graph_builder(), webnn.MLGraphBuilder)
    asynchronous.close()
    with pytest.raises(TypeError, match="takes an MLContext, not a str"):
        webnn.AsyncMLContext("cpu")
