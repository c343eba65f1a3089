"""One program's side of the zoo benchmark, in a process of its own.

    python bench/zoo_worker.py SIDE CASE FOLDER THREADS

Reads a line for each thing to do, and answers with a line of JSON: "output FILE" runs the model once and
saves what it gives, "time N" gives the microseconds a call of N calls, "memory" the bytes that loading and
running took at their peak, beyond what the interpreter and libraries had taken before. "idle SECONDS" runs
it and then waits: the milliseconds of CPU time that the process takes meanwhile. "pace RATE SECONDS" runs it
so many times a second: a list of a call's microseconds, median, and of its CPU time.
"""

from __future__ import annotations

import functools
import json
import logging
import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

Call = Callable[[], np.ndarray]


def _inputs(folder: Path) -> list[np.ndarray]:
    with np.load(folder / "inputs.npz") as stored:
        return [stored[name] for name in stored.files]


def _onnx(folder: Path) -> Path:
    """The model as peers read it: those of quantised products have their own form of them."""
    quantized = folder / "quantized.onnx"
    return quantized if quantized.exists() else folder / "model.onnx"


def _executorch(path: Path, folder: Path, threads: int) -> Callable[[], Call]:
    import torch
    from executorch.extension.pybindings import portable_lib

    portable_lib._unsafe_reset_threadpool(threads)
    # PyTorch only copies outputs here, but after large ones its threads would look for work for milliseconds,
    # on the cores of the next run.
    torch.set_num_threads(1)
    inputs = tuple(torch.from_numpy(x) for x in _inputs(folder))

    def load() -> Call:
        module = portable_lib._load_for_executorch(str(path))
        return lambda: module.run_method("forward", inputs)[0].numpy()

    return load


def headrace(case: str, folder: Path, threads: int) -> Callable[[], Call]:
    import headrace

    headrace.set_num_threads(threads)
    facts = json.loads((folder / "facts.json").read_text())
    if not facts["is_micro"]:
        import executorch_ggml  # noqa: F401  (registers the backend)

        return _executorch(folder / "headrace.pte", folder, threads)
    # ExecuTorch's binding copies results, which takes longer than many an operator.
    return headrace_onnx(case, folder, threads)


def headrace_onnx(case: str, folder: Path, threads: int, precision: str = "exact") -> Callable[[], Call]:
    import headrace

    headrace.set_num_threads(threads)
    weights = json.loads((folder / "facts.json").read_text())["weights"] or "as-given"

    def load() -> Call:
        model = headrace.load(folder / "model.onnx", device="cpu", weights=weights, precision=precision)
        feeds = dict(zip([x.name for x in model.inputs], _inputs(folder), strict=True))
        name = model.outputs[0].name
        return lambda: model.session.run(feeds)[name]

    return load


def plain_ggml(case: str, folder: Path, threads: int) -> Callable[[], Call]:
    import executorch_ggml
    import headrace

    headrace.set_num_threads(threads)
    executorch_ggml.set_options(packed_kernels=False)
    return _executorch(folder / "headrace.pte", folder, threads)


def xnnpack(case: str, folder: Path, threads: int) -> Callable[[], Call]:
    return _executorch(folder / "xnnpack.pte", folder, threads)


def onnx_runtime(case: str, folder: Path, threads: int) -> Callable[[], Call]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads

    def load() -> Call:
        session = onnxruntime.InferenceSession(_onnx(folder), options)
        feeds = dict(zip([x.name for x in session.get_inputs()], _inputs(folder), strict=True))
        return lambda: session.run(None, feeds)[0]

    return load


def openvino(case: str, folder: Path, threads: int, is_exact: bool = True) -> Callable[[], Call]:
    import openvino

    settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}
    if is_exact:
        settings["INFERENCE_PRECISION_HINT"] = "f32"  # bf16 else, where the CPU has it

    def load() -> Call:
        request = openvino.Core().compile_model(_onnx(folder), "CPU", settings).create_infer_request()
        inputs = _inputs(folder)
        return lambda: request.infer(inputs, share_inputs=True, share_outputs=True)[0]

    return load


def torch_compile(case: str, folder: Path, threads: int) -> Callable[[], Call]:
    import torch
    import zoo_models

    torch.set_num_threads(threads)

    def load() -> Call:
        made = zoo_models.model(case)
        compiled = torch.compile(made.module)

        def call() -> np.ndarray:
            with torch.inference_mode():
                result = compiled(*made.inputs)
            return (result[0] if isinstance(result, (tuple, list)) else result).numpy()

        return call

    return load


SIDES = {
    "Headrace": headrace,
    "Headrace on ONNX": headrace_onnx,
    "Headrace fast": functools.partial(headrace_onnx, precision="fast"),
    "plain ggml": plain_ggml,
    "ONNX Runtime": onnx_runtime,
    "OpenVINO": openvino,
    "OpenVINO as it comes": functools.partial(openvino, is_exact=False),
    "XNNPACK": xnnpack,
    "torch.compile": torch_compile,
}


def _status(field: str) -> int:
    text = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", text)[1]) * 1024


def _timed(call: Call, repeats: int) -> float:
    call()  # wakes threads, and brings weights back into the caches
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begin) / repeats * 1e6


def _idle(call: Call, seconds: float) -> float:
    call()
    begin = time.process_time()
    time.sleep(seconds)
    return (time.process_time() - begin) * 1e3


def _paced(call: Call, rate: float, seconds: float) -> list[float]:
    call()
    times: list[float] = []
    begin, cpu = time.perf_counter(), time.process_time()
    for index in range(max(1, round(rate * seconds))):
        time.sleep(max(0.0, begin + index / rate - time.perf_counter()))
        started = time.perf_counter()
        call()
        times.append((time.perf_counter() - started) * 1e6)
    return [statistics.median(times), (time.process_time() - cpu) / len(times) * 1e6]


def main() -> None:
    side, case, folder, threads = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    load = SIDES[side](case, folder, threads)
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    call = load()
    call()
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        what, _, argument = line.strip().partition(" ")
        answer: object = None
        if what == "output":
            np.save(argument, call())
        elif what == "time":
            answer = _timed(call, int(argument))
        elif what == "idle":
            answer = _idle(call, float(argument))
        elif what == "pace":
            answer = _paced(call, *map(float, argument.split()))
        elif what == "memory":
            answer = _status("VmHWM") - before
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    main()
