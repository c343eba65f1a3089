"""From an ONNX file to the first answer, beside ONNX Runtime: time and memory, each in a fresh process.

    make bench-load [MODELS="minilm_128 resnet50 folder/other.onnx"]

Programs take turns; files are in the page cache. A time is that of loading and the first call less a warm
call: the median of the rounds, below it the shortest, in brackets their parts of ONNX Runtime's. Memory is
the most that was resident until the first answer, beyond the process with the library loaded; "needs" is
what the goal counts: weights and activations.
A file's inputs are in inputs.npz beside it, or made up: open extents are 1, or what --dimension says.
Results: a table, and build/bench/load.json.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build/bench/load"
OURS, LOW, PACKED, PEER = "Headrace", "memory low", "packed cache", "ONNX Runtime"
WARM_RUNS = 5


def _bert_base() -> Any:
    import zoo
    from transformers import BertConfig, BertModel

    module = zoo.Call(
        BertModel(BertConfig(attn_implementation="sdpa")),
        lambda m, ids, mask: m(input_ids=ids, attention_mask=mask, return_dict=False)[0],
    )
    ids = zoo.tokens(1, 64, below=1000)
    return zoo.Model(module, (ids, ids.new_ones(ids.shape)))


def _resnet50() -> Any:
    import zoo
    from transformers import ResNetConfig, ResNetForImageClassification

    made = zoo._classifier(ResNetForImageClassification(ResNetConfig()), 224)
    made.inputs = (made.inputs[0][:1].contiguous(),)
    return made


MORE = {"bert_base": _bert_base, "resnet50": _resnet50}


def export(case: str, folder: Path) -> None:
    """model.onnx with open batches and lengths; of NAME_external, with weights in a file of their own."""
    import torch
    import zoo_models

    name = case.removesuffix("_external")
    torch.manual_seed(0)
    made = MORE[name]() if name in MORE else zoo_models.model(name)
    made.module.eval().requires_grad_(False)
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"x{i}" for i in range(len(made.inputs))]
    axes = {
        key: {0: "batch"} | ({1: "length"} if x.ndim == 2 and not x.is_floating_point() else {})
        for key, x in zip(names, made.inputs, strict=True)
    }
    path = folder / "model.onnx"
    torch.onnx.export(
        made.module,
        made.inputs,
        str(path),
        dynamo=False,
        opset_version=17,
        input_names=names,
        dynamic_axes=axes,
    )
    if name != case:
        import onnx

        model = onnx.load(path)
        onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=1024)
    np.savez(folder / "inputs.npz", **{k: x.numpy() for k, x in zip(names, made.inputs, strict=True)})


CASES = [
    "mlp",
    "minilm_128",
    "vit_tiny",
    "resnet18",
    "mobilenet_v2",
    "whisper_encoder",
    "unet_block",
    "lstm",
    "qwen3_prefill",
    "bert_base",
    "bert_base_external",
    "resnet50",
]


@dataclass
class Case:
    name: str
    model: Path
    folder: Path  #: for inputs, answers and packed weights

    @classmethod
    def of(cls, name: str) -> Case:
        if not name.endswith(".onnx"):
            return cls(name, OUT / name / "model.onnx", OUT / name)
        model = Path(name).resolve()
        return cls(f"{model.parent.name}/{model.stem}", model, OUT / f"{model.parent.name}.{model.stem}")

    def inputs(self) -> Path:
        beside = self.model.parent / "inputs.npz"
        return beside if beside.exists() else self.folder / "inputs.npz"

    def weight_bytes(self) -> int:
        """Bytes of the model and of all its external data."""
        files = {self.model} | {self.model.parent / name for name in _external_files(self.model)}
        return sum(path.stat().st_size for path in files)


def _external_files(model: Path) -> set[str]:
    import onnx

    tensors = onnx.external_data_helper._get_all_tensors(onnx.load(model, load_external_data=False))
    return {
        entry.value
        for tensor in tensors
        if tensor.data_location == onnx.TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }


def make_inputs(case: Case, dimensions: dict[str, int]) -> None:
    """Small integers, and numbers between 0 and 1."""
    import onnxruntime

    generator = np.random.default_rng(0)
    made = {}
    for given in onnxruntime.InferenceSession(case.model).get_inputs():
        shape = [n if isinstance(n, int) and n > 0 else dimensions.get(n, 1) for n in given.shape]
        kind = {"float": np.float32, "double": np.float64, "float16": np.float16}.get(given.type[7:-1])
        whole = {"int64": np.int64, "int32": np.int32, "uint8": np.uint8, "bool": np.bool_}
        made[given.name] = (
            generator.random(shape).astype(kind) if kind else np.ones(shape, whole[given.type[7:-1]])
        )
    case.folder.mkdir(parents=True, exist_ok=True)
    np.savez(case.folder / "inputs.npz", **made)


def _headrace(case: Case, threads: int, **options: str) -> Callable[[], Callable[[dict], Any]]:
    import headrace

    headrace.set_num_threads(threads)

    def load() -> Callable[[dict], Any]:
        _headrace.model = model = headrace.load(case.model, device="cpu", **options)
        return lambda feeds: next(iter(model(feeds).values()))

    return load


def _onnx_runtime(case: Case, threads: int) -> Callable[[], Callable[[dict], Any]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads

    def load() -> Callable[[dict], Any]:
        session = onnxruntime.InferenceSession(case.model, options)
        return lambda feeds: session.run(None, feeds)[0]

    return load


SIDES: dict[str, Callable[[Case, int], Callable]] = {
    OURS: lambda case, threads: _headrace(case, threads, packed_cache="off"),
    LOW: lambda case, threads: _headrace(case, threads, packed_cache="off", memory="low"),
    PACKED: lambda case, threads: _headrace(case, threads, packed_cache=str(case.folder / "packed")),
    PEER: _onnx_runtime,
}


def _status(field: str) -> int:
    return int(re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024


def work(side: str, case: Case, threads: int) -> dict[str, Any]:
    """One fresh process: what it took."""
    load = SIDES[side](case, threads)
    with np.load(case.inputs()) as stored:
        feeds = {name: stored[name] for name in stored.files}
    gc.collect()
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    begin, busy = time.perf_counter(), time.process_time()
    call = load()
    loaded = time.perf_counter()
    answer = call(feeds)
    end, busy = time.perf_counter(), time.process_time() - busy
    peak, stays = _status("VmHWM") - before, _status("VmRSS") - before
    warm = []
    for _ in range(WARM_RUNS):
        start = time.perf_counter()
        call(feeds)
        warm.append(time.perf_counter() - start)
    np.save(case.folder / f"{side}.npy", answer)
    facts = {
        "load_ms": (loaded - begin) * 1e3,
        "processor_ms": busy * 1e3,
        "first_ms": (end - begin - statistics.median(warm)) * 1e3,
        "warm_ms": statistics.median(warm) * 1e3,
        "peak": peak,
        "stays": stays,
    }
    if side != PEER:
        compiled, ran = _headrace.model.executable.stats, _headrace.model.session.stats
        facts |= {
            "packed": compiled["packed_bytes"],
            "transformed": compiled["transformed_bytes"],
            "activations": ran["arena_bytes"],
            "imports_onnx": "onnx" in sys.modules,
        }
    return facts


def ask(side: str, case: Case, threads: int) -> dict[str, Any]:
    name = str(case.model) if case.folder != case.model.parent else case.name
    command = [sys.executable, __file__, "--work", side, name, str(threads)]
    # Modules are compiled once, as installing a package does, whatever the caller's environment says.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(OUT / "pycache")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        sys.exit(f"{side} cannot run {case.name}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def compare(case: Case, rounds: int, threads: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="packed", dir=case.folder) as packed:
        link = case.folder / "packed"
        link.unlink(missing_ok=True)
        link.symlink_to(packed)
        for side in SIDES:
            ask(side, case, threads)  # brings files into the page cache, and writes the packed weights
        found: dict[str, list[dict]] = {side: [] for side in SIDES}
        for index in range(rounds):
            for side in SIDES if index % 2 == 0 else reversed(SIDES):
                found[side].append(ask(side, case, threads))
        link.unlink()
    outputs = {side: np.load(case.folder / f"{side}.npy") for side in SIDES}
    for side, output in outputs.items():
        if not np.allclose(output, outputs[PEER], atol=max(1e-6, 1e-3 * np.abs(outputs[PEER]).max())):
            sys.exit(f"error: {case.name}: {side} gives another answer than {PEER}")
    medians = {
        side: {key: statistics.median(one[key] for one in all_) for key in all_[0]}
        for side, all_ in found.items()
    }
    for side, all_ in found.items():
        medians[side]["shortest_ms"] = min(one["first_ms"] for one in all_)
    return {"case": case.name, "threads": threads, "weights": case.weight_bytes(), "sides": medians}


def show(row: dict[str, Any]) -> None:
    sides, mib = row["sides"], 2**20
    needs = row["weights"] + sides[OURS]["activations"]
    most = 1.15 * needs + 32 * mib
    times, shortest = (
        "  ".join(f"{sides[s][key]:8.1f} ({sides[s][key] / sides[PEER][key]:4.2f})" for s in SIDES)
        for key in ("first_ms", "shortest_ms")
    )
    peaks = "  ".join(f"{sides[side]['peak'] / mib:6.0f}" for side in SIDES)
    print(
        f"{row['case']:20} {times}   |  {peaks}  needs {needs / mib:6.0f}, at most {most / mib:6.0f} "
        f"+ {sides[OURS]['transformed'] / mib:.0f} transformed",
        f"{'  the shortest':20} {shortest}",
        sep="\n",
        flush=True,
    )


def _dimension(text: str) -> tuple[str, int]:
    name, _, size = text.rpartition("=")
    return name, int(size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=CASES, metavar="NAME|FILE.onnx")
    parser.add_argument("--dimension", type=_dimension, action="append", default=[], metavar="NAME=N")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    arguments = parser.parse_args()
    unknown = [m for m in arguments.models if not m.endswith(".onnx") and m not in CASES]
    if unknown:
        parser.error(f"--models {unknown[0]} is no ONNX file and none of {', '.join(CASES)}")
    print(
        f"{'first answer, ms':20} "
        + "  ".join(f"{side:>15}" for side in SIDES)
        + "   |  peak MiB, the same order"
    )
    rows = []
    for case in map(Case.of, arguments.models):
        if not case.inputs().exists() and case.name in CASES:
            subprocess.run([sys.executable, __file__, "--export", case.name, str(case.folder)], check=True)
        elif not case.inputs().exists():
            make_inputs(case, dict(arguments.dimension))
        case.folder.mkdir(parents=True, exist_ok=True)
        rows.append(compare(case, arguments.rounds, arguments.threads))
        show(rows[-1])
    OUT.with_suffix(".json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        print(json.dumps(work(sys.argv[2], Case.of(sys.argv[3]), int(sys.argv[4]))))
    elif sys.argv[1:2] == ["--export"]:
        warnings.filterwarnings("ignore")
        sys.path.insert(0, str(ROOT / "tests/executorch"))
        export(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
