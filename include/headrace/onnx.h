#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/headrace.h"

/// ONNX models (docs/onnx.md), read without Python and without Protocol Buffers.
namespace headrace {

struct OnnxOptions {
    /// Numbers for named dimensions of inputs, which are open otherwise.
    std::map<std::string, std::int64_t> dimensions;
    /// Whole shapes of inputs by their names, also of those that the model gives none.
    std::map<std::string, std::vector<std::int64_t>> shapes;
};

/// Reads a model as a graph for compile(). Weights stay in the file's pages where their place is a multiple
/// of 16 bytes, as external data's is, and are copied once elsewhere; the file must not be shortened
/// meanwhile. Errors: io for a file that cannot be read; invalid_argument for what is no valid model;
/// unsupported for what this reader lacks or cannot express, with the node, its operator, what is in the way
/// and what to do.
HEADRACE_API std::shared_ptr<const Graph> load_onnx(const std::string& path, const OnnxOptions& options = {});
/// A model's bytes, without external data, which `owner` keeps alive.
HEADRACE_API std::shared_ptr<const Graph> load_onnx(std::span<const std::byte> bytes,
                                                    std::shared_ptr<const void> owner,
                                                    const OnnxOptions& options = {});

/// An operator that load_onnx() reads.
struct OnnxOperator {
    std::string domain;  ///< "" is ai.onnx
    std::string name;
    std::int64_t since = 1;  ///< the first operator set that has it
};
HEADRACE_API std::vector<OnnxOperator> onnx_operators();

}  // namespace headrace
