"""Models whose operands follow from open shapes, as text, each with shapes that it is called with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, parser


@dataclass
class Case:
    name: str
    inputs: str  # "float[b, n] x, ..."
    outputs: str
    body: str
    shapes: list[tuple[tuple[int, ...], ...]]  # of all inputs, at each call
    opset: int = 20
    tolerance: float = 1e-5

    def model(self) -> ModelProto:
        return parser.parse_model(
            f'<ir_version: 10, opset_import: ["" : {self.opset}]>\n'
            f"g ({self.inputs}) => ({self.outputs}) {{ {self.body} }}"
        )

    def feeds(self, which: int) -> dict[str, Any]:
        rng = np.random.default_rng(which)
        given = [part.split() for part in self.inputs.replace(", ", ",").split(",f")]
        names = [words[-1] for words in given]
        return {
            name: rng.standard_normal(shape).astype(np.float32)
            for name, shape in zip(names, self.shapes[which], strict=True)
        }


CASES: list[Case] = []


def case(name: str, body: str, *shapes: Any, inputs: str = "float[b, n] x", outputs: str = "", **more: Any):
    outputs = outputs or "float[o0, o1] y"
    shapes = tuple(s if isinstance(s[0], tuple) else (s,) for s in shapes)
    CASES.append(Case(name, inputs, outputs, body, list(shapes), **more))


# What follows from the extent n of x [b, n]. Constants of one element are written as <value_ints>.
_N = "s = Shape(x) n = Gather(s, one) "
_ONE = (
    "one = Constant<value_ints = [1]>() zero = Constant<value_ints = [0]>() "
    "two = Constant<value_ints = [2]>() "
)
_HEAD = _ONE + _N
_WHOLE = "int64[k] y"


def of_length(name: str, body: str, *lengths: int, outputs: str = _WHOLE, **more: Any) -> None:
    """body: makes y of n, an int64[1] that is the length of x."""
    case(name, _HEAD + body, *((2, length) for length in lengths), outputs=outputs, **more)


def constants(**values: int) -> str:
    return " ".join(f"{name} = Constant<value_ints = [{value}]>()" for name, value in values.items()) + " "


# --- arithmetic -------------------------------------------------------------------------------------------

_FIVE = constants(five=5, three=3, minus=-1)
for _name, _body in {
    "division towards zero": "d = Sub(n, five) y = Div(d, three)",
    "remainders of the divisor's sign": "d = Sub(n, five) y = Mod(d, three)",
    "smallest and largest": "a = Min(n, five) b1 = Max(n, five, three) y = Concat<axis = 0>(a, b1)",
    "absolute values and signs": "d = Sub(n, five) a = Abs(d) g = Sign(d) y = Concat<axis = 0>(a, g)",
    "choices by comparison": "c = Greater(n, five) y = Where(c, five, n)",
    "choices by equality": "c = Equal(n, five) y = Where(c, minus, n)",
    "truths combined": (
        "c = GreaterOrEqual(n, five) d = LessOrEqual(n, three) e = Or(c, d) f = Not(e) g = And(f, c) "
        "h = Xor(c, d) i = Cast<to = 7>(e) j = Cast<to = 7>(g) k1 = Cast<to = 7>(h) "
        "y = Concat<axis = 0>(i, j, k1)"
    ),
    "clipped numbers": "lo = Squeeze(three) hi = Squeeze(five) y = Clip(n, lo, hi)",
    "totals of extents": "t = Concat<axis = 0>(n, five, n) y = ReduceMax<keepdims = 1>(t)",
    "running totals": "t = Concat<axis = 0>(n, five, n) z = Squeeze(zero) y = CumSum(t, z)",
    "scattered extents": (
        "i = Constant<value = int64[1, 1] {1}>() t = Concat<axis = 0>(n, five, n) y = ScatterND(t, i, n)"
    ),
}.items():
    of_length(_name, _FIVE + _body, 3, 5, 6, 12)

_FLOAT = "f = Cast<to = 1>(n) "
for _name, _body in {
    "floors of scaled extents": "k1 = Constant<value_floats = [0.7]>() g = Mul(f, k1) h = Floor(g)",
    "ceilings of quotients": "k1 = Constant<value_floats = [3.0]>() g = Div(f, k1) h = Ceil(g)",
    "sums of quotients": (
        "k1 = Constant<value_floats = [3.0]>() k2 = Constant<value_floats = [0.5]>() g = Div(f, k1) "
        "g2 = Mul(f, k2) g3 = Add(g, g2) g4 = Sub(g3, k2) h = Floor(g4)"
    ),
    "floats cut off": "k1 = Constant<value_floats = [-0.25]>() h = Mul(f, k1)",
}.items():
    of_length(_name, _FLOAT + _body + " y = Cast<to = 7>(h)", 3, 4, 7, 10)

# --- operands of operators ----------------------------------------------------------------------------------

_SCALARS = "n0 = Squeeze(n) z0 = Squeeze(zero) one0 = Squeeze(one) two0 = Squeeze(two) "
for _name, _body in {
    "a range to a sum": "m = Add(n0, one0) y = Range(z0, m, one0)",
    "a range from an extent down": "m = Constant<value_int = -2>() y = Range(n0, z0, m)",
    "a range in steps of an extent": "m = Constant<value_int = 20>() y = Range(z0, m, n0)",
    "a range that may be empty": "m = Constant<value_int = 5>() y = Range(m, n0, one0)",
}.items():
    of_length(_name, _SCALARS + _body, 3, 5, 8)
of_length(
    "a range of floats",
    _SCALARS
    + "f = Cast<to = 1>(n0) z1 = Cast<to = 1>(z0) h = Constant<value_float = 0.5>() y = Range(z1, f, h)",
    3,
    6,
    outputs="float[k] y",
)
case("an identity", "y = EyeLike<k = 1>(x)", (3, 4), (4, 2), outputs="float[b, n] y")
case("an identity of another type", "y = EyeLike<dtype = 7>(x)", (3, 4), (1, 1), outputs="int64[b, n] y")
of_length("repetitions", "t = Concat<axis = 0>(two, n) y = Tile(x, t)", 2, 3, outputs="float[o0, o1] y")
of_length(
    "filling",
    "t = Concat<axis = 0>(n, two) y = ConstantOfShape<value = float[1] {3.0}>(t)",
    2,
    5,
    outputs="float[o0, 2] y",
)
of_length(
    "one-hot of an open depth",
    ("i = ArgMax<axis = 1, keepdims = 0>(x) v = Constant<value_floats = [0.0, 2.0]>() y = OneHot(i, n, v)"),
    4,
    7,
    outputs="float[b, k] y",
)
of_length(
    "a triangle at an open diagonal",
    "d = Sub(n, two) e = Squeeze(d) y = Trilu<upper = 1>(x, e)",
    1,
    3,
    5,
    outputs="float[b, n] y",
)
of_length("the largest of an open number", "h = Div(n, two) v, y = TopK(x, h)", 4, 7, outputs="int64[b, k] y")

# --- slices, parts, margins ---------------------------------------------------------------------------------

for _name, _start, _end, _step in (
    ("an end beyond the extent", 0, 5, 1),
    ("the last few", -5, 2**62, 1),
    ("all but the last few", 0, -2, 1),
    ("from a place beyond the extent", 6, 9, 1),
    ("backwards from the end", -1, -(2**62), -2),
    ("backwards to a place", 5, 1, -1),
    ("a step over the end", 1, 7, 3),
):
    of_length(
        f"a slice with {_name}",
        constants(a=_start, e=_end, t=_step) + "y = Slice(x, a, e, one, t)",
        1,
        3,
        6,
        9,
        outputs="float[b, k] y",
    )
of_length(
    "a slice between computed places",
    "a = Div(n, two) e = Sub(n, one) y = Slice(x, a, e, one)",
    2,
    5,
    8,
    outputs="float[b, k] y",
)
of_length(
    "parts of computed sizes",
    "h = Div(n, two) r = Sub(n, h) t = Concat<axis = 0>(h, r) y, y2 = Split<axis = 1>(x, t)",
    2,
    5,
    8,
    outputs="float[b, k] y, float[b, m] y2",
)
case(
    "parts that the extent does not divide into",
    "y, y2, y3 = Split<axis = 1, num_outputs = 3>(x)",
    (2, 6),
    (1, 8),
    outputs="float[b, k] y, float[b, l] y2, float[b, m] y3",
)
_TO_EIGHT = constants(eight=8) + "m = Mod(n, eight) q = Sub(eight, m) p = Mod(q, eight) "
of_length(
    "a margin up to a multiple",
    _TO_EIGHT + "t = Concat<axis = 0>(zero, zero, zero, p) y = Pad(x, t)",
    3,
    8,
    13,
    outputs="float[b, k] y",
)
of_length(
    "a margin that may be negative",
    constants(five=5) + "p = Sub(five, n) t = Concat<axis = 0>(zero, p, zero, zero) y = Pad(x, t)",
    3,
    5,
    9,
    outputs="float[b, k] y",
)
of_length(
    "a mirrored margin",
    'p = Div(n, two) t = Concat<axis = 0>(zero, p, zero, one) y = Pad<mode = "reflect">(x, t)',
    3,
    8,
    outputs="float[b, k] y",
)
of_length(
    "a margin that continues",
    constants(three=3) + 't = Concat<axis = 0>(zero, three, zero, one) y = Pad<mode = "wrap">(x, t)',
    4,
    8,
    outputs="float[b, k] y",
)

# --- windows ----------------------------------------------------------------------------------------------

_IMAGE = {"inputs": "float[b, 2, h, w] x", "outputs": "float[b, c, o2, o3] y"}
_LINE = {"inputs": "float[b, 2, n] x", "outputs": "float[b, c, o2] y"}
_VOLUME = {"inputs": "float[b, 2, d, h, w] x", "outputs": "float[b, c, o2, o3, o4] y"}
_IMAGES, _LINES, _VOLUMES = (
    ((1, 2, 7, 9), (2, 2, 8, 5)),
    ((1, 2, 7), (3, 2, 10)),
    ((1, 2, 5, 6, 7), (2, 2, 7, 5, 4)),
)
for _kind, _shapes, _of, _dims in (
    ("lines", _LINES, _LINE, 1),
    ("images", _IMAGES, _IMAGE, 2),
    ("volumes", _VOLUMES, _VOLUME, 3),
):
    _k, _s, _p = ([n] * _dims for n in (2, 3, 1))
    for _pool in ("MaxPool", "AveragePool", "LpPool"):
        case(
            f"{_pool} of {_kind}, rounded up",
            f"y = {_pool}<kernel_shape = {_k}, strides = {_s}, ceil_mode = 1>(x)",
            *_shapes,
            **_of,
        )
    case(
        f"AveragePool of {_kind} with its margin",
        f"y = AveragePool<kernel_shape = {[3] * _dims}, strides = {[2] * _dims}, pads = {_p * 2}, "
        "ceil_mode = 1, count_include_pad = 1>(x)",
        *_shapes,
        **_of,
    )
    _ones = ", ".join(["0.5"] * (4 * 3**_dims))
    _filter = f"w1 = Constant<value = float[2, 2{', 3' * _dims}] {{{_ones}}}>() "
    for _auto in ("SAME_UPPER", "SAME_LOWER"):
        case(
            f"Conv of {_kind} with {_auto}",
            _filter + f'y = Conv<auto_pad = "{_auto}", strides = {[2] * _dims}>(x, w1)',
            *_shapes,
            **_of,
        )
    case(
        f"MaxPool of {_kind} with SAME_UPPER",
        f'y = MaxPool<auto_pad = "SAME_UPPER", kernel_shape = {[3] * _dims}, strides = {[2] * _dims}>(x)',
        *_shapes,
        **_of,
    )
    case(
        f"AveragePool of {_kind} with SAME_LOWER",
        f'y = AveragePool<auto_pad = "SAME_LOWER", kernel_shape = {[3] * _dims}, strides = {[2] * _dims}>(x)',
        *_shapes,
        **_of,
    )
    case(
        f"ConvTranspose of {_kind} with SAME_UPPER",
        _filter + f'y = ConvTranspose<auto_pad = "SAME_UPPER", strides = {[2] * _dims}>(x, w1)',
        *_shapes,
        **_of,
    )
    case(
        f"places of the largest in {_kind}",
        f"v, y = MaxPool<kernel_shape = {[3] * _dims}, strides = {[2] * _dims}, pads = {_p * 2}>(x)",
        *_shapes,
        inputs=_of["inputs"],
        outputs=_of["outputs"].replace("float", "int64"),
    )
case(
    "a convolution with an open filter",
    "y = Conv<pads = [1, 1, 1, 1]>(x, k1)",
    ((1, 2, 7, 9), (3, 2, 3, 2)),
    ((1, 2, 8, 5), (1, 2, 2, 4)),
    inputs="float[1, 2, h, w] x, float[o, 2, p, q] k1",
    outputs="float[1, o1, o2, o3] y",
)

# --- images in other sizes --------------------------------------------------------------------------------

_TARGET = (
    "s = Shape(x) bc = Slice(s, zero, two) hw = Constant<value_ints = [5, 12]>() "
    "t = Concat<axis = 0>(bc, hw) "
)
_DOUBLE = (
    "s = Shape(x) bc = Slice(s, zero, two) four = Constant<value_ints = [4]>() r = Slice(s, two, four) "
    "hw = Add(r, r) hw1 = Sub(hw, one) t = Concat<axis = 0>(bc, hw1) "
)
_MODES = {
    "half pixels": 'mode = "linear"',
    "PyTorch's half pixels": 'mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel"',
    "aligned corners": 'mode = "linear", coordinate_transformation_mode = "align_corners"',
    "aligned edges": 'mode = "linear", coordinate_transformation_mode = "asymmetric"',
    "the nearest elements": (
        'mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"'
    ),
    "the nearest by half pixels": 'mode = "nearest"',
    "cubic curves": 'mode = "cubic", coordinate_transformation_mode = "pytorch_half_pixel"',
    "cubic curves within the image": 'mode = "cubic", exclude_outside = 1',
}
for _name, _mode in _MODES.items():
    for _sizes, _to in (("given", _TARGET), ("computed", _DOUBLE)):
        case(
            f"sizes {_sizes}, by {_name}",
            _ONE + _to + f"y = Resize<{_mode}>(x, , , t)",
            (1, 2, 4, 6),
            (2, 2, 5, 3),
            **_IMAGE,
            tolerance=2e-5,
        )
    for _scale in ("1.5, 0.4", "2.0, 3.0"):
        case(
            f"scales {_scale}, by {_name}",
            f"t = Constant<value_floats = [1.0, 1.0, {_scale}]>() y = Resize<{_mode}>(x, , t)",
            (1, 2, 4, 6),
            (2, 2, 6, 5),
            **_IMAGE,
            tolerance=2e-5,
        )
case(
    "a smaller image without aliases",
    _ONE + _TARGET + 'y = Resize<mode = "linear", antialias = 1>(x, , , t)',
    (1, 2, 14, 20),
    (1, 2, 9, 16),
    **_IMAGE,
)
case(
    "the largest that fits",
    "t = Constant<value_ints = [8, 8]>() "
    'y = Resize<mode = "linear", axes = [2, 3], keep_aspect_ratio_policy = "not_larger">(x, , , t)',
    (1, 2, 4, 6),
    (1, 2, 10, 5),
    **_IMAGE,
)

# --- products, indices --------------------------------------------------------------------------------------

case(
    "a batch that may be 1 in a sum of products",
    'y = Einsum<equation = "bij,bjk->bik">(x, z)',
    ((2, 3, 4), (2, 4, 5)),
    ((1, 3, 4), (1, 4, 5)),
    inputs="float[b, i, j] x, float[b, j, k] z",
    outputs="float[b, i, k] y",
)
case(
    "hidden dimensions in a sum of products",
    'y = Einsum<equation = "...hd,...kd->...hk">(x, z)',
    ((2, 3, 4), (2, 5, 4)),
    ((1, 3, 4), (1, 2, 4)),
    inputs="float[b, i, j] x, float[b, k, j] z",
    outputs="float[b, i, k] y",
)
case(
    "a diagonal",
    'y = Einsum<equation = "ii->i">(x)',
    (3, 3),
    (5, 5),
    inputs="float[n, n] x",
    outputs="float[n] y",
)
case(
    "reading at places of a batch",
    "i = ArgMax<axis = 1, keepdims = 1>(x) y = GatherND<batch_dims = 1>(x, i)",
    (3, 4),
    (1, 6),
    outputs="float[b] y",
)
case(
    "adding at places",
    'i = ArgMax<axis = 0, keepdims = 1>(x) j = Transpose(i) y = ScatterND<reduction = "add">(z, j, u)',
    ((4, 2), (4, 3), (2, 3)),
    ((3, 2), (3, 5), (2, 5)),
    inputs="float[b, m] x, float[b, n] z, float[m, n] u",
    outputs="float[b, n] y",
)
for _padding in ("zeros", "border", "reflection"):
    case(
        f"sampling an open image with {_padding}",
        f'y = GridSample<padding_mode = "{_padding}">(x, z)',
        ((1, 2, 5, 6), (1, 3, 4, 2)),
        ((2, 2, 4, 4), (2, 2, 2, 2)),
        inputs="float[b, 2, h, w] x, float[b, p, q, 2] z",
        outputs="float[b, 2, p, q] y",
    )
case(
    "blocks of an open image as channels",
    "y = SpaceToDepth<blocksize = 2>(x)",
    (1, 2, 4, 6),
    (2, 2, 2, 4),
    **_IMAGE,
)
