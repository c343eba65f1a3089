"""Large graphs and many shapes, beside ONNX Runtime: make bench-growth.

A chain of 40,000 nodes is loaded, and called once. MiniLM, an LSTM and a convolutional network are called
with 1,000 different shapes, the largest first and the others in no order: resident memory after 10, 100 and
1,000 of them. Each in a fresh process.
Results: a table, and build/bench/growth.json.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import load as loading
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build/bench/growth"
STOPS = (10, 100, 1000)
NODES = 40_000


def write_chain(path: Path, nodes: int) -> None:
    """Products, sums and activations one after another, with a constant each third node."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    made, constants, at = [], [], "x"
    for i in range(nodes):
        operator = ("Mul", "Tanh", "Add")[i % 3]
        operands = [at]
        if operator != "Tanh":
            operands.append(f"c{i}")
            constants.append(numpy_helper.from_array(np.full(8, 1 + i % 7 / 8, np.float32), f"c{i}"))
        at = f"v{i}"
        made.append(helper.make_node(operator, operands, [at]))
    graph = helper.make_graph(
        made,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
        [helper.make_tensor_value_info(at, TensorProto.FLOAT, ["batch", 8])],
        constants,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def _chain() -> tuple[Path, Callable[[int], dict[str, np.ndarray]]]:
    path = OUT / f"chain{NODES}.onnx"
    if not path.exists():
        write_chain(path, NODES)
    return path, lambda i: {"x": np.ones((1 + i, 8), np.float32)}


def _tokens(i: int) -> dict[str, np.ndarray]:
    """1 to 5 texts of 1 to 200 tokens."""
    shape = (1 + i // 200, 1 + i % 200)
    return {"x0": np.ones(shape, np.int64), "x1": np.ones(shape, np.int64)}


CASES: dict[str, tuple[str, Callable[[int], dict[str, np.ndarray]]]] = {
    "minilm": ("minilm_128", _tokens),
    "lstm": ("lstm_long", lambda i: {"x": np.zeros((1 + i % 250, 1 + i // 250, 64), np.float32)}),
    "resnet18": ("resnet18", lambda i: {"x0": np.zeros((1 + i % 8, 3, 32 + i // 8, 64), np.float32)}),
}


def write_lstm(path: Path) -> None:
    """Two layers of 128, steps and batch open."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    generator, nodes, constants, at = np.random.default_rng(0), [], [], "x"
    for layer, width in enumerate((64, 128)):
        for name, shape in (("W", (1, 512, width)), ("R", (1, 512, 128))):
            values = generator.standard_normal(shape).astype(np.float32) / 16
            constants.append(numpy_helper.from_array(values, f"{name}{layer}"))
        nodes.append(helper.make_node("LSTM", [at, f"W{layer}", f"R{layer}"], [f"y{layer}"], hidden_size=128))
        nodes.append(helper.make_node("Squeeze", [f"y{layer}", "axis"], [f"z{layer}"]))
        at = f"z{layer}"
    constants.append(numpy_helper.from_array(np.array([1]), "axis"))
    graph = helper.make_graph(
        nodes,
        "lstm",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["steps", "batch", 64])],
        [helper.make_tensor_value_info(at, TensorProto.FLOAT, ["steps", "batch", 128])],
        constants,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def _resnet_open(path: Path) -> None:
    """The exported one has the images' extents as numbers."""
    import onnx

    model = onnx.load(loading.OUT / "resnet18/model.onnx")
    for axis, name in ((0, "batch"), (2, "height"), (3, "width")):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    del model.graph.value_info[:]
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)


def model_of(name: str) -> Path:
    case, _ = CASES[name]
    path = OUT / f"{case}.onnx"
    if path.exists():
        return path
    if name == "lstm":
        write_lstm(path)
        return path
    exported = loading.OUT / case / "model.onnx"
    if not exported.exists():
        command = [sys.executable, loading.__file__, "--export", case, str(exported.parent)]
        subprocess.run(command, check=True)
    if name == "resnet18":
        _resnet_open(path)
        return path
    return exported


def _load(side: str, path: Path, threads: int) -> Callable[[dict[str, np.ndarray]], Any]:
    if side == "headrace":
        import headrace

        return headrace.load(path, device="cpu", threads=threads, packed_cache="off")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options)
    return lambda feeds: session.run(None, feeds)


def shuffled(count: int) -> list[int]:
    """The largest first, so that what grows is what stays of shapes that are gone."""
    order = list(range(count - 1))
    random.Random(0).shuffle(order)
    return [count - 1, *order]


def work(side: str, name: str, threads: int) -> dict[str, float]:
    """One fresh process: what it took."""
    path, feeds = _chain() if name == "chain" else (model_of(name), CASES[name][1])
    begin = time.perf_counter()
    call = _load(side, path, threads)
    facts = {"load_s": time.perf_counter() - begin}
    for i, shape in enumerate([0] if name == "chain" else shuffled(STOPS[-1])):
        call(feeds(shape))
        if i == 0:
            facts["first_s"] = time.perf_counter() - begin
        if i + 1 in STOPS:
            facts[f"mib_{i + 1}"] = loading._status("VmRSS") / 2**20
    facts["whole_s"] = time.perf_counter() - begin
    facts["peak_mib"] = loading._status("VmHWM") / 2**20
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", default=["chain", *CASES], choices=["chain", *CASES])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", nargs=2, metavar=("SIDE", "CASE"))
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if arguments.work:
        print(json.dumps(work(*arguments.work, arguments.threads)))
        return
    rows = []
    for name in arguments.cases:
        _chain() if name == "chain" else model_of(name)
        for side in ("headrace", "onnxruntime"):
            command = [sys.executable, __file__, "--work", side, name, "--threads", str(arguments.threads)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"{side} cannot run {name}:\n{done.stderr[-2000:]}")
            facts = json.loads(done.stdout.splitlines()[-1])
            rows.append({"case": name, "side": side} | facts)
            print(f"{name:10} {side:12}", "  ".join(f"{k} {v:.2f}" for k, v in facts.items()), flush=True)
    OUT.with_suffix(".json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
