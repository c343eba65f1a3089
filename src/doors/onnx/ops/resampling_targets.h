#pragma once
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "doors/onnx/reading/operators.h"

/// Which extents an image is resized to, by scales or sizes that are known, follow from shapes, or are fed.
namespace headrace::onnx {

/// A number as the model gives it: known, or one that follows from shapes, or that only a run tells.
using Given = std::variant<double, Item>;

/// An axis that is resized: the input's and the output's extent, and the part of the input that is shown.
struct ResizedAxis {
    Dim size, out;
    Given scale;
    Given start = 0.0, end = 1.0;

    /// Whether a run has to say anything of it.
    bool is_open() const;
    /// Whether the scale is the quotient of the extents.
    bool is_exact() const;
};
/// By dimension.
using ResizedAxes = std::map<int, ResizedAxis>;

/// The operand that a run tells; null where the number is known or follows from shapes.
Operand told_by(const Given& number);
Operand given_at_run_time(OpWriter& g, const Given& number, ElementType type);

/// By scales or by sizes, one of them given, which may keep the aspect ratio.
ResizedAxes resize_targets(OpWriter& g, const Node& node, const std::vector<std::int64_t>& axes,
                           const std::optional<std::vector<Given>>& scales, const std::optional<Shape>& wanted);

}  // namespace headrace::onnx
