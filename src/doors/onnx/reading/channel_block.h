#pragma once
#include "doors/onnx/model/messages.h"

namespace headrace::onnx {

/// How many channels lie side by side in what ONNX Runtime has saved with ORT_ENABLE_ALL: 8 or 16, by the
/// processor it was saved on, which the model does not say. Filters that can lie in blocks of one size only
/// tell; where none does, it is taken for this processor, as ONNX Runtime takes it.
Result<std::int64_t> channel_block(const GraphMessage& graph);

}  // namespace headrace::onnx
