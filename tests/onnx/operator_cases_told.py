"""Operators whose results are as large as values say, and operands that are fed: shapes, axes, scales, k."""

import numpy as np
from operator_cases_base import F32, I64, Constant, case, values


def told(*numbers: int | float, dtype: type = I64) -> np.ndarray:
    """A list that is an input of the model."""
    return np.array(numbers, dtype)


X = values(2, 3, 4)
ROWS = np.array([[2, 1], [0, 5], [2, 1], [2, 0]], F32)
_RANDOM = np.random.default_rng(3)
_CORNERS = _RANDOM.uniform(0, 10, [2, 30, 2]).astype(F32)
BOXES = np.concatenate([_CORNERS, _CORNERS + 3], 2)
SCORES = _RANDOM.uniform(0, 1, [2, 3, 30]).astype(F32)

for _centered in (0, 1):
    case("NonMaxSuppression", BOXES, SCORES, told(4), told(0.4, dtype=F32), center_point_box=_centered)
case("NonMaxSuppression", BOXES, SCORES, Constant(told(100)), told(0.5, dtype=F32), told(0.3, dtype=F32))
case("NonMaxSuppression", BOXES, SCORES)
for _sorted in (0, 1):
    case("Unique", values(9, dtype=I64), outputs=4, sorted=_sorted)
    case("Unique", ROWS, outputs=4, sorted=_sorted, axis=0)
    case("Unique", ROWS, outputs=4, sorted=_sorted, axis=-1)
case("Compress", X, np.array([True, False, True]), axis=1)
case("Compress", X, np.array([False, True, True, False, True]))

case("Reshape", X, told(0, -1))
case("Reshape", X, told(4, 3, 2))
case("Expand", values(3, 1), told(2, 1, 4))
case("Expand", values(3, 1), told(3, 1))
case("Tile", X, told(2, 1, 3))
case("ConstantOfShape", told(2, 3))
case("Range", np.array(7, I64), np.array(-2, I64), np.array(-2, I64))
case("Range", np.array(1, F32), np.array(2.1, F32), np.array(0.25, F32))
case("OneHot", values(2, 3, dtype=I64), np.array(5, I64), told(0, 1, dtype=F32), axis=1)
case("TopK", X, told(2), outputs=2, axis=1)
case("Trilu", values(4, 5), np.array(-1, I64))
case("CumSum", X, np.array(-1, I64), reverse=1)
case("CumSum", X, np.array(1, I64), exclusive=1)
case("Split", values(4, 7), told(2, 5), outputs=2, axis=1)
case("Squeeze", values(1, 3, 1, 4), told(0, -2))
case("Unsqueeze", X, told(3, 0))
case("Slice", X, told(1, 0), told(3, 3))
case("Slice", X, told(-1, 5), told(0, -9), told(2, 1), told(-2, -1))
case("Slice", X, told(0), told(2**62), Constant(told(1)))
for _places in (told(-5), told(-9), told(1), told(-1)), (told(-7), told(1), told(2), told(-2)):
    case("Slice", X, *_places)
    case("Slice", X, *(Constant(numbers) for numbers in _places))
case("Pad", X, told(0, 1, -1, 2, 0, 3))
case("Pad", X, told(1, 2), np.array(7, F32), told(-2))
for _mode in ("edge", "reflect", "wrap"):
    case("Pad", X, told(0, 1, 2, 1, 2, 0), mode=_mode)
for _op in ("Sum", "Max", "Mean", "Prod", "L2", "LogSum", "SumSquare"):
    case(f"Reduce{_op}", np.abs(X) + 1, told(-1, 0), keepdims=0)
    case(f"Reduce{_op}", np.abs(values(2, 1, 3, 2, 2)) + 1, told(2, 4))
for _mode in ("nearest", "linear", "cubic"):
    image = values(1, 2, 5, 4)
    case("Resize", image, None, told(1, 1, 1.5, 2.25, dtype=F32), mode=_mode)
    case("Resize", image, None, None, told(1, 2, 3, 9), mode=_mode)
    case(
        "Resize", image, None, told(1, 1, 0.6, 0.5, dtype=F32), mode=_mode, antialias=int(_mode != "nearest")
    )
