#pragma once
#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// How a filter or a pool's window moves, a number for each axis of the image.
struct Window {
    Shape kernel;
    std::vector<std::int64_t> strides, dilations;
    Shape before, after;

    std::size_t dims() const { return kernel.size(); }
    /// How many elements a window covers, those between its own included.
    Shape reach() const;
    /// As the catalog has it: above, below, left, right.
    Shape padding() const;
    /// The window over the axes [begin, end) alone.
    Window part(std::size_t begin, std::size_t end) const;
    Window with_height() const;
    /// Throws Invalid for lists of different lengths, and numbers below 1.
    void check() const;
};

/// By the attributes; auto_pad SAME_* gives each axis ceil(size / stride) windows.
Window window_of(const Node& node, const Shape& sizes, const Shape& kernel);
/// [n, c, w] as [n, c, 1, w], and back.
Operand with_height(OpWriter& g, const Operand& x);
Operand without_height(OpWriter& g, const Operand& y);
/// Negative padding takes rows and columns away; open padding becomes a margin of a value.
std::pair<Operand, Window> unpadded(OpWriter& g, const Operand& x, const Window& window,
                                    const AttrValue& value = 0.0);
/// With the attributes of Conv, on operands that may have been computed from the node's.
Operand convolution(OpWriter& g, const Node& node, const Operand& x, const Operand& weight,
                    const Operand& bias);
Operand convolve(OpWriter& g, Operand x, const Operand& weight, const Operand& bias, Window window,
                 std::int64_t groups);
Shape kernel_of(OpWriter& g, const Node& node, const Operand& weight, int rank);

}  // namespace headrace::onnx
