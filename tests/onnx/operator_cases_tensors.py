"""Operators that move, index, reduce and order elements."""

import numpy as np
from operator_cases_base import (
    F16,
    F32,
    F64,
    I8,
    I32,
    I64,
    MICROSOFT,
    U8,
    Constant,
    case,
    ints,
    scalar,
    values,
)

X = values(2, 3, 4)

case("Reshape", X, ints(4, 6))
case("Reshape", X, ints(0, -1))
case("Reshape", X, ints(-1))
case("Reshape", X, ints(0, 0, 2, 2), opset=13)
case("Flatten", X)
for _axis in (0, 2, 3, -1):
    case("Flatten", X, axis=_axis)
case("Squeeze", values(1, 3, 1, 4), ints(0, 2))
case("Squeeze", values(1, 3, 1, 4), ints(-2))
case("Squeeze", values(1, 3, 1, 4))
case("Squeeze", values(1, 3, 1, 4), opset=11, axes=[0])
case("Unsqueeze", X, ints(0, -1))
case("Unsqueeze", X, opset=11, axes=[1, 3])
case("Transpose", X)
case("Transpose", X, perm=[1, 2, 0])
case("Transpose", values(2, 3, dtype=bool), perm=[1, 0])
case("Concat", X, values(2, 1, 4), axis=1)
case("Concat", X, values(2, 3, 2), Constant(values(2, 3, 1)), axis=-1)
case("Concat", X, axis=0)
case("Concat", values(2, dtype=bool), values(3, dtype=bool), axis=0)
case("Concat", values(0, 3), values(2, 3), axis=0)
case("Split", values(6, 4), outputs=3, opset=18, num_outputs=3)
case("Split", values(7, 4), outputs=3, opset=18, num_outputs=3)
case("Split", values(4, 7), ints(2, 5), outputs=2, axis=1)
case("Split", values(4, 6), outputs=2, opset=13, axis=-1)
case("Split", values(4, 6), outputs=2, opset=11, axis=1, split=[1, 5])
case("Slice", X, ints(1, 0), ints(3, 3))
case("Slice", X, ints(0, 1), ints(2**31 - 1, 4), ints(1, 2))
case("Slice", X, ints(-2), ints(2**63 - 1), ints(2))
case("Slice", X, ints(0), ints(-1), ints(1))
case("Slice", values(9, 8), ints(1, 7), ints(8, 0), ints(0, 1), ints(2, -3))
case("Slice", values(9), ints(-1), ints(-100), ints(0), ints(-1))
case("Slice", values(9), ints(20), ints(-3), ints(0), ints(-2))
case("Slice", values(9), ints(2), ints(100), ints(0), ints(3))
case("Slice", X, opset=9, starts=[0, 1], ends=[1, 3], axes=[0, 2])
case("Slice", X, opset=9, starts=[0, 1], ends=[2, 9])
case("Expand", values(3, 1), ints(2, 3, 4))
case("Expand", X, ints(1, 3, 1))
case("Expand", values(1, dtype=bool), ints(4))
case("Tile", X, ints(1, 2, 3))
case("Tile", values(5, dtype=I64), ints(3))
for _mode in ("constant", "edge", "reflect", "wrap"):
    case("Pad", X, ints(0, 1, 2, 0, 2, 1), opset=19, mode=_mode)
case("Pad", X, ints(0, 1, 0, 0, 0, 2), scalar(1.5, F32), opset=13)
case("Pad", X, ints(0, -1, 1, 0, 0, -2), opset=13)
case("Pad", X, ints(1, 2), scalar(0.5, F32), ints(-1), opset=18)
case("Pad", X, opset=10, pads=[0, 0, 1, 0, 1, 0], value=0.25)
case("Pad", values(4, dtype=I64), ints(1, 1), scalar(7, I64), opset=13)
case("DepthToSpace", values(1, 8, 2, 3), blocksize=2)
case("DepthToSpace", values(1, 8, 2, 3), blocksize=2, mode="CRD")
case("SpaceToDepth", values(1, 2, 4, 6), blocksize=2)
case("Trilu", values(4, 5))
case("Trilu", values(2, 4, 4), scalar(1), upper=0)
case("Trilu", values(4, 4), scalar(-1), upper=1)
case("Trilu", values(3, 5, dtype=I64), upper=0)
case("EyeLike", values(3, 4), k=1)
case("EyeLike", values(3, 3), dtype=7)
case("ReverseSequence", values(4, 3), Constant(np.array([1, 4, 2], I64)))
case("ReverseSequence", values(3, 4, 2), np.array([1, 4, 2], I64), batch_axis=0, time_axis=1)
case("CenterCropPad", values(5, 6), ints(3, 8))

