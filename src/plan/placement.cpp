#include "plan/placement.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "emit/emit.h"
#include "ggml-backend.h"
#include "ggml.h"
#include "ops/op_name.h"
#include "ops/recurrent_lowering.h"

namespace headrace {
namespace {

struct ContextFree {
    void operator()(ggml_context* context) const { ggml_free(context); }
};

/// A tensor has to lie within one buffer of the device, where ggml rounds its bytes up to the alignment.
bool fits(ggml_backend_buffer_type_t type, const ggml_tensor* tensor) {
    const std::size_t most = ggml_backend_buft_get_max_size(type);
    // A remote device would be asked over the network for the size; one that was lost says 0.
    if (most == SIZE_MAX || most == 0) return true;
    const std::size_t bytes = ggml_backend_buft_get_alloc_size(type, tensor);
    return bytes <= most && GGML_PAD(bytes, ggml_backend_buft_get_alignment(type)) <= most;
}

bool is_exact(const DeviceArithmetic& arithmetic, const ggml_tensor* tensor) {
    switch (tensor->op) {
        case GGML_OP_OUT_PROD: return arithmetic.has_exact_outer_products;
        case GGML_OP_CONV_2D: return arithmetic.has_exact_convolutions;
        default: return true;
    }
}

/// CUDA's grids have so many blocks in their second and third dimension, where some of ggml's operations have
/// the tensor's, do not check that, and end the process.
bool fits_grid(const ggml_tensor* t) {
    constexpr std::int64_t kMost = 65535;
    switch (t->op) {
        case GGML_OP_PAD: return t->ne[1] <= kMost && t->ne[2] * t->ne[3] <= kMost;
        case GGML_OP_CONCAT:
        case GGML_OP_RMS_NORM:
        case GGML_OP_SOFT_MAX:
        case GGML_OP_TRI: return t->ne[2] <= kMost && t->ne[3] <= kMost;
        default: return true;
    }
}

/// Some devices say that they copy other types, too, and end the process.
bool is_copied(const ggml_tensor* t) {
    const auto is_known = [](ggml_type type) {
        return type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16 ||
               type == GGML_TYPE_I32;
    };
    if (t->op != GGML_OP_CPY && t->op != GGML_OP_CONT && t->op != GGML_OP_DUP) return true;
    return is_known(t->type) && is_known(t->src[0]->type);
}

}  // namespace

std::size_t most_tensors(const Graph& graph, const Node& node) {
    constexpr std::size_t kPerNode = 256, kPerOperand = 4, kPerStep = 128;
    const std::size_t operands = std::max(node.inputs.size(), node.op->operands.size());
    std::size_t steps = 0;
    if (is(node, "lstm") || is(node, "gru") || is(node, "lstm_recurrence") || is(node, "gru_recurrence")) {
        const std::int64_t both = 2 * graph.value(node.inputs[0]).type.shape[0].size();
        steps = static_cast<std::size_t>(std::min(both, ops::kMostLoweredSteps));  // more have no lowering
    }
    return kPerNode + kPerStep * steps + kPerOperand * (operands + node.outputs.size());
}

std::vector<ValueId> written_states(const Graph& graph) {
    std::map<ValueId, ValueId> state_of;  // of new versions
    std::vector<ValueId> written;
    for (const Node& node : graph.nodes) {
        written.push_back(kNoValue);
        if (node.op->is_pure()) continue;
        const ValueId operand = node.inputs[node.op->writes_state];
        const auto version = state_of.find(operand);
        written.back() = version == state_of.end() ? operand : version->second;
        state_of[node.outputs[0]] = written.back();
    }
    return written;
}

bool takes(ggml_backend_device* device, const DeviceArithmetic& arithmetic, const Graph& graph,
           const Node& node) {
    if (std::ranges::find(arithmetic.distrusted, node.op->name) != arithmetic.distrusted.end()) return false;
    const std::size_t tensors = most_tensors(graph, node) + node.inputs.size();
    const std::unique_ptr<ggml_context, ContextFree> context(
        ggml_init({.mem_size = tensors * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
    if (!context) return false;
    Emit emit(context.get(), arithmetic.products);
    std::vector<ggml_tensor*> operands;
    for (ValueId id : node.inputs)
        operands.push_back(id == kNoValue ? nullptr : emit.leaf(graph.value(id).type));
    operands.resize(std::max(operands.size(), node.op->operands.size()));
    const auto types = graph.operand_types(node);
    node.op->lower(emit, operands, Operands(types), node.attrs.get());

    ggml_backend_buffer_type_t memory = ggml_backend_dev_buffer_type(device);
    for (ggml_tensor* t = ggml_get_first_tensor(context.get()); t;
         t = ggml_get_next_tensor(context.get(), t)) {
        if (Emit::is_for_cpu(t)) continue;
        if (!is_exact(arithmetic, t) || !fits_grid(t) || !is_copied(t) ||
            !ggml_backend_dev_supports_op(device, t) || (!t->view_src && !fits(memory, t)))
            return false;
    }
    return true;
}

}  // namespace headrace
