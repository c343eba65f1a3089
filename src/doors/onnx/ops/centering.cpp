#include "doors/onnx/ops/padding.h"
#include "doors/onnx/reading/numbers.h"

namespace headrace::onnx {
namespace {

/// To extents of some axes: as much at both ends, and what is odd at the end where it is added.
Operand center_crop_pad(OpWriter& g, const Node& node) {
    Operand x = node.x();
    const Shape wanted = dims_of(g, node, 1, "the shape");
    const std::vector<std::int64_t> axes =
        axes_of(node.integer_list("axes").value_or(counted_list(g.rank(x))), g.rank(x));
    invalid_if(wanted.size() != axes.size(), "the shape (input 1) has {} extents for {} axes", wanted.size(),
               axes.size());
    Shape begin(static_cast<std::size_t>(g.rank(x)), 0), end = begin;
    const Shape sizes = g.shape(x);
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto at = static_cast<std::size_t>(axes[i]);
        const Dim missing = largest({sizes.at(at), wanted[i]}) - sizes[at];
        begin[at] = divided_down(missing, 2);
        end[at] = missing - begin[at];
    }
    x = with_margin(g, x, begin, end);
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const Dim padded = largest({sizes.at(static_cast<std::size_t>(axes[i])), wanted[i]});
        x = g.cut(x, static_cast<int>(axes[i]), divided_down(padded - wanted[i], 2), wanted[i]);
    }
    return x;
}

}  // namespace

std::span<const Operator> centering_operators() {
    static const Operator kOperators[] = {{"CenterCropPad", 18, center_crop_pad}};
    return kOperators;
}

}  // namespace headrace::onnx
