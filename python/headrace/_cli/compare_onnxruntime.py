"""A graph file or an ONNX model here and on ONNX Runtime, in alternation.

ONNX Runtime gets an ONNX model as it is, and a graph file written out as one.

`headrace bench` runs it where it can.

    python -m headrace._cli.compare_onnxruntime model.hrg --threads 2

Ends with status NO_PEER, and says why, where there is nothing to compare with, and with DISAGREEMENT where
the peer computes something else.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .. import TensorInfo, compile, load, load_graph, set_num_threads
from .._core import view
from ..loading import is_onnx
from ..model import Model

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnxruntime

NO_PEER, DISAGREEMENT = 3, 4
TOLERANCE = 1e-3  # of the largest magnitude in an output
ROUNDED_TOLERANCE = {"q8_0": 0.05, "q4_0": 0.5}  # of weights that this side alone rounds
QUANTIZED_TOLERANCE = 0.05  # of models that round on the way, where a last bit may become a whole step


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


def open_ours(arguments: argparse.Namespace, threads: int) -> tuple[Model, Any]:
    """The model, and of a graph file its graph as it was read."""
    options = {
        "device": arguments.device,
        "host_timeout_ms": arguments.host_timeout_ms,
        "threads": threads,
        "weights": arguments.weight_format,
    }
    if is_onnx(arguments.graph):
        dimensions = dict(argument.rsplit("=", 1) for argument in arguments.dimension)
        numbers = {name: int(number) for name, number in dimensions.items()}
        model = load(arguments.graph, dimensions=numbers, **options)
        if not isinstance(model, Model):
            give_up(
                "the model is read anew for the shapes of each call; give all with --shape or --dimension"
            )
        return model, None
    graph = load_graph(arguments.graph, arguments.manifest, arguments.weights)
    return Model(compile(graph, **options), graph, Path(arguments.graph).name), graph


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


def open_peer(path: str, graph: Any, threads: int) -> onnxruntime.InferenceSession:
    """The model on ONNX Runtime's CPU. graph: in place of the file at `path`, to be written out."""
    import onnxruntime

    from .. import _onnx_export

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory() as folder:
        try:
            if graph is not None:
                path = str(Path(folder) / "model.onnx")
                _onnx_export.write_model(*_onnx_export.export(view(graph)), path)
            return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's have no class in common
            give_up(f"ONNX Runtime does not open it: {error}" if graph is None else str(error))


def as_peer_takes(feeds: dict[str, np.ndarray], peer: onnxruntime.InferenceSession) -> dict[str, np.ndarray]:
    """The feeds in the types that the peer's inputs declare: graphs have no bool and no 16-bit integers."""
    taken = {}
    for declared in peer.get_inputs():
        name = declared.type.removeprefix("tensor(").removesuffix(")")
        try:
            dtype = np.dtype({"float": "float32", "double": "float64"}.get(name, name))
        except TypeError:
            give_up(f"ONNX Runtime's input '{declared.name}' is {declared.type}, for which NumPy has no type")
        taken[declared.name] = feeds[declared.name].astype(dtype)
    return taken


def run_peer(peer: onnxruntime.InferenceSession, names: list[str], feeds: dict[str, np.ndarray]) -> list[Any]:
    try:
        return peer.run(names, feeds)
    except Exception as error:  # as above
        give_up(f"ONNX Runtime does not run it: {error}")


def allowed(model: Model, weights: str) -> float:
    """Differences that are no disagreement, of the largest magnitude."""
    is_quantized = any("quantize" in node.op for node in view(model.graph).nodes)
    return max(ROUNDED_TOLERANCE.get(weights, TOLERANCE), QUANTIZED_TOLERANCE if is_quantized else 0)


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
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--dimension", action="append", default=[])
    parser.add_argument("--input", action="append", default=[])
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--json", default=None)
    arguments = parser.parse_args()
    # A graph file is written out by the package onnx.
    for package in ("onnxruntime",) if is_onnx(arguments.graph) else ("onnx", "onnxruntime"):
        if importlib.util.find_spec(package) is None:
            give_up(f"{package} is not installed: pip install onnx onnxruntime")
    from . import ab_timing  # needs ONNX Runtime

    threads = arguments.threads
    try:
        set_num_threads(threads)
        model, graph = open_ours(arguments, threads)
        feeds = make_inputs(model.inputs, arguments)
        peer = open_peer(arguments.graph, graph, threads)
        names = [output.name for output in peer.get_outputs()]
        feeds = as_peer_takes(feeds, peer)
        outputs = model.run(feeds)
    except (MemoryError, OSError, RuntimeError, ValueError) as error:
        sys.exit(f"headrace: {error}")
    if not all(isinstance(output, np.ndarray) for output in outputs.values()):
        give_up("the model gives sequences or optionals, which are not compared")
    ours, theirs = flat([outputs[name] for name in names]), flat(run_peer(peer, names, feeds))
    if ours.shape != theirs.shape:
        disagree(f"ONNX Runtime's results have {theirs.size} elements, these {ours.size}")
    tolerance = allowed(model, arguments.weight_format) * max(1.0, float(np.abs(theirs).max(initial=0)))
    if not np.allclose(ours, theirs, rtol=0, atol=tolerance, equal_nan=True):
        disagree(f"ONNX Runtime's results differ by {np.abs(ours - theirs).max():.2e}")
    case = ab_timing.Case(
        Path(arguments.graph).name,
        threads,
        ours=lambda: model.run(feeds)[names[0]],
        peer=lambda: peer.run(names, feeds)[0],
        tolerance=tolerance,
    )
    host = ab_timing.machine()
    prints = arguments.json != "-"  # which is standard output in place of the table
    if prints:
        ab_timing.print_machine(host, arguments.rounds)
        ab_timing.print_header(has_targets=False)
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
