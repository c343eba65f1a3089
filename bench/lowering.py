"""What lowering by ExecuTorch takes with GgmlPartitioner, beside XNNPACK's: make bench-lowering.

Both take turns in one process, after a small program each, for what they import. "Ours" is what the
partitioner and preprocess take, without what ExecuTorch does around them.
Results: a table, and build/bench/lowering.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build/bench/lowering.json"


def _bert(layers: int) -> tuple[torch.nn.Module, tuple]:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=256,
        num_attention_heads=4,
        intermediate_size=1024,
        num_hidden_layers=layers,
        vocab_size=1000,
    )
    ids = torch.randint(0, 1000, (1, 64))
    return BertModel(config), (ids, torch.ones_like(ids))


def _resnet(depths: list[int]) -> tuple[torch.nn.Module, tuple]:
    from transformers import ResNetConfig, ResNetForImageClassification

    return ResNetForImageClassification(ResNetConfig(depths=depths)), (torch.randn(1, 3, 96, 96),)


def _llama(layers: int) -> tuple[torch.nn.Module, tuple]:
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=layers,
        num_attention_heads=4,
        vocab_size=1000,
    )
    return LlamaModel(config), (torch.randint(0, 1000, (1, 64)),)


MODELS: dict[str, Callable[[], tuple[torch.nn.Module, tuple]]] = {
    "bert": lambda: _bert(24),
    "resnet152": lambda: _resnet([3, 8, 36, 3]),
    "llama": lambda: _llama(16),
}


class _First(torch.nn.Module):
    """The module's first result alone."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        kwargs = {} if inputs[0].is_floating_point() else {"use_cache": False}
        if len(inputs) == 2:
            kwargs = {"attention_mask": inputs[1]}
        return self.module(inputs[0], return_dict=False, **kwargs)[0]


def exported(name: str) -> torch.export.ExportedProgram:
    torch.manual_seed(0)
    module, inputs = MODELS[name]()
    return torch.export.export(_First(module).eval().requires_grad_(False), inputs, strict=False)


@contextlib.contextmanager
def counted(owner: Any, name: str, seconds: dict[str, float]) -> Iterator[None]:
    """Adds up what calls of owner.name take."""
    original = owner.__dict__[name]
    function = getattr(owner, name) if isinstance(original, (staticmethod, classmethod)) else original

    def timed(*args: Any, **kwargs: Any) -> Any:
        begin = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begin

    setattr(owner, name, staticmethod(timed) if isinstance(original, (staticmethod, classmethod)) else timed)
    try:
        yield
    finally:
        setattr(owner, name, original)


def lowered(program: torch.export.ExportedProgram, partitioner: Any) -> tuple[float, int]:
    """Seconds of to_edge_transform_and_lower and to_executorch, and how many delegates were made."""
    from executorch.exir import to_edge_transform_and_lower

    begin = time.perf_counter()
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    edge.to_executorch()
    seconds = time.perf_counter() - begin
    nodes = edge.exported_program().graph_module.graph.nodes
    return seconds, sum(node.target is torch.ops.higher_order.executorch_call_delegate for node in nodes)


def edge_nodes(program: torch.export.ExportedProgram) -> int:
    """Operators of the program as a backend gets it."""
    from executorch.exir import to_edge

    nodes = to_edge(program).exported_program().graph_module.graph.nodes
    return sum(node.op == "call_function" for node in nodes)


def measure(name: str, rounds: int) -> dict[str, Any]:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch_ggml import GgmlPartitioner
    from executorch_ggml.backend import GgmlBackend

    found: dict[str, list[float]] = {"whole": [], "ours": [], "xnnpack": []}
    row: dict[str, Any] = {"model": name}
    for _ in range(rounds):
        seconds: dict[str, float] = {}
        with contextlib.ExitStack() as stack:
            for owner, method in (
                (GgmlPartitioner, "partition"),
                (GgmlPartitioner, "ops_to_not_decompose"),
                (GgmlPartitioner, "transform_for_pre_decomposition"),
                (GgmlBackend, "preprocess"),
            ):
                stack.enter_context(counted(owner, method, seconds))
            whole, row["delegates"] = lowered(exported(name), GgmlPartitioner())
        found["whole"].append(whole)
        found["ours"].append(sum(seconds.values()))
        row |= {f"{method}_s": value for method, value in seconds.items()}
        peer, row["xnnpack_delegates"] = lowered(exported(name), XnnpackPartitioner())
        found["xnnpack"].append(peer)
    row["nodes"] = edge_nodes(exported(name))
    return row | {f"{key}_s": statistics.median(values) for key, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    MODELS["small"] = lambda: _bert(1)
    measure("small", 1)
    rows = []
    print("model       nodes  delegates  partitioner and preprocess, s  whole, s  XNNPACK's, s (delegates)")
    for name in arguments.models:
        rows.append(row := measure(name, arguments.rounds))
        print(
            f"{name:10} {row['nodes']:6} {row['delegates']:10} {row['ours_s']:30.2f} {row['whole_s']:9.2f}"
            f" {row['xnnpack_s']:8.2f} ({row['xnnpack_delegates']})",
            flush=True,
        )
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        import executorch_ggml  # noqa: F401  (torch and torchao warn)
    sys.exit(main())
