"""Random cases of spectra, regions of images, and ways back from windows."""

from __future__ import annotations

import numpy as np
from operator_cases_base import F32, F64, I32, I64, Case, Constant
from random_cases_base import Random, chance, ints, made, makes, pick, some


def reals(rng: Random, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(F32)


# --- spectra ----------------------------------------------------------------------------------------------


@makes("DFT", "DFT-long")
def dft(rng: Random, op: str) -> Case:
    parts, inverse = pick(rng, (1, 2)), pick(rng, (0, 1))
    length = pick(rng, (260, 300, 512, 1)) if chance(rng, 0.3) else int(rng.integers(1, 20))
    axis, onesided = pick(rng, (1, 2, -2)), pick(rng, (0, 1)) if parts == 1 and not inverse else 0
    shape = [2, 3, 3]
    shape[axis if axis > 0 else 2] = length
    x = rng.standard_normal([*shape, parts]).astype(pick(rng, (F32, F64)))
    wanted = Constant(np.array(int(rng.integers(1, 20)), I64)) if chance(rng, 0.3) else None
    case = made(op, [x, wanted, Constant(np.array(axis, I64))], opset=20, inverse=inverse, onesided=onesided)
    case.tolerance = 1e-4
    return case


@makes("STFT")
def stft(rng: Random, op: str) -> Case:
    length, step = int(rng.integers(2, 17)), int(rng.integers(1, 6))
    x = reals(rng, 2, length + int(rng.integers(0, 30)), 1)
    window = reals(rng, length) if chance(rng, 0.7) else None
    frame = Constant(np.array(length, I64)) if window is None or chance(rng) else None
    inputs = [x, Constant(np.array(step, I64)), window, frame]
    case = made(op, inputs, opset=17, onesided=pick(rng, (0, 1)))
    case.tolerance = 1e-4
    return case


@makes("MelWeightMatrix")
def mel_weight_matrix(rng: Random, op: str) -> Case:
    bins, length, rate = int(rng.integers(1, 20)), pick(rng, (16, 64, 400)), pick(rng, (8000, 16000))
    low, high = float(rng.integers(0, 500)), float(rng.integers(1000, rate // 2))
    whole = [Constant(np.array(n, I64)) for n in (bins, length, rate)]
    return made(op, [*whole, *(Constant(np.array(f, F32)) for f in (low, high))], opset=17)


@makes("HannWindow", "HammingWindow", "BlackmanWindow")
def window(rng: Random, op: str) -> Case:
    size = Constant(np.array(int(rng.integers(2, 40)), pick(rng, (I64, I32))))
    return made(
        op, [size], opset=17, periodic=pick(rng, (0, 1, None)), output_datatype=pick(rng, (None, 1, 11))
    )


@makes("Det")
def determinant(rng: Random, op: str) -> Case:
    n = int(rng.integers(1, 7))
    case = made(op, [reals(rng, *some(rng, 1, 3, int(rng.integers(0, 3))), n, n)], opset=11)
    case.tolerance = 1e-4
    return case


# --- regions ----------------------------------------------------------------------------------------------


@makes("RoiAlign", "RoiAlign-adaptive")
def roi_align(rng: Random, op: str) -> Case:
    opset, count = pick(rng, (10, 16)), int(rng.integers(1, 5))
    x = reals(rng, 2, 3, *some(rng, 4, 9, 2))
    corners = np.sort(rng.uniform(-1, 10, [count, 2, 2]), axis=1).reshape(count, 4)
    inputs = [x, corners.astype(F32), rng.integers(0, 2, count).astype(I64)]
    half = pick(rng, ("half_pixel", "output_half_pixel", None)) if opset >= 16 else None
    return made(
        op,
        inputs,
        opset=opset,
        output_height=int(rng.integers(1, 4)),
        output_width=int(rng.integers(1, 4)),
        sampling_ratio=int(rng.integers(0, 3)),
        spatial_scale=pick(rng, (None, 0.5)),
        mode=pick(rng, ("avg", "max")),
        coordinate_transformation_mode=half,
    )


@makes("MaxRoiPool")
def max_roi_pool(rng: Random, op: str) -> Case:
    count = int(rng.integers(1, 5))
    x = reals(rng, 2, 3, *some(rng, 4, 9, 2))
    corners = np.sort(rng.integers(0, 9, [count, 2, 2]), axis=1).reshape(count, 4)
    rois = np.concatenate([rng.integers(0, 2, [count, 1]), corners], axis=1).astype(F32)
    return made(op, [x, rois], pooled_shape=some(rng, 1, 3, 2), spatial_scale=pick(rng, (None, 0.5)))


@makes("DeformConv")
def deform_conv(rng: Random, op: str) -> Case:
    kernel, strides, dilations = some(rng, 1, 3, 2), some(rng, 1, 2, 2), some(rng, 1, 2, 2)
    pads, groups, moved = some(rng, 0, 2, 4), pick(rng, (1, 2)), pick(rng, (1, 2))
    channels, outputs = 4, 2 * groups
    sizes = [(k - 1) * d + 1 + int(rng.integers(0, 4)) for k, d in zip(kernel, dilations, strict=True)]
    places = [
        (n + pads[i] + pads[i + 2] - (k - 1) * d - 1) // s + 1
        for i, (n, k, d, s) in enumerate(zip(sizes, kernel, dilations, strides, strict=True))
    ]
    taps = kernel[0] * kernel[1]
    inputs = [
        reals(rng, 2, channels, *sizes),
        reals(rng, outputs, channels // groups, *kernel),
        reals(rng, 2, moved * 2 * taps, *places),
        reals(rng, outputs) if chance(rng) else None,
        reals(rng, 2, moved * taps, *places) if chance(rng) else None,
    ]
    windows = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads}
    case = made(op, inputs, opset=19, group=groups, offset_group=moved, **windows)
    case.tolerance = 1e-4
    return case


@makes("GridSample-cubic", "GridSample-volumes")
def grid_sample(rng: Random, op: str) -> Case:
    dims = pick(rng, (2, 2, 3))
    mode = "cubic" if dims == 2 else pick(rng, ("linear", "nearest"))
    x = reals(rng, 2, 2, *some(rng, 1, 5, dims))
    grid = rng.uniform(-1.5, 1.5, [2, *some(rng, 1, 4, dims), dims]).astype(F32)
    padding = pick(rng, ("zeros", "border", "reflection"))
    case = made(op, [x, grid], opset=20, mode=mode, padding_mode=padding, align_corners=pick(rng, (0, 1)))
    case.tolerance = 1e-4
    return case


# --- ways back, and caches --------------------------------------------------------------------------------


@makes("Col2Im")
def columns_to_image(rng: Random, op: str) -> Case:
    block, strides, dilations = (some(rng, 1, 3, 2) for _ in range(3))
    pads = some(rng, 0, 1, 4)
    image = [(k - 1) * d + 1 + int(rng.integers(0, 5)) for k, d in zip(block, dilations, strict=True)]
    counts = [
        (n + pads[i] + pads[i + 2] - (k - 1) * d - 1) // s + 1
        for i, (n, k, d, s) in enumerate(zip(image, block, dilations, strides, strict=True))
    ]
    x = reals(rng, 2, 3 * block[0] * block[1], counts[0] * counts[1])
    return made(op, [x, ints(image), ints(block)], opset=18, strides=strides, dilations=dilations, pads=pads)


@makes("MaxUnpool")
def max_unpool(rng: Random, op: str) -> Case:
    n, c, h, w = some(rng, 1, 3, 4)
    count = n * c * 4 * h * w
    places = rng.permutation(count)[: n * c * h * w].reshape(n, c, h, w).astype(I64)
    return made(op, [reals(rng, n, c, h, w), places], opset=11, kernel_shape=[2, 2], strides=[2, 2])


@makes("TensorScatter")
def tensor_scatter(rng: Random, op: str) -> Case:
    most, steps = int(rng.integers(3, 7)), int(rng.integers(1, 3))
    mode = pick(rng, ("linear", "circular"))
    begins = rng.integers(0, most if mode == "circular" else most - steps + 1, 2).astype(I64)
    inputs = [reals(rng, 2, 3, most, 4), reals(rng, 2, 3, steps, 4), begins if chance(rng, 0.8) else None]
    return made(op, inputs, opset=24, mode=mode)


@makes("Einsum-diagonal")
def diagonal(rng: Random, op: str) -> Case:
    equation = pick(rng, ("ii->i", "...ii->...i", "ii->", "iji->j", "bii,bi->b", "iij->ji"))
    sizes = {"i": 3, "j": 2, "b": 2}
    terms = equation.split("->")[0].split(",")
    shapes = [[sizes[c] for c in term.replace("...", "bj")] for term in terms]
    return made(op, [reals(rng, *shape) for shape in shapes], opset=12, equation=equation)


@makes("BatchNormalization-training")
def batch_statistics(rng: Random, op: str) -> Case:
    c = int(rng.integers(1, 4))
    x = reals(rng, int(rng.integers(2, 4)), c, *some(rng, 1, 4, 2))
    rest = [reals(rng, c), reals(rng, c), reals(rng, c), np.abs(reals(rng, c))]
    case = made(op, [x, *rest], opset=15, outputs=3, training_mode=1, momentum=pick(rng, (None, 0.5)))
    case.tolerance = 1e-4
    return case


# --- attention --------------------------------------------------------------------------------------------


@makes("Attention-forms")
def attention(rng: Random, op: str) -> Case:
    batch, groups, each, width, steps, before = (
        int(n) for n in rng.integers([1, 1, 1, 1, 1, 0], [3, 3, 3, 5, 5, 4])
    )
    heads, total = groups * each, before + steps
    query = reals(rng, batch, heads, steps, width)
    key, value = (reals(rng, batch, groups, steps, width) for _ in range(2))
    past = [reals(rng, batch, groups, before, width) for _ in range(2)] if before else [None, None]
    mask = None
    if chance(rng):
        mask = rng.integers(0, 2, [steps, total]).astype(bool)
        mask[:, 0] = True
    elif chance(rng):
        mask = reals(rng, batch, 1, steps, total)
    outputs = pick(rng, (3, 4)) if before else 1
    case = made(
        op,
        [query, key, value, mask, *past],
        opset=pick(rng, (23, 24)),
        outputs=outputs,
        is_causal=pick(rng, (0, 1)),
        softcap=pick(rng, (None, 2.0)),
        qk_matmul_output_mode=pick(rng, (0, 3)) if outputs == 4 else None,
    )
    case.tolerance = 1e-4
    return case


# --- types and old operator sets --------------------------------------------------------------------------


@makes("QuantizeLinear-u16")
def quantize_to_u16(rng: Random, op: str) -> Case:
    zero = Constant(np.array(int(rng.integers(0, 60000)), np.uint16))
    return made(op, [reals(rng, 3, 4) * 100, Constant(np.array(0.02, F32)), zero], opset=21)


@makes("DequantizeLinear-u16")
def dequantize_from_u16(rng: Random, op: str) -> Case:
    zero = Constant(np.array(int(rng.integers(0, 60000)), np.uint16))
    return made(
        op, [rng.integers(0, 65536, [3, 4]).astype(np.uint16), Constant(np.array(0.02, F32)), zero], opset=21
    )


@makes("Mul-u16", "Add-u16", "Sub-u16", "Div-u16")
def arithmetic_of_u16(rng: Random, op: str) -> Case:
    a, b = (rng.integers(1, 65536, [3, 4]).astype(np.uint16) for _ in range(2))
    return made(op, [a, b], opset=14)


@makes("TfIdfVectorizer", "TfIdfVectorizer-skips")
def counts_of_ngrams(rng: Random, op: str) -> Case:
    pool = [int(n) for n in (*range(3), *rng.integers(0, 3, 8))]
    low = int(rng.integers(1, 3))
    shape = [int(rng.integers(1, 4)), int(rng.integers(3, 9))] if chance(rng) else [int(rng.integers(3, 9))]
    return made(
        op,
        [rng.integers(0, 4, shape).astype(pick(rng, (I64, I32)))],
        opset=9,
        mode=pick(rng, ("TF", "IDF", "TFIDF")),
        min_gram_length=low,
        max_gram_length=int(rng.integers(low, 3)),
        max_skip_count=int(rng.integers(0, 4)),
        ngram_counts=[0, 3],
        ngram_indexes=[int(n) for n in rng.permutation(7)],
        pool_int64s=_distinct(pool),
        weights=[float(w) for w in rng.uniform(0.5, 2, 7)],
    )


def _distinct(pool: list[int]) -> list[int]:
    """Three numbers and four different pairs."""
    pairs = [(i, j) for i in range(3) for j in range(3)]
    first = pool[3] % 5
    return [*pool[:3], *(n for pair in pairs[first : first + 4] for n in pair)]
