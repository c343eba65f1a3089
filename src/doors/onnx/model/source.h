#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>

#include "doors/onnx/model/messages.h"
#include "doors/onnx/model/tensor_elements.h"

namespace headrace::onnx {

inline constexpr std::int64_t kOldestSet = 1, kNewestSet = 28;
inline constexpr std::string_view kMicrosoft = "com.microsoft";
inline constexpr std::string_view kBlockedChannels = "com.microsoft.nchwc";

/// A model whose bytes were found to be one. Its views show memory that `storage` keeps alive.
struct Source {
    ModelMessage model;
    std::string title;  ///< what messages call it
    Storage storage;
    std::size_t bytes = 0;  ///< of the model without external data

    const GraphMessage& graph() const { return *model.graph; }
};

/// Errors: io for a file that cannot be read; invalid_argument for what is no ONNX model; unsupported for
/// versions that are not read.
Result<std::shared_ptr<Source>> open_model(const std::string& path);
Result<std::shared_ptr<Source>> open_model(std::span<const std::byte> bytes,
                                           std::shared_ptr<const void> owner);

/// Checks the operator sets of a model or a function. Errors: unsupported.
Status check_operator_set(const OperatorSets& sets, std::string_view title);

}  // namespace headrace::onnx
