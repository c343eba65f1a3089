"""A component that tells which digit a drawing is: a text of marks and blanks, of any size. Its host calls
the network of examples/node/train_digits.mjs `digits`."""

import math
import struct
import sys
from array import array

import wit_world.exports
from componentize_py_types import Err
from wit_world.imports import graph
from wit_world.imports.tensor import Tensor, TensorType

SIDE, DIGITS, SHOWN = 12, 10, 3


def overlap(cell: float, start: float, length: float) -> float:
    return max(0.0, min(cell + 1, start + length) - max(cell, start))


def normalized(text: str) -> array:
    """What is drawn fills 12 x 12 numbers from 0 to 1, its proportions kept."""
    marks = [
        (x, y) for y, line in enumerate(text.split("\n")) for x, mark in enumerate(line) if mark not in " ."
    ]
    if not marks:
        sys.exit("digits DRAWING: a text of marks and blanks")
    (left, right), (top, bottom) = ((min(values), max(values)) for values in zip(*marks, strict=True))
    width, height = right - left + 1, bottom - top + 1
    scale = SIDE / max(width, height)
    dx, dy = (SIDE - width * scale) / 2, (SIDE - height * scale) / 2
    image = array("f", bytes(4 * SIDE * SIDE))
    for mark in marks:
        # Each mark is spread over the cells that it covers.
        x, y = dx + (mark[0] - left) * scale, dy + (mark[1] - top) * scale
        for row in range(max(math.floor(y), 0), min(math.ceil(y + scale), SIDE)):
            for column in range(max(math.floor(x), 0), min(math.ceil(x + scale), SIDE)):
                share = overlap(column, x, scale) * overlap(row, y, scale)
                at = row * SIDE + column
                image[at] = min(1.0, image[at] + share)
    return image


class Run(wit_world.exports.Run):
    def run(self) -> None:
        image = normalized(sys.argv[1] if len(sys.argv) > 1 else "")
        try:
            with graph.load_by_name("digits") as model, model.init_execution_context() as context:
                drawing = Tensor([1, SIDE * SIDE], TensorType.FP32, image.tobytes())
                outputs = dict(context.compute([("image", drawing)]))
                found = struct.unpack(f"<{DIGITS}f", outputs["probabilities"].data())
        except Err as error:
            print(error.value.code().name, error.value.data(), file=sys.stderr)
            sys.exit(1)
        for digit in sorted(range(DIGITS), key=found.__getitem__, reverse=True)[:SHOWN]:
            print(f"{digit}: {100 * found[digit]:.1f} %")
