"""A graph file or an ONNX model here and on ONNX Runtime, in alternation.

`headrace bench` runs it where it can.

    python -m headrace._cli.compare_onnxruntime model.hrg --threads 2

Ends with status NO_PEER, and says why, where there is nothing to compare with, and with DISAGREEMENT where
the peer computes something else.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from .. import Graph, Session, TensorInfo, compile, load_graph, set_num_threads
from .._core import view
from ..loading import is_onnx
from ..onnx import import_graph

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnxruntime

NO_PEER, DISAGREEMENT = 3, 4
TOLERANCE = 1e-3  # of the largest magnitude in an output
ROUNDED_TOLERANCE = {"q8_0": 0.05, "q4_0": 0.5}  # of weights that this side alone rounds


def give_up(reason: str) -> NoReturn:
    print(f"no comparison: {reason}", file=sys.stderr)
    raise SystemExit(NO_PEER)


def disagree(how: str) -> NoReturn:
    print(f"headrace: {how}", file=sys.stderr)
    raise SystemExit(DISAGREEMENT)


def pairs(arguments: list[str]) -> dict[str, str]:
    """NAME=VALUE arguments."""
    return dict(argument.split("=", 1) for argument in arguments)


def extents(tensor: TensorInfo, shapes: dict[str, str]) -> list[int]:
    """The concrete shape of an input."""
    if tensor.name in shapes:
        return [int(extent) for extent in shapes[tensor.name].split(",") if extent]
    for extent in tensor.shape:
        if not isinstance(extent, int):
            give_up(f"input '{tensor.name}' has unknown extents: give them with --shape {tensor.name}=...")
    return list(tensor.shape)


def read_graph(arguments: argparse.Namespace) -> Graph:
    if not is_onnx(arguments.graph):
        return load_graph(arguments.graph, arguments.manifest, arguments.weights)
    dimensions = dict(argument.rsplit("=", 1) for argument in arguments.dimension)
    return import_graph(arguments.graph, {name: int(number) for name, number in dimensions.items()})


def make_inputs(inputs: list[TensorInfo], arguments: argparse.Namespace) -> dict[str, np.ndarray]:
    """From files, or generated: floats in [-1, 1), integers 0 or 1."""
    rng = np.random.default_rng(arguments.seed)
    files, shapes = pairs(arguments.input), pairs(arguments.shape)
    feeds = {}
    for tensor in inputs:
        if tensor.name in files:
            feeds[tensor.name] = np.load(files[tensor.name])
            continue
        shape = extents(tensor, shapes)
        array = rng.uniform(-1, 1, shape) if tensor.dtype.kind == "f" else rng.integers(0, 2, shape)
        feeds[tensor.name] = array.astype(tensor.dtype)
    return feeds


def open_peer(graph: Graph, threads: int) -> onnxruntime.InferenceSession:
    """The same graph on ONNX Runtime's CPU."""
    import onnxruntime

    from .. import _onnx_export

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.onnx")
        try:
            _onnx_export.write_model(*_onnx_export.export(view(graph)), path)
            return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except (ValueError, RuntimeError) as error:
            give_up(str(error))


def show_share() -> Callable[[float], None] | None:
    """Shows on standard error how far the rounds are, where that is a terminal."""
    if not sys.stderr.isatty():
        return None

    def show(share: float) -> None:
        full = int(share * 30)
        line = f"timing [{'#' * full}{'.' * (30 - full)}] {share:.0%}" if share < 1 else ""
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)

    return show


def flat(outputs: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([output.astype(np.float64).ravel() for output in outputs])


def main() -> None:
    parser = argparse.ArgumentParser(prog="headrace bench", description=__doc__)
    parser.add_argument("graph")
    parser.add_argument("--manifest", default=None)
    parser.add_argument("--weights", default=None)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--host-timeout-ms", type=int, default=60000)
    parser.add_argument("--weight-format", default="as-given")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--dimension", action="append", default=[])
    parser.add_argument("--input", action="append", default=[])
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--json", default=None)
    arguments = parser.parse_args()
    for package in ("onnx", "onnxruntime"):
        if importlib.util.find_spec(package) is None:
            give_up(f"{package} is not installed: pip install onnx onnxruntime")
    from . import ab_timing  # needs both

    threads = arguments.threads or len(os.sched_getaffinity(0))
    set_num_threads(threads)
    try:
        graph = read_graph(arguments)
        executable = compile(
            graph,
            device=arguments.device,
            host_timeout_ms=arguments.host_timeout_ms,
            threads=threads,
            weights=arguments.weight_format,
        )
    except (OSError, ValueError, RuntimeError) as error:
        sys.exit(f"headrace: {error}")
    session = Session(executable)
    feeds = make_inputs(executable.inputs, arguments)
    peer = open_peer(graph, threads)
    names = [tensor.name for tensor in executable.outputs]

    outputs = session.run(feeds)
    ours, theirs = flat([outputs[name] for name in names]), flat(peer.run(names, feeds))
    tolerance = ROUNDED_TOLERANCE.get(arguments.weight_format, TOLERANCE) * max(
        1.0, float(np.abs(theirs).max(initial=0))
    )
    if not np.allclose(ours, theirs, rtol=0, atol=tolerance, equal_nan=True):
        disagree(f"ONNX Runtime's results differ by {np.abs(ours - theirs).max():.2e}")
    case = ab_timing.Case(
        Path(arguments.graph).name,
        threads,
        ours=lambda: session.run(feeds)[names[0]],
        peer=lambda: peer.run(names, feeds)[0],
        tolerance=tolerance,
    )
    host = ab_timing.machine()
    prints = arguments.json != "-"  # which is standard output in place of the table
    if prints:
        ab_timing.print_machine(host, arguments.rounds)
        ab_timing.print_header()
    try:
        result = ab_timing.compare(case, arguments.rounds, arguments.seconds, show_share())
    except ab_timing.DisagreementError as error:
        disagree(str(error))
    if not prints:
        print(ab_timing.json_text(host, arguments.rounds, [result]), end="")
        return
    ab_timing.print_row(result)
    if arguments.json:
        ab_timing.write_json(Path(arguments.json), host, arguments.rounds, [result])


if __name__ == "__main__":
    main()