case("Shape", X)
case("Shape", X, start=1, end=-1)
case("Size", X)
case("ConstantOfShape", ints(2, 3))
case("Range", scalar(1), scalar(9), scalar(2))
case("Range", scalar(3.0, F32), scalar(-1.0, F32), scalar(-0.5, F32))
case("NonZero", Constant(np.array([[1, 0, 2], [0, 3, 0]], F32)))
case("Compress", X, Constant(np.array([True, False, True])), axis=1)
case("Compress", X, Constant(np.array([False, True, True, False, True])))

INDICES = np.array([[0, -1], [2, 1]], I64)
for _axis in (0, 1, 2, -1):
    case("Gather", values(3, 4, 5), INDICES, axis=_axis)
    case("Gather", values(3, 4, 5), Constant(INDICES), axis=_axis)
case("Gather", X, scalar(1), axis=2)
case("Gather", X, scalar(-1), axis=1)
case("Gather", X, Constant(np.array([2], I32)), axis=1)
case("Gather", values(5, dtype=bool), np.array([4, 0], I32))
case("GatherElements", values(3, 4), values(3, 2, dtype=I64, low=-4, high=3), axis=1)
case("GatherElements", values(3, 4), values(2, 4, dtype=I32, low=0, high=2))
case("GatherElements", values(3, 4), values(2, 2, dtype=I64, low=0, high=2))
case("GatherND", values(3, 4, 5), np.array([[0, 1], [-1, 3]], I64))
case("GatherND", values(3, 4), np.array([[2], [0]], I64))
case("GatherND", values(2, 3, 4), np.array([[[1], [0]], [[2], [1]]], I64), batch_dims=1)
case("ScatterElements", values(3, 4), values(1, 4, dtype=I64, low=0, high=2), values(1, 4, seed=1), axis=0)
case("ScatterElements", values(3, 4), np.array([[1, -1]], I64), values(1, 2, seed=1), axis=1)
for _reduction in ("add", "mul", "max", "min"):
    case(
        "ScatterElements", values(3, 4), np.array([[1, 1], [0, 3]], I64), values(2, 2, seed=1), opset=18,
        axis=1,        reduction=_reduction,
    )  # fmt: skip
    case(
        "ScatterND",
        values(4, 3),
        np.array([[1], [-1], [1]], I64),
        values(3, 3, seed=1),
        opset=18,
        reduction=_reduction,
    )
case("Scatter", values(3, 4), np.array([[1, 0]], I64), values(1, 2, seed=1), opset=9, axis=1)
case("ScatterND", values(4, 3), np.array([[3], [0]], I64), values(2, 3, seed=1))
case("ScatterND", values(4, 3), np.array([[3, 1], [0, 0]], I64), values(2, seed=1))
case("OneHot", np.array([0, 2, -1, 3], I64), scalar(4), Constant(np.array([0, 1], F32)))
case("OneHot", np.array([[0, 2], [1, 1]], I64), scalar(3), Constant(np.array([-1, 5], F32)), axis=0)
case("OneHot", np.array([[0, 2], [1, 9]], I64), scalar(3), Constant(np.array([2, 7], I64)), axis=1)

for _op in (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
    "ReduceSumSquare",    "ReduceLogSum", "ReduceLogSumExp",
):  # fmt: skip
    _x = values(2, 3, 4, low=0.2, high=2)
    case(_op, _x, ints(1), opset=18)
    case(_op, _x, ints(0, -1), opset=18, keepdims=0)
    case(_op, _x, opset=18)
    case(_op, _x, opset=18, noop_with_empty_axes=1)
    case(_op, _x, opset=11, axes=[2], keepdims=0)
case("ReduceSum", X, ints(1), opset=13)
case("ReduceMax", values(3, 4, dtype=I32), ints(1), opset=18)
case("ReduceMax", values(3, 4, dtype=bool), ints(1), opset=20)
case("ReduceMin", values(3, 4, dtype=U8, high=200), ints(0), opset=18)
case("ReduceSum", values(3, 4, dtype=I64, low=-100, high=100), ints(0))
case("ReduceSum", values(3, 4, dtype=F64), ints(0))
case("ReduceMean", values(3, 4, dtype=F16), ints(1), opset=18)
for _op in ("ArgMax", "ArgMin"):
    case(_op, X)
    case(_op, X, axis=-1, keepdims=0)
    case(_op, np.round(values(3, 9)), axis=1, select_last_index=1)
    case(_op, values(3, 5, dtype=I32), axis=1)
