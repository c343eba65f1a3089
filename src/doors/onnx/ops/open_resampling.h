#pragma once
#include "doors/onnx/ops/resampling_targets.h"

/// Axes resized where the input's or the output's extent is known only at run time: points and weights are
/// computed by the graph, as vectors along the axis.
namespace headrace::onnx {

/// As near to the middle of two elements, ONNX Runtime takes a point to be there.
inline constexpr double kTie = 1e-6;

std::string transformation_of(const Node& node);
/// Whether it moves elements where the scale is 1.
bool is_shifted(const Node& node);
double extrapolation_of(const Node& node);

/// Where each output element lies in the input, f32. stays: whether the whole image is as it was, where a run
/// decides that; else null. So is an axis with the scale 1.
Operand moved_points(OpWriter& g, const ResizedAxis& axis, const Node& node, const Operand& stays);
Operand is_outside(OpWriter& g, const ResizedAxis& axis, const Operand& points);
Operand resized_open_axis(OpWriter& g, const Operand& x, int dim, const ResizedAxis& axis, const Node& node,
                          const Operand& stays);

}  // namespace headrace::onnx
