#pragma once
#include "doors/onnx/reading/numbers.h"
#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// Real and imaginary parts; null: zero.
struct Complex {
    Operand re, im;
};

/// [..., bins] of a signal along the last axis, by a matrix of waves: it may be shorter than the length, then
/// zeros follow. sign: of the waves' angles.
Complex transformed_by_waves(OpWriter& g, const Complex& x, const Dim& bins, const Dim& length, int sign);
/// The products of complex matrices, as the op named `op` has them.
Complex complex_product(OpWriter& g, std::string_view op, const Complex& x, const Operand& cos,
                        const Operand& sin);

/// The transform of [..., signal, ...], and whether it is of real numbers. axis: counted from the front, or
/// an operand that only a run tells.
struct ToldTransform {
    Complex y;
    bool is_real = false;
};
ToldTransform dft_as_told(OpWriter& g, const Node& node, const Complex& parts, const Numbers& axis);
/// [batch, frames, bins] of [batch, signal].
Complex stft_as_told(OpWriter& g, const Node& node, const Complex& parts, const Dim& length, const Dim& step);
/// MelWeightMatrix of numbers that only a run tells.
Operand mel_as_told(OpWriter& g, const Node& node, ElementType type);

}  // namespace headrace::onnx
