#pragma once
#include "ggml.h"

namespace headrace::mlx {

class Builder;

/// What the backend knows of an op. The same row says what it takes and how it is expressed, so that what
/// supports_op promises is what is computed.
struct OpRow {
    ggml_op op;
    bool (*supports)(const ggml_tensor* t);
    void (*translate)(Builder& builder, const ggml_tensor* t);
};

/// The row of a node's op, or null.
const OpRow* find_op(const ggml_tensor* t);

/// Whether the device computes this node: its row takes it, and its operands have sizes that MLX can express.
bool supports(const ggml_tensor* t);

}  // namespace headrace::mlx
