"""Linear quantisation, with a scale for each block of the input."""

from __future__ import annotations

from .registry import Node, lowers
from .writer import Shape, Writer

_LIMITS = {"int4": (-8, 7), "uint4": (0, 15), "int8": (-128, 127), "uint8": (0, 255)}
_INT32 = (-(2.0**31), 2.0**31 - 1)


def spread(w: Writer, n: Node, x: str, i: int) -> str:
    """Operand i, whose extents count blocks, repeated to where it broadcasts to the input."""
    blocks: Shape = n.shapes[i] or []
    shift = len(n.shape) - len(blocks)
    split, repeated, merged = [], [], []
    for axis, count in enumerate(blocks):
        whole = n.shape[axis + shift]
        if count == whole or count == 1:
            split += [count]
            repeated += [count]
            merged += [count]
        else:
            split += [count, 1]
            repeated += [count, whole // count]
            merged += [whole]
    if len(split) == len(blocks):
        return x
    wide = w.node("Expand", [w.reshape(x, split), w.extents(repeated)])
    return w.reshape(wide, merged)


def _granularity(n: Node) -> tuple[Shape, dict[str, int]] | None:
    """The shape of the scale and the attributes with which ONNX's own operators say the same, or None."""
    given: Shape = n.shapes[1] or []
    blocks = [1] * (len(n.shape) - len(given)) + list(given)
    several = [axis for axis, count in enumerate(blocks) if count != 1]
    if not several:
        return [], {}
    if len(several) == 1 and blocks[several[0]] == n.shape[several[0]]:
        return [blocks[several[0]]], {"axis": several[0]}
    differing = [axis for axis, count in enumerate(blocks) if count != n.shape[axis]]
    if len(differing) != 1:
        return None
    (axis,) = differing
    whole, count = n.shape[axis], blocks[axis]
    if not (isinstance(whole, int) and isinstance(count, int)):
        return None
    return blocks, {"axis": axis, "block_size": whole // count}


def _direct(w: Writer, n: Node, onnx_op: str, x: str, scale: str) -> str | None:
    """QuantizeLinear or DequantizeLinear, where these have the scale's granularity."""
    found = _granularity(n)
    if found is None:
        return None
    shape, axes = found
    zero_point = n.inputs[2]
    if list(shape) != list(n.shapes[1] or []):
        # Reshape has no 4-bit kernel in ONNX Runtime.
        dtype, moved = n.dtypes[2], {"int4": "int8", "uint4": "uint8"}.get(n.dtypes[2] or "")
        scale = w.reshape(scale, shape)
        if zero_point and moved:
            zero_point = w.cast(w.reshape(w.cast(zero_point, moved), shape), dtype)
        elif zero_point:
            zero_point = w.reshape(zero_point, shape)
    return w.node(onnx_op, [x, scale, zero_point], **axes)


@lowers("dequantize_linear", operands=3)
def dequantize_linear(w: Writer, n: Node) -> str:
    """(input - zero point) * scale, computed in float32 as our own kernel does."""
    target = n.out_dtypes[0]
    scale = w.cast(n.inputs[1], "float32") if target != "float32" else n.inputs[1]
    direct = None if n.dtype == "int32" else _direct(w, n, "DequantizeLinear", n.x, scale)
    if direct:
        return w.cast(direct, target) if target != "float32" else direct
    wide = "int64" if n.dtype == "int32" else "int32"  # holds every difference
    whole = w.cast(n.x, wide)
    if n.inputs[2] is not None:
        zero_point = w.cast(n.inputs[2], wide)
        whole = w.node("Sub", [whole, spread(w, n, zero_point, 2)])
    y = w.node("Mul", [w.cast(whole, "float32"), spread(w, n, scale, 1)])
    return w.cast(y, target) if target != "float32" else y


@lowers("quantize_linear")
def quantize_linear(w: Writer, n: Node) -> str:
    """input / scale, rounded to even, + zero point, saturated; NaN becomes the lowest value."""
    target = n.out_dtypes[0]
    x, scale = (w.cast(v, "float32") if n.dtype != "float32" else v for v in n.inputs[:2])
    if target in _LIMITS and (direct := _direct(w, n, "QuantizeLinear", x, scale)):
        return direct
    quotient = w.node("Round", [w.node("Div", [x, spread(w, n, scale, 1)])])
    # float64 holds every sum of a rounded quotient and a zero point that the limits do not cut off
    wide = w.cast(quotient, "float64")
    zero_point = w.cast(w.cast(n.inputs[2], "int32"), "float64")
    total = w.node("Add", [wide, spread(w, n, zero_point, 2)])
    low, high = _LIMITS.get(target, _INT32)
    total = w.where(w.node("IsNaN", [total]), w.constant(low, "float64"), total)
    clipped = w.node("Clip", [total, w.constant(low, "float64"), w.constant(high, "float64")])
    whole = w.cast(clipped, "int32")
    return whole if target == "int32" else w.cast(whole, target)
