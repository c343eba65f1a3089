"""Layers of open channels, heads and filters, beside those of open_shape_cases."""

from __future__ import annotations

from open_shape_cases import case

for _pads in ([0, 0], [1, 0]):
    for _dims, _kernel in (("w", "r"), ("h, w", "q, r"), ("d, h, w", "p, q, r")):
        _count = _dims.count(",") + 1
        case(
            f"a transposed convolution with an open filter over {_count} dimensions, padded by {_pads}",
            f"y = ConvTranspose<group = 2, pads = {_pads * _count}, strides = {[2] * _count}>(x, k1)",
            ((1, 4, *(5, 6, 7)[:_count]), (4, 3, *(3, 2, 4)[:_count])),
            ((2, 2, *(3, 4, 2)[:_count]), (2, 1, *(2, 5, 1)[:_count])),
            inputs=f"float[b, c, {_dims}] x, float[c, o, {_kernel}] k1",
            outputs=f"float[b, o1, {', '.join(f'y{i}' for i in range(_count))}] y",
        )
case(
    "attention with open heads, of which several share keys",
    "y = Attention(x, z, z)",
    ((1, 4, 3, 8), (1, 2, 5, 8)),
    ((2, 3, 2, 4), (2, 1, 6, 4)),
    inputs="float[b, h, m, w] x, float[b, k, n, w] z",
    outputs="float[b, h, m, w] y",
    opset=23,
)
for _interleaved in (0, 1):
    case(
        "rotary positions of open width" + " of neighbours" * _interleaved,
        f"y = RotaryEmbedding<interleaved = {_interleaved}>(x, c, s)",
        ((1, 4, 3, 8), (1, 3, 4), (1, 3, 4)),
        ((2, 3, 2, 4), (2, 2, 2), (2, 2, 2)),
        inputs="float[b, h, m, w] x, float[b, m, a] c, float[b, m, a] s",
        outputs="float[b, h, m, w] y",
        opset=23,
    )
case(
    "a deformed convolution of an open image",
    "four = Constant<value_ints = [3, 2, 2, 2]>() k = ConstantOfShape<value = float[1] {0.5}>(four) "
    "y = DeformConv(x, k, z)",
    ((1, 2, 5, 6), (1, 8, 4, 5)),
    ((2, 2, 3, 3), (2, 8, 2, 2)),
    inputs="float[b, 2, h, w] x, float[b, 8, p, q] z",
    outputs="float[b, 3, p, q] y",
)
