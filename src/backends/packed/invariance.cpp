#include "backends/packed/invariance.h"

#include <cstdint>

#include "backends/packed/attention.h"
#include "backends/packed/product.h"
#include "backends/packed/row_product.h"
#include "ggml-backend-impl.h"

namespace headrace::packed {
namespace {

/// The last of a node's parameters, which ggml has no use for in these nodes.
constexpr int kMarkIndex = GGML_MAX_OP_PARAMS / sizeof(std::int32_t) - 1;
constexpr std::int32_t kMark = 0x1e7a61e;

bool lies_on_host(const ggml_tensor* tensor) {
    const ggml_backend_buffer_t buffer = tensor->view_src ? tensor->view_src->buffer : tensor->buffer;
    return !buffer || ggml_backend_buffer_is_host(buffer);
}

/// Whether ggml computes every row of the op's result by itself, from one end to the other.
bool goes_row_by_row(ggml_op op) {
    switch (op) {
        case GGML_OP_NONE:
        case GGML_OP_RESHAPE:
        case GGML_OP_VIEW:
        case GGML_OP_PERMUTE:
        case GGML_OP_TRANSPOSE:
        case GGML_OP_CONT:
        case GGML_OP_CPY:
        case GGML_OP_DUP:
        case GGML_OP_CONCAT:
        case GGML_OP_REPEAT:
        case GGML_OP_GET_ROWS:
        case GGML_OP_SET_ROWS:
        case GGML_OP_ADD:
        case GGML_OP_SUB:
        case GGML_OP_MUL:
        case GGML_OP_DIV:
        case GGML_OP_SCALE:
        case GGML_OP_CLAMP:
        case GGML_OP_SQR:
        case GGML_OP_SQRT:
        case GGML_OP_UNARY:
        case GGML_OP_GLU:
        case GGML_OP_NORM:
        case GGML_OP_RMS_NORM:
        case GGML_OP_L2_NORM:
        case GGML_OP_ROPE: return true;
        default: return false;
    }
}

void mark(ggml_tensor* node) { node->op_params[kMarkIndex] = kMark; }

}  // namespace

bool make_invariant(ggml_tensor* node) {
    if (!lies_on_host(node)) return false;
    switch (node->op) {
        case GGML_OP_FLASH_ATTN_EXT: mark(node); return attention_of(node) != nullptr;
        case GGML_OP_MUL_MAT:
            // Those of packed weights add up every element in one order.
            if (products()->get_tensor_traits(node)) return true;
            if (!has_row_product(node)) return false;
            mark(node);
            return true;
        default: return goes_row_by_row(node->op);
    }
}

bool is_invariant(const ggml_tensor* node) { return node->op_params[kMarkIndex] == kMark; }

}  // namespace headrace::packed