case("CumSum", X, scalar(1))
case("CumSum", X, scalar(-1), exclusive=1)
case("CumSum", X, scalar(0), reverse=1)
case("CumSum", values(5, dtype=I64), scalar(0), exclusive=1, reverse=1)
case("TopK", values(3, 7), ints(3), outputs=2)
case("TopK", values(7, 3), ints(2), outputs=2, axis=0, largest=0)
case("TopK", values(3, 7, dtype=I64, low=-50, high=50), ints(7), outputs=2)
case("Softmax", X)
case("Softmax", X, axis=1)
case("Softmax", X, opset=11)
case("Softmax", X, opset=11, axis=2)
case("Softmax", X, opset=11, axis=0)
case("LogSoftmax", X)
case("LogSoftmax", X, opset=11, axis=1)
case("Hardmax", X)
case("Hardmax", np.round(X), axis=1)
case("Hardmax", X, opset=11, axis=1)
case("Softmax", values(4, 5, dtype=F16))
case("Det", values(4, 3, 3), opset=11)
case("Det", values(2, 2), opset=11)
case("Det", values(2, 3, 6, 6), opset=11, tolerance=1e-4)
case("Inverse", values(2, 3, 4, 4), domain=MICROSOFT, tolerance=1e-4)
case("Inverse", values(5, 5, dtype=F64), domain=MICROSOFT)
case("Einsum", values(3, 4), values(4, 5), equation="ij,jk->ik")
case("Einsum", values(2, 3, 4), values(2, 5, 4), equation="bij,bkj->bik")
case("Einsum", values(2, 3, 4), equation="bij->bji")
case("Einsum", values(2, 3, 4), equation="bij->b")
case("Einsum", values(3), values(4), equation="i,j->ij")
case("Einsum", values(2, 3), values(2, 3, seed=1), equation="ij,ij->")
case("Einsum", values(2, 5, 3, 4), values(2, 5, 4, 6), equation="...ij,...jk->...ik")
case("Einsum", values(2, 3, 4, 5), values(2, 3, 6, 5), equation="bhid,bhjd->bhij")
case("Einsum", values(2, 6, 3, 5), values(5, 3, 4), equation="bshd,dhm->bsm")
case("Einsum", values(2, 3), values(3, 4), equation="ij,jk")
case("Identity", values(3, dtype=I8))

# Negative padding may take away everything; two regions, and their images, have dimensions of their own.
case("Pad", values(4, 3), ints(-5, 0, 2, 1), scalar(2.5, F32))
case("Pad", values(4, 3), ints(-2, 0, -2, 1))
case("Einsum", values(4, 1), values(4, 2), equation="ij,ij->")
case("Einsum", values(1, 3), values(3, 2), values(2, 2), equation="ab,bc,ac->ac")
case("Col2Im", values(2, 8, 4), ints(3, 3), ints(2, 2), opset=18)
_REGIONS = np.array([[0, 0, 3, 4], [1, 0.5, 4, 3], [2, 2, 5, 5]], F32)
case("RoiAlign", values(2, 3, 5, 6), _REGIONS, np.array([0, 1, 1]), opset=16, sampling_ratio=2)
_CORNERS, _WHICH = values(3, 4, low=-0.2, high=1.2), np.array([0, 1, 1], I32)
for _size in ([2, 3], [1, 4], [5, 1]):
    _crops = [values(2, 3, 5, 6), _CORNERS, _WHICH, Constant(np.array(_size, I32))]
    case("CropAndResize", *_crops, domain=MICROSOFT)
    case("CropAndResize", *_crops, domain=MICROSOFT, mode="nearest", extrapolation_value=2.5)
case("CropAndResize", values(2, 3, 5, 6), _CORNERS, _WHICH, np.array([1, 3], I32), domain=MICROSOFT)
_PLACES = np.array([[[0, 2, 4], [7, 9, 12]]])
for _wanted in ((1, 2, 6), (1, 2, 7)):
    case(
        "MaxUnpool",
        values(1, 2, 3),
        _PLACES % (2 * _wanted[2]),
        ints(*_wanted),
        kernel_shape=[2],
        strides=[2],
    )
