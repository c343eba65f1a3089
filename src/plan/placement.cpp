#include "plan/placement.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "emit/emit.h"
#include "ggml-backend.h"
#include "ggml.h"

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

}  // namespace

std::size_t most_tensors(const Node& node) {
    constexpr std::size_t kPerNode = 48, kPerOperand = 4;
    return kPerNode +
           kPerOperand * (std::max(node.inputs.size(), node.op->operands.size()) + node.outputs.size());
}

bool takes(ggml_backend_device* device, const DeviceArithmetic& arithmetic, const Graph& graph,
           const Node& node) {
    if (std::ranges::find(arithmetic.distrusted, node.op->name) != arithmetic.distrusted.end()) return false;
    const std::size_t tensors = most_tensors(node) + node.inputs.size();
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
    for (ggml_tensor* t = ggml_get_first_tensor(context.get()); t; t = ggml_get_next_tensor(context.get(), t))
        if (!is_exact(arithmetic, t) || !ggml_backend_dev_supports_op(device, t) ||
            (!t->view_src && !fits(memory, t)))
            return false;
    return true;
}

}  // namespace headrace
