"""Which weights an exported program stores in ggml's block formats, and how.

Formats up to q5_1 have blocks of 32 elements, the K formats of 256. Rows that are no whole blocks take the
next larger format of 32, as llama.cpp chooses it, or stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from executorch.exir.backend.compile_spec_schema import CompileSpec
from headrace._core import block_formats, quantize_rows
from torch.export import ExportedProgram

from .gguf_weights import GgufWeights
from .program_data import ProgramData
from .translate import bytes_of, target_name

Filter = Callable[[str, torch.Tensor], bool]

FORMATS: dict[str, tuple[int, int]] = block_formats()  # elements and bytes of a block
NEXT_OF_32 = {"q4_k": "q5_0", "q5_k": "q5_1", "q6_k": "q8_0"}
FILTERS = {"aten.convolution.default", "aten.conv1d.default", "aten.conv2d.default"}
# The operand in which an op reads a weight that can be in blocks.
OPERAND = {"aten.linear.default": 1, "aten.embedding.default": 0} | dict.fromkeys(FILTERS, 1)
QUANTIZED = (torch.float32, torch.float16, torch.bfloat16)
SPEC = "block_formats"
LARGEST_NIBBLE = (-8, 7)
MOST_NAMES = 8  # that a line of the report lists one by one


def check_format(name: str | None) -> str | None:
    if name is not None and name not in FORMATS:
        raise ValueError(f"quantize={name!r} is no block format; those are {', '.join(FORMATS)}")
    return name


@dataclass
class Choice:
    """The weights' formats by qualified name, and what a report says of them."""

    formats: dict[str, str] = field(default_factory=dict)
    from_file: list[str] = field(default_factory=list)  # of those, whose blocks a GGUF file has
    outcomes: dict[str, list[str]] = field(default_factory=dict)  # what became of weights, and their names
    before: int = 0  # bytes of what is quantised
    after: int = 0

    def tell(self, name: str, outcome: str) -> None:
        self.outcomes.setdefault(outcome, []).append(name)

    def add(self, name: str, tensor: torch.Tensor, block_format: str, why: str = "") -> None:
        self.formats[name] = block_format
        self.tell(name, block_format + why)
        per_block, block_bytes = FORMATS[block_format]
        self.before += tensor.numel() * tensor.element_size()
        self.after += tensor.numel() // per_block * block_bytes

    def specs(self) -> list[CompileSpec]:
        return [CompileSpec(SPEC, json.dumps(self.formats).encode())] if self.formats else []

    def lines(self) -> list[str]:
        used = ", ".join(f"{n} as {name}" for name, n in sorted(Counter(self.formats.values()).items()))
        first = f"weights: {used or 'none quantized'}; {self.before} bytes became {self.after}"
        if self.from_file:
            first += f"; {len(self.from_file)} have a file's blocks"
        return [first, *(f"  {brief(names)}: {outcome}" for outcome, names in sorted(self.outcomes.items()))]


def brief(names: list[str]) -> str:
    """Many names by what they have in common: those of a model's layers differ in a number."""
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(re.sub(r"\d+", "*", name), []).append(name)
    return ", ".join(
        f"{pattern} ({len(found)})" if len(found) > 1 else found[0] for pattern, found in alike.items()
    )


