#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/webnn.h"

/// A read-only description of a graph in WebNN's words, for exporters and inspection.
namespace headrace::webnn {

enum class MLValueKind : std::uint8_t { input, constant, state, result };

struct MLValueView {
    MLValueKind kind = MLValueKind::result;
    DType dataType = DType::f32;
    std::vector<MLDimension> shape;
    std::string name;  ///< of inputs and named constants, else empty
    /// A constant's packed bytes, or its f32 values where it is stored in blocks; alive as long as `owner`
    /// is.
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
};

struct MLNodeView {
    std::string op, label;
    MLOptions attributes;                       ///< those that are present, by the catalog's names
    std::vector<std::int32_t> inputs, outputs;  ///< indices into values; -1: an absent optional operand
};

struct MLGraphView {
    std::vector<MLValueView> values;
    std::vector<MLNodeView> nodes;  ///< in an order in which they can run
    std::vector<std::int32_t> inputs;
    std::vector<std::pair<std::string, std::int32_t>> outputs;
};

HEADRACE_API MLGraphView view(const std::shared_ptr<const Graph>& graph);
HEADRACE_API MLGraphView view(const MLGraph& graph);  ///< as it was built

/// The shapes of MLGraph::inputs() and outputs(), with the ranges of open extents, which these do not tell.
HEADRACE_API std::vector<std::vector<MLDimension>> input_shapes(const MLGraph& graph);
HEADRACE_API std::vector<std::vector<MLDimension>> output_shapes(const MLGraph& graph);

}  // namespace headrace::webnn
