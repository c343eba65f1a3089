"""Which core ATen ops have a lowering, as Markdown: `python -m executorch_ggml.coverage`."""

from __future__ import annotations

import torch

from . import ops  # noqa: F401  fills the table
from .translate import LOWERINGS


def core_aten() -> list[str]:
    """The overloads that PyTorch tags as core, such as "aten.add.Tensor"."""
    names = []
    for name in sorted(dir(torch.ops.aten)):
        packet = getattr(torch.ops.aten, name)
        for overload in getattr(packet, "overloads", list)():
            if torch.Tag.core in getattr(packet, overload).tags:
                names.append(f"aten.{name}.{overload}")
    return names


def covered(name: str) -> bool:
    """The edge dialect has copying forms of ops that give views."""
    base, overload = name.rsplit(".", 1)
    return name in LOWERINGS or f"{base}_copy.{overload}" in LOWERINGS


def main() -> None:
    names = core_aten()
    done = [name for name in names if covered(name)]
    print(f"{len(done)} of {len(names)} core ATen overloads have a lowering.\n")
    print("| overload | lowering |\n|---|---|")
    for name in names:
        print(f"| {name} | {'yes' if name in done else ''} |")


if __name__ == "__main__":
    main()
