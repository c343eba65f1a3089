#pragma once
#include <memory>
#include <string>
#include <vector>

#include "doors/onnx/model/element_type.h"
#include "doors/onnx/model/external.h"
#include "doors/onnx/model/messages.h"
#include "ir/graph.h"

namespace headrace::onnx {

/// The elements of a tensor as a graph stores them (stored_as), where the file has them: its pages, unless
/// they have to be converted.
struct TensorElements {
    ElementType type = ElementType::f32;
    std::vector<std::int64_t> shape;
    std::shared_ptr<const Constant> data;
};

/// What a model's tensors lie in.
struct Storage {
    std::shared_ptr<const void> owner;  ///< keeps the model's bytes alive
    bool is_mapped = false;             ///< the model's bytes are a file's pages
    ExternalFiles files;
};

/// Errors: what the tensor has that it cannot have; of external data those of ExternalFiles.
Result<TensorElements> elements_of(const TensorMessage& tensor, Storage& storage);

/// How many there are. Errors: negative extents, and more than memory could hold.
Result<std::int64_t> count_elements(const std::vector<std::int64_t>& shape);

}  // namespace headrace::onnx
