"""Reads a number off a noisy dot-matrix display with one WebNN graph on ggml.

    python examples/ggml_inference.py [NUMBER] [--noise SIGMA] [--device NAME] [--threads N]

The network needs no training: its convolution holds the ten digits themselves (matched filters), and each
strip of the display goes to the digit that it resembles most. Prints the devices that ggml found, the
digits with the network's confidence in each, and the time of a run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import headrace
import numpy as np
import webnn

# A digit's five columns of dots; the lowest bit is the top row.
FONT = (
    (0x3E, 0x51, 0x49, 0x45, 0x3E),
    (0x00, 0x42, 0x7F, 0x40, 0x00),
    (0x42, 0x61, 0x51, 0x49, 0x46),
    (0x21, 0x41, 0x45, 0x4B, 0x31),
    (0x18, 0x14, 0x12, 0x7F, 0x10),
    (0x27, 0x45, 0x45, 0x45, 0x39),
    (0x3C, 0x4A, 0x49, 0x49, 0x30),
    (0x01, 0x71, 0x09, 0x05, 0x03),
    (0x36, 0x49, 0x49, 0x49, 0x36),
    (0x06, 0x49, 0x49, 0x29, 0x1E),
)
ROWS, COLUMNS = 7, 5
PITCH = COLUMNS + 1  # a dark column follows each digit
GAIN = 12.0  # turns likeness, -1 to 1, into scores that softmax tells apart


def glyphs() -> np.ndarray:
    """The digits as float32 [10, 7, 5], 1 where a dot is lit."""
    columns = np.array(FONT, np.uint8)
    return ((columns[:, None, :] >> np.arange(ROWS)[None, :, None]) & 1).astype(np.float32)


def render(number: str, noise: float, seed: int = 0) -> np.ndarray:
    """The display as float32 [1, 1, 7, 6 * digits], with Gaussian noise."""
    strip = np.concatenate([np.pad(glyphs()[int(digit)], ((0, 0), (0, 1))) for digit in number], axis=1)
    strip += np.random.default_rng(seed).normal(0.0, noise, strip.shape)
    return strip.astype(np.float32).reshape(1, 1, ROWS, -1)


def build(context: webnn.MLContext, digits: int) -> webnn.MLGraph:
    """display float32 [1, 1, 7, 6 * digits] -> digit int32 [digits], confidence float32 [10, digits]."""
    # Without their mean and of length 1, the filters see the shape of a digit and not how much of it is lit.
    filters = glyphs() - glyphs().mean(axis=(1, 2), keepdims=True)
    filters /= np.sqrt((filters**2).sum(axis=(1, 2), keepdims=True))
    builder = context.create_graph_builder()
    display = builder.input("display", [1, 1, ROWS, PITCH * digits], "float32")
    weights = builder.constant(filters.reshape(10, 1, ROWS, COLUMNS))
    likeness = builder.conv2d(display, weights, strides=[1, PITCH], label="match")
    scores = builder.reshape(likeness, [10, digits])
    confidence = builder.softmax(builder.mul(scores, builder.constant(np.float32(GAIN))), axis=0)
    digit = builder.arg_max(scores, axis=0, output_data_type="int32")
    return builder.build({"digit": digit, "confidence": confidence})


def draw(display: np.ndarray) -> str:
    return "\n".join("".join("#" if dot > 0.5 else "." for dot in row) for row in display[0, 0])


def main() -> None:
    parser = argparse.ArgumentParser(description="Reads a number off a noisy display with WebNN on ggml.")
    parser.add_argument("number", nargs="?", default="3141592653", help="digits to show (default: pi's)")
    parser.add_argument("--noise", type=float, default=0.25, metavar="SIGMA", help="0 to about 0.5")
    parser.add_argument("--device", default="cpu", help="a name from the list that is printed first")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="0: one per CPU")
    arguments = parser.parse_args()
    if not (arguments.number.isascii() and arguments.number.isdigit()):
        parser.error(f"{arguments.number!r} is not a number of digits 0 to 9")

    for found in headrace.devices():
        print(f"device  {found.name:8} {found.type:5} {found.description}")
    context = webnn.ML().create_context(device=arguments.device, threads=arguments.threads)
    graph = build(context, len(arguments.number))
    display = render(arguments.number, arguments.noise)
    print(draw(display))

    result = context.compute(graph, {"display": display})
    read = "".join(map(str, result["digit"]))
    for digit, confidence in zip(read, result["confidence"].max(axis=0), strict=True):
        print(f"digit   {digit}        {confidence:6.1%}")
    seconds = []
    for _ in range(200):
        begin = time.perf_counter()
        context.compute(graph, {"display": display})
        seconds.append(time.perf_counter() - begin)
    print(f"read    {read}")
    print(f"median  {statistics.median(seconds) * 1e6:.1f} us per run")
    if read != arguments.number:
        sys.exit(f"error: {arguments.number} was shown; --noise {arguments.noise} makes digits look alike")


if __name__ == "__main__":
    main()
