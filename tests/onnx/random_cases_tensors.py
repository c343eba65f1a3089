"""Random cases of operators that move, index, order and add up elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from operator_cases_base import F16, F32, F64, I8, I32, I64, U8, Case, Constant
from random_cases_base import Random, axis_of, chance, ints, made, makes, numbers, pick, shape_of, some

# --- moving elements ----------------------------------------------------------------------------------------

FAR = (2**63 - 1, -(2**63), -(2**63) + 1, 2**31 - 1, -(2**31), 2**31, -(2**31) - 1)


@makes("Slice", "Slice-backwards", "Slice-far")
def slice_(rng: Random, op: str) -> Case:
    shape = shape_of(rng, 1, 3, 6)
    if chance(rng, 0.1):
        shape[0] = 0
    axes = [int(a) for a in rng.permutation(len(shape))[: int(rng.integers(1, len(shape) + 1))]]
    starts, ends, steps = [], [], []
    for axis in axes:
        n = shape[axis]
        step = pick(rng, (1, 1, 2, 3, -1, -1, -2, -3))
        start = int(rng.integers(-n - 2 if step > 0 else -n, n + 3))
        end = int(rng.integers(-n - 2, n + 3))
        if chance(rng, 0.2):
            start, step = pick(rng, [f for f in FAR if step > 0 or f > 0]), step
        if chance(rng, 0.2):
            end = pick(rng, [f for f in FAR if step > 0 or f < 0])
        if chance(rng, 0.1):
            step = pick(rng, FAR)
            start, end = max(start, -n), min(end, 2**31 - 2)
        starts, ends, steps = [*starts, start], [*ends, end], [*steps, step]
    axes = [a - len(shape) if chance(rng, 0.3) else a for a in axes]
    x = numbers(rng, shape, pick(rng, (F32, F32, I64, U8, bool, F16)))
    return made(op, [x, ints(starts), ints(ends), ints(axes), ints(steps)])


@makes("Pad")
def pad(rng: Random, op: str) -> Case:
    mode = pick(rng, ("constant", "constant", "edge", "reflect", "wrap"))
    shape = some(rng, 2, 5, int(rng.integers(1, 4)))
    least = -1 if mode == "constant" else 0
    begin = [int(rng.integers(least, min(d, 3))) for d in shape]
    end = [int(rng.integers(least, min(d, 3))) for d in shape]
    dtype = pick(rng, (F32, F32, F64, I64, I32, U8, I8, bool))
    inputs = [numbers(rng, shape, dtype), ints(begin + end)]
    if mode == "constant" and chance(rng):
        inputs.append(Constant(numbers(rng, [], dtype)))
    return made(op, inputs, opset=19, mode=mode)


@makes("Split")
def split(rng: Random, op: str) -> Case:
    shape = shape_of(rng, 1, 3, 7)
    axis, count = axis_of(rng, len(shape)), int(rng.integers(1, 4))
    if chance(rng):
        cuts = np.sort(rng.integers(0, shape[axis] + 1, count - 1))
        sizes = np.diff([0, *cuts, shape[axis]])
        return made(op, [numbers(rng, shape), ints(sizes)], opset=18, outputs=count, axis=axis)
    return made(op, [numbers(rng, shape)], opset=18, outputs=count, axis=axis, num_outputs=count)


@makes("Tile")
def tile(rng: Random, op: str) -> Case:
    shape = shape_of(rng, 1, 4, 3)
    return made(
        op,
        [
            numbers(rng, shape, pick(rng, (F32, I64, bool))),
            ints(some(rng, 0 if chance(rng, 0.1) else 1, 3, len(shape))),
        ],
    )


@makes("Expand")
def expand(rng: Random, op: str) -> Case:
    shape = [1 if chance(rng) else d for d in shape_of(rng, 1, 3)]
    wanted = [d if chance(rng, 0.3) else (1 if d > 1 else int(rng.integers(1, 4))) for d in shape]
    return made(op, [numbers(rng, shape), ints([*some(rng, 1, 3, int(rng.integers(0, 2))), *wanted])])


@makes("DepthToSpace")
def depth_to_space(rng: Random, op: str) -> Case:
    b, (n, c, h, w) = pick(rng, (1, 2, 3)), some(rng, 1, 3, 4)
    return made(op, [numbers(rng, [n, c * b * b, h, w])], blocksize=b, mode=pick(rng, ("DCR", "CRD", None)))


@makes("SpaceToDepth")
def space_to_depth(rng: Random, op: str) -> Case:
    b, (n, c, h, w) = pick(rng, (1, 2, 3)), some(rng, 1, 3, 4)
    return made(op, [numbers(rng, [n, c, h * b, w * b])], blocksize=b)


@makes("Trilu")
def trilu(rng: Random, op: str) -> Case:
    x = numbers(rng, [*shape_of(rng, 0, 1), *some(rng, 1, 5, 2)], pick(rng, (F32, I64, bool)))
    k = pick(rng, (None, *range(-6, 7), 2**40, -(2**40)))
    return made(op, [x] if k is None else [x, Constant(np.array(k, I64))], upper=pick(rng, (0, 1, None)))


@makes("EyeLike")
def eye_like(rng: Random, op: str) -> Case:
    return made(
        op,
        [numbers(rng, some(rng, 1, 5, 2), pick(rng, (F32, I32)))],
        k=pick(rng, (None, *range(-6, 7))),
        dtype=pick(rng, (None, 1, 7, 6, 11)),
    )


@makes("OneHot")
def one_hot(rng: Random, op: str) -> Case:
    shape, depth = shape_of(rng, 1, 2), int(rng.integers(1, 5))
    kind, result = pick(rng, ((I64, F32), (I64, I64), (F32, F32), (I64, I32), (I32, F32)))
    indices = rng.integers(-depth - 2, depth + 3, shape).astype(kind)
    values = pick(rng, (np.array([0, 1], result), np.array([5, -1], result)))
    return made(
        op,
        [indices, ints([depth]) if chance(rng) else Constant(np.array(depth, I64)), Constant(values)],
        axis=axis_of(rng, len(shape) + 1),
    )


@makes("Gather", "GatherElements")
def gather(rng: Random, op: str) -> Case:
    shape = shape_of(rng, 1, 3)
    axis = axis_of(rng, len(shape))
    own = (
        shape_of(rng, 0, 2)
        if op == "Gather"
        else [d if i == axis % len(shape) else int(rng.integers(1, d + 1)) for i, d in enumerate(shape)]
    )
    indices = rng.integers(-shape[axis], shape[axis], own)
    indices = np.asarray(indices).astype(pick(rng, (I64, I32)))
    return made(
        op,
        [numbers(rng, shape, pick(rng, (F32, I64, bool, U8))), Constant(indices) if chance(rng) else indices],
        axis=axis,
    )


@makes("GatherND")
def gather_nd(rng: Random, op: str) -> Case:
    shape = shape_of(rng, 1, 4, 4)
    batch = int(rng.integers(0, len(shape)))
    depth = int(rng.integers(1, len(shape) - batch + 1))
    own = [*shape[:batch], *shape_of(rng, 0, 2, 3), depth]
    indices = np.stack([rng.integers(-d, d, own[:-1]) for d in shape[batch : batch + depth]], -1).astype(I64)
    return made(op, [numbers(rng, shape), indices], batch_dims=batch)


@makes("ScatterElements")
def scatter_elements(rng: Random, op: str) -> Case:
    shape = shape_of(rng, 1, 3)
    axis, reduction = axis_of(rng, len(shape)), pick(rng, ("none", "add", "mul", "max", "min"))
    own = [int(rng.integers(1, d + 1)) for d in shape]
    extent = shape[axis]
    if reduction == "none":  # each place once: which of several wins is open
        order = np.argsort(rng.random([extent, *[d for i, d in enumerate(own) if i != axis % len(shape)]]), 0)
        indices = np.moveaxis(order[: own[axis]], 0, axis)
    else:
        indices = rng.integers(0, extent, own)
    indices = np.where(rng.random(own) < 0.3, indices - extent, indices).astype(pick(rng, (I64, I32)))
    dtype = pick(rng, (F32, F32, I64, I32))
    return made(
        op,
        [numbers(rng, shape, dtype), indices, numbers(rng, own, dtype)],
        opset=18,
        axis=axis,
        reduction=reduction,
    )


@makes("ScatterND")
def scatter_nd(rng: Random, op: str) -> Case:
    shape, reduction = shape_of(rng, 1, 3), pick(rng, ("none", "add", "mul", "max", "min"))
    depth, count = int(rng.integers(1, len(shape) + 1)), int(rng.integers(1, 4))
    whole = int(np.prod(shape[:depth]))
    places = rng.permutation(whole)[:count] if reduction == "none" else rng.integers(0, whole, count)
    indices = np.stack(np.unravel_index(places, shape[:depth]), -1)
    indices = np.where(rng.random(indices.shape) < 0.3, indices - np.array(shape[:depth]), indices).astype(
        I64
    )
    dtype = pick(rng, (F32, F32, I64, I32))
    return made(
        op,
        [numbers(rng, shape, dtype), indices, numbers(rng, [len(places), *shape[depth:]], dtype)],
        opset=18,
        reduction=reduction,
    )


@makes("ReverseSequence")
def reverse_sequence(rng: Random, op: str) -> Case:
    shape, time = shape_of(rng, 2, 4), pick(rng, (0, 1))
    lengths = rng.integers(1, shape[time] + 1, shape[1 - time]).astype(I64)
    return made(op, [numbers(rng, shape), lengths], time_axis=time, batch_axis=1 - time)


@makes("Compress")
def compress(rng: Random, op: str) -> Case:
    shape = shape_of(rng, 1, 3)
    axis = axis_of(rng, len(shape)) if chance(rng) else None
    extent = int(np.prod(shape)) if axis is None else shape[axis]
    kept = numbers(rng, [int(rng.integers(1, extent + 1))], bool)
    return made(op, [numbers(rng, shape), Constant(kept)], axis=axis)


@makes("Flatten", "Squeeze", "Unsqueeze", "Transpose", "Concat", "Where", "Shape")
def shaping(rng: Random, op: str) -> Case:
    shape = [1 if chance(rng, 0.4) else d for d in shape_of(rng, 1, 4)]
    x, rank = numbers(rng, shape), len(shape)
    if op == "Flatten":
        return made(op, [x], axis=int(rng.integers(-rank, rank + 1)))
    if op == "Squeeze":
        ones = [i - rank if chance(rng) else i for i, d in enumerate(shape) if d == 1 and chance(rng)]
        return made(op, [x, ints(ones)] if ones else [x])
    if op == "Unsqueeze":
        axes = rng.permutation(rank + 2)[:2]
        return made(op, [x, ints([int(a) - rank - 2 if chance(rng) else int(a) for a in axes])])
    if op == "Transpose":
        return made(op, [x], perm=[int(i) for i in rng.permutation(rank)])
    if op == "Concat":
        axis = axis_of(rng, rank)
        others = [
            [int(rng.integers(0, 3)) if i == axis % rank else d for i, d in enumerate(shape)]
            for _ in range(2)
        ]
        return made(op, [x, *(numbers(rng, other) for other in others)], axis=axis)
    if op == "Shape":
        return made(op, [x], start=pick(rng, (None, *range(-6, 7))), end=pick(rng, (None, *range(-6, 7))))
    other = [d if chance(rng) else 1 for d in shape]
    return made(op, [numbers(rng, other, bool), x, numbers(rng, shape[int(rng.integers(rank)) :])])


# --- order and sums -----------------------------------------------------------------------------------------


@makes("TopK")
def top_k(rng: Random, op: str) -> Case:
    shape = shape_of(rng, 1, 3)
    axis, dtype = axis_of(rng, len(shape)), pick(rng, (F32, F32, F64, I64, I32))
    k = int(rng.integers(0 if chance(rng, 0.1) else 1, shape[axis] + 1))
    return made(op, [numbers(rng, shape, dtype), ints([k])], outputs=2, axis=axis, largest=pick(rng, (0, 1)))


@makes("CumSum")
def cumulative(rng: Random, op: str) -> Case:
    shape = shape_of(rng)
    options = {"exclusive": pick(rng, (0, 1)), "reverse": pick(rng, (0, 1))}
    axis = np.array(axis_of(rng, len(shape)), pick(rng, (I64, I32)))
    return made(op, [numbers(rng, shape, pick(rng, (F32, F64, I64, I32))), Constant(axis)], **options)


@makes("ArgMax", "ArgMin")
def arg_reduce(rng: Random, op: str) -> Case:
    shape = shape_of(rng)
    options = {
        "axis": axis_of(rng, len(shape)),
        "keepdims": pick(rng, (0, 1)),
        "select_last_index": pick(rng, (0, 1)),
    }
    return made(op, [np.round(numbers(rng, shape, pick(rng, (F32, F32, F64, I32, I8, U8))))], **options)


OF_REALS = ("ReduceLogSum", "ReduceLogSumExp", "ReduceL2")  # of whole numbers they round somehow


@makes(
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
    "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp",
)  # fmt: skip
def reduction(rng: Random, op: str) -> Case:
    shape = shape_of(rng)
    is_empty = chance(rng, 0.1) and op != "ReduceMean"
    if is_empty:  # then ONNX Runtime does not know negative axes
        shape[axis_of(rng, len(shape))] = 0
    x = numbers(rng, shape, pick(rng, (F32, F32, F64, I32, I64) if op not in OF_REALS else (F32, F64)))
    x = np.abs(x) + 1 if op == "ReduceLogSum" else x % 3 if op == "ReduceProd" else x
    axes: list[Any] = []
    if chance(rng, 0.8):
        chosen = rng.permutation(len(shape))[
            : int(rng.integers(0 if chance(rng, 0.2) else 1, len(shape) + 1))
        ]
        axes = [ints([int(a) if is_empty or chance(rng) else int(a) - len(shape) for a in chosen])]
    return made(
        op,
        [x.astype(x.dtype), *axes],
        opset=18,
        keepdims=pick(rng, (0, 1, None)),
        noop_with_empty_axes=pick(rng, (0, 1, None)),
    )


@makes("Softmax", "LogSoftmax", "Hardmax")
def softmax(rng: Random, op: str) -> Case:
    shape = shape_of(rng)
    return made(
        op, [numbers(rng, shape)], opset=pick(rng, (11, 13)), axis=pick(rng, (None, axis_of(rng, len(shape))))
    )