def choose(
    program: ExportedProgram, wanted: str | None, keep: Filter | None, gguf: GgufWeights | None = None
) -> Choice:
    """For every weight of a product, convolution or embedding that a delegate reads the format of the file's
    blocks, or `wanted` where it can be and keep(name, tensor) is not False. Tensors have no values yet:
    programs are partitioned without."""
    choice, held = Choice(), ProgramData(program)
    mutated = set(held.mutated.values())
    for node in program.graph.find_nodes(op="placeholder"):
        data = held.of(node)
        if data is None or data[1].dim() < 2 or data[0] in mutated or not node.users:
            continue
        name, tensor = data
        reason = _why_plain(node, tensor)
        blocks = gguf.format_of(name) if gguf is not None and reason is None and not is_filter(node) else None
        if blocks is not None:
            if list(tensor.shape) != gguf.shape_of(name):
                raise ValueError(
                    f"{name} has the shape {list(tensor.shape)}, and {gguf.names[name]!r} of {gguf.path} "
                    f"{gguf.shape_of(name)}; another tensor belongs to it"
                )
            choice.from_file.append(name)
            choice.add(name, tensor, blocks, ": the file's blocks")
            continue
        if wanted is None:
            continue
        if reason is None and keep is not None and not keep(name, tensor):
            reason = "the filter excludes it"
        elements = tensor.numel() if is_filter(node) else tensor.shape[-1]
        fits = [f for f in (wanted, NEXT_OF_32.get(wanted)) if f and elements % FORMATS[f][0] == 0]
        if reason is None and not fits:
            reason = f"{elements} elements are no whole blocks of 32"
        if reason is not None:
            choice.tell(name, f"{tensor.dtype} stays: {reason}")
            continue
        why = "" if fits[0] == wanted else f": {elements} elements are no whole blocks of {wanted}"
        choice.add(name, tensor, fits[0], why)
    return choice


def is_filter(node: torch.fx.Node) -> bool:
    return any(target_name(user) in FILTERS for user in node.users)


def _why_plain(node: torch.fx.Node, tensor: torch.Tensor) -> str | None:
    if tensor.dtype not in QUANTIZED:
        return "only float32, float16 and bfloat16 are quantised"
    for user in node.users:
        place = OPERAND.get(target_name(user))
        if place is None or [i for i, arg in enumerate(user.args) if arg is node] != [place]:
            return f"{target_name(user)} reads plain elements"
        if "delegation_tag" not in user.meta:
            return f"{target_name(user)} is not delegated"
    return None


def formats_in(specs: list[CompileSpec]) -> dict[str, str]:
    return next((json.loads(spec.value) for spec in specs if spec.key == SPEC), {})


@dataclass
class Stored:
    """A weight as the program holds it."""

    dtype: str  # the model's; blocks are f32, and so is what products and look-ups make of them
    shape: list[int]
    content: np.ndarray
    format: str = ""
    is_flat: bool = False  # blocks in the order of memory, to be expanded when the program is loaded

    def key(self, name: str) -> str:
        """Equal names of different methods share their bytes only if those are equal."""
        kind = self.format or self.dtype
        return f"{name}-{kind}-{hashlib.sha256(self.content).hexdigest()[:16]}"


def stored(node: torch.fx.Node, tensor: torch.Tensor, dtype: str, block_format: str | None) -> Stored:
    shape = list(tensor.shape)
    if block_format is not None and not bool(torch.isfinite(tensor).all()):
        warnings.warn(f"{node.name} holds infinities or NaN and stays {tensor.dtype}", stacklevel=2)
    elif block_format is not None:
        is_flat = is_filter(node)
        rows = tensor.detach().cpu().float().reshape((1, -1) if is_flat else (-1, shape[-1])).numpy()
        content = np.frombuffer(quantize_rows(block_format, rows), np.uint8)
        return Stored(dtype, shape, content, block_format, is_flat)
    if is_nibbles(node, tensor):
        return Stored("i4", shape, pack_nibbles(tensor))
    return Stored(dtype, shape, bytes_of(tensor))


def is_nibbles(node: torch.fx.Node, tensor: torch.Tensor) -> bool:
    """Whether these are integers of 4 bits, which torchao keeps in a byte each."""
    low, high = LARGEST_NIBBLE
    dequantized = all(
        target_name(user).endswith("dequantize_affine.default") and user.args[0] is node
        for user in node.users
    )
    return (
        tensor.dtype == torch.int8
        and dequantized
        and tensor.numel() > 0
        and bool(((tensor >= low) & (tensor <= high)).all())
    )


def pack_nibbles(tensor: torch.Tensor) -> np.ndarray:
    """Packs integers of 4 bits, two in a byte, the first in the low half."""
    flat = tensor.detach().cpu().reshape(-1).numpy().view(np.uint8) & 15
    flat = np.append(flat, np.zeros(flat.size % 2, np.uint8))
    return flat[0::2] | flat[1::2] << 4
