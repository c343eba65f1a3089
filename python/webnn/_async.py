"""AsyncMLContext: the blocking calls of a context as coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from headrace._core import MLContext, MLDeviceTensor, MLGraph, MLGraphBuilder, MLTensor


class AsyncMLContext:
    """Runs graphs in worker threads, so that the event loop stays free; runs of several tasks overlap.

    A cancelled call does not stop a run that has begun: the run ends by itself and its result is dropped.
    `workers` bounds the runs at a time; closing waits for those that still go on.
    """

    def __init__(self, context: MLContext, workers: int = 8) -> None:
        if not isinstance(context, MLContext):
            raise TypeError(f"AsyncMLContext takes an MLContext, not a {type(context).__name__}")
        self._context = context
        self._workers = ThreadPoolExecutor(workers, thread_name_prefix="webnn")

    @property
    def accelerated(self) -> bool:
        """Whether graphs of this context run on a GPU."""
        return self._context.accelerated

    @property
    def power_preference(self) -> str:
        """What the context was created with."""
        return self._context.power_preference

    def create_graph_builder(self) -> MLGraphBuilder:
        """A builder of graphs."""
        return self._context.create_graph_builder()

    def create_tensor(
        self,
        shape: Sequence[int] | Mapping[str, Any],
        data_type: str | None = None,
        readable: bool = True,
        writable: bool = True,
        exportable_to_gpu: bool = False,
        **options: Any,
    ) -> MLTensor:
        """MLContext.create_tensor, but readable and writable by default."""
        return self._context.create_tensor(shape, data_type, readable, writable, exportable_to_gpu, **options)

    def create_host_tensor(self, shape: Sequence[int], data_type: str) -> MLTensor:
        """A tensor that can be read and written."""
        return self._context.create_host_tensor(shape, data_type)

    def create_device_tensor(
        self, graph: MLGraph, shape: Sequence[int], data_type: str, device: str | None = None
    ) -> MLDeviceTensor:
        """MLContext.create_device_tensor."""
        return self._context.create_device_tensor(graph, shape, data_type, device)

    async def compute(
        self, graph: MLGraph, inputs: dict[str, Any], outputs: dict[str, Any] | None = None
    ) -> dict[str, np.ndarray]:
        """MLContext.compute. The caller's arrays must stay as they are until it ends, even if cancelled."""
        return await self._run(self._context.compute, graph, inputs, outputs)

    async def dispatch(self, graph: MLGraph, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """MLContext.dispatch, of tensors and arrays; the outputs are complete when it ends."""
        await self._run(self._context.dispatch, graph, inputs, outputs)

    dispatch_with_device_tensors = dispatch_with_host_tensors = dispatch

    def read_tensor(self, tensor: MLTensor | MLDeviceTensor) -> np.ndarray:
        """The content at once."""
        return self._context.read_tensor(tensor)

    def write_tensor(self, tensor: MLTensor | MLDeviceTensor, data: Any) -> None:
        """Replaces the content at once."""
        self._context.write_tensor(tensor, data)

    async def read_tensor_async(self, tensor: MLTensor | MLDeviceTensor) -> np.ndarray:
        """The content."""
        return await self._run(self._context.read_tensor, tensor)

    async def write_tensor_async(self, tensor: MLTensor | MLDeviceTensor, data: Any) -> None:
        """Replaces the content."""
        await self._run(self._context.write_tensor, tensor, data)

    async def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._workers, function, *arguments)

    def __repr__(self) -> str:
        return f"AsyncMLContext({self._context!r})"

    def close(self) -> None:
        """Waits for runs that still go on; later calls raise RuntimeError."""
        self._workers.shutdown(wait=True)

    async def __aenter__(self) -> AsyncMLContext:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await asyncio.to_thread(self.close)
