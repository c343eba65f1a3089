"""headrace/web beside onnxruntime-web in one page of headless Chromium, in turns, on as many threads.

    make web
    npm install --prefix build/onnxruntime-web --ignore-scripts onnxruntime-web@1.30.0
    python bench/in_browser.py [--threads 1 2] [--cases ...] [--rounds 20]
    python bench/in_browser.py --demo

Milliseconds a run, inputs given and outputs taken as arrays of JavaScript: the medians of all rounds, and
onnxruntime-web's by ours. With --demo, seconds from the opening of examples/web to its first search, in a new
profile and after a reload.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(1, str(Path(__file__).resolve().parent.parent / "tests/serve"))
sys.path.insert(1, str(Path(__file__).resolve().parent.parent / "tests/executorch"))
sys.path.insert(1, str(Path(__file__).resolve().parent.parent / "tools"))
from browser import opened
from provision.base import ROOT
from web.server import serving

MODELS = ROOT / "build/bench/web"
GEMMS = {"gemm_256": 256, "gemm_512": 512, "gemm_1024": 1024}
QUANTIZED = ROOT / "build/bench/quantized"  # as make bench-quantized has them


def write_gemm(size: int, path: Path) -> None:
    import onnx
    from onnx import helper, numpy_helper

    weights = np.random.default_rng(0).standard_normal((size, size), np.float32)
    values = [helper.make_tensor_value_info(name, 1, (size, size)) for name in ("x", "y")]
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "gemm", values[:1], values[1:], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


def write_mobilenet(path: Path) -> None:
    import torch
    import zoo

    torch.manual_seed(0)
    module = zoo.mobilenet_v2().module.eval()
    image = (torch.randn(1, 3, 224, 224),)
    torch.onnx.export(module, image, path, input_names=["image"], output_names=["logits"], dynamo=False)


def made(case: str) -> str:
    """The model's path on the server, once it is there."""
    if "." in case:
        if not (QUANTIZED / case / "model.onnx").exists():
            writer = ROOT / "bench/quantized_models.py"
            subprocess.run([sys.executable, writer, case, QUANTIZED / case], check=True)
        return f"/build/bench/quantized/{case}/model.onnx"
    if case.startswith("minilm"):
        return "/build/models/minilm/onnx/model.onnx"
    MODELS.mkdir(parents=True, exist_ok=True)
    path = MODELS / f"{case}.onnx"
    if not path.exists():
        write_gemm(GEMMS[case], path) if case in GEMMS else write_mobilenet(path)
    return f"/build/bench/web/{case}.onnx"


def tokens(length: int, names: tuple[str, str] = ("input_ids", "attention_mask")) -> dict:
    ids = [1 + 7 * i for i in range(length)]  # of small vocabularies, too
    return {name: {"type": "int64", "dims": [1, length], "data": data}
            for name, data in zip(names, (ids, [1] * length), strict=True)}  # fmt: skip


def image(name: str) -> dict:
    return {name: {"type": "float32", "dims": [1, 3, 224, 224]}}


CASES = {
    **{name: {"x": {"type": "float32", "dims": [size, size]}} for name, size in GEMMS.items()},
    "minilm_16": tokens(16),
    "minilm_128": tokens(128),
    "mobilenet_v2": image("image"),
    **{name: tokens(128, ("input.1", "attention_mask.1")) for name in ("minilm.qdq", "minilm.dynamic")},
    **{
        name: image("input.1")
        for name in ("resnet18.f32", "vit_tiny.f32", "mobilenet_v2.qdq", "resnet18.qdq", "vit_tiny.qdq")
    },
}


def compare(cases: list[str], threads: int, rounds: int) -> None:
    with serving() as address, opened() as browser:
        browser.wait_for_scripts(600)
        browser.open(f"{address}/bench/in_browser/index.html")
        print(browser.run("return window.start(arguments[0])", threads), flush=True)
        for case in cases:
            given = {"model": made(case), "inputs": CASES[case], "rounds": rounds}
            found = browser.run("return window.compare(arguments[0])", given)
            report(f"{case:13} {threads} threads", found)


def report(what: str, found: dict) -> None:
    ours, theirs = found["headrace"], found["onnxruntime"]
    medians, least = [np.median(ours), np.median(theirs)], [min(ours), min(theirs)]
    print(
        f"{what}: headrace {medians[0]:8.2f} ms, onnxruntime-web {medians[1]:8.2f} ms, "
        f"{medians[1] / medians[0]:.2f} x; least {least[0]:.2f}, {least[1]:.2f}; "
        f"differ by {found['difference']:.1e}",
        flush=True,
    )


def visit(browser, address: str) -> float:
    begin = time.monotonic()
    browser.open(f"{address}/examples/web/")
    browser.run(
        """return new Promise((go) => {
        const found = document.querySelector('#found');
        const ask = () => {
            if (found.children.length) return go();
            const engine = document.querySelector('#engine').innerText;
            if (engine.startsWith('Ready') && document.querySelector('#text').value && !window.asked) {
                window.asked = true;
                document.querySelector('#search').requestSubmit();
            }
            setTimeout(ask, 5);
        };
        ask(); });"""
    )
    return time.monotonic() - begin


def demo() -> None:
    with serving() as address, opened() as browser:
        for name in ("cold", *["warm"] * 4):
            took = visit(browser, address)
            note, engine = browser.texts("#search-note")[0], browser.texts("#engine")[0]
            print(f"{name}: {took:.2f} s to the first search ({engine} {note})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--demo", action="store_true")
    given = parser.parse_args()
    if given.demo:
        return demo()
    for case in given.cases:
        made(case)
    for threads in given.threads:
        compare(given.cases, threads, given.rounds)


if __name__ == "__main__":
    main()
