"""Exported models of tests/executorch/zoo.py: our delegate against XNNPACK's and against ONNX Runtime.

make bench-executorch [MODELS="mlp resnet18"]
"""

from __future__ import annotations

import functools
import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import headrace
import numpy as np
import onnxruntime
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings import portable_lib
from executorch_ggml import GgmlPartitioner
from headrace import alternate

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/executorch"))
import zoo

Call = Callable[[], np.ndarray]
TOLERANCE = 1e-3  # of the largest magnitude: peers order their sums in other ways


@functools.cache
def model(name: str) -> zoo.Model:
    torch.manual_seed(0)
    made = zoo.MODELS[name]()
    made.module.eval().requires_grad_(False)
    return made


@functools.cache
def lowered(name: str, partitioner: type) -> bytes:
    """The program for the model's own sizes."""
    exported = torch.export.export(model(name).module, model(name).inputs, strict=False)
    return to_edge_transform_and_lower(exported, partitioner=[partitioner()]).to_executorch().buffer


@functools.cache
def onnx_bytes(name: str) -> bytes:
    file = io.BytesIO()
    torch.onnx.export(model(name).module, model(name).inputs, file, dynamo=False, opset_version=17)
    return file.getvalue()


def executorch_call(name: str, partitioner: type) -> Call:
    module = portable_lib._load_for_executorch_from_buffer(lowered(name, partitioner))
    inputs = model(name).inputs
    return lambda: module.run_method("forward", inputs)[0].numpy()


def onnxruntime_call(name: str, threads: int) -> Call:
    session = onnxruntime.InferenceSession(onnx_bytes(name), alternate.set_threads(threads))
    feeds = {
        given.name: tensor.numpy()
        for given, tensor in zip(session.get_inputs(), model(name).inputs, strict=True)
    }
    return lambda: session.run(None, feeds)[0]


def cases(threads: int) -> Iterator[alternate.Case]:
    names = os.environ.get("MODELS", "").split() or list(zoo.MODELS)
    headrace.set_num_threads(threads)
    portable_lib._unsafe_reset_threadpool(threads)
    for name in names:
        ours = executorch_call(name, GgmlPartitioner)
        tolerance = TOLERANCE * float(np.abs(ours()).max())
        for peer, make in (
            ("XNNPACK", lambda name=name: executorch_call(name, XnnpackPartitioner)),
            ("ONNX Runtime", lambda name=name: onnxruntime_call(name, threads)),
        ):
            try:
                theirs = make()
            except Exception as error:
                print(f"{name}: {peer} cannot run it: {str(error).splitlines()[0][:120]}", flush=True)
                continue
            yield alternate.Case(f"{name}, {peer}", threads, ours, theirs, tolerance)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    alternate.run([cases], __doc__)
