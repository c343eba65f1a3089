#include <algorithm>
#include <set>

#include "passes/evaluate.h"
#include "passes/fold_constants.h"

namespace headrace {
namespace {

bool has_constant_operands(const Graph& graph, const Node& node) {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
        return id == kNoValue || graph.value(id).kind == ValueKind::constant;
    });
}

/// Types without symbols; of one node a constant shape attribute may still name one.
bool has_concrete_outputs(const Graph& graph, const Node& node) {
    return std::all_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId id) { return graph.value(id).type.is_concrete(); });
}

/// Extents that a kernel reads are known.
bool has_concrete_attributes(const Node& node) {
    const std::vector<AttrValue> values = node.op->attr_values(node.attrs.get());
    return std::all_of(values.begin(), values.end(), [](const AttrValue& value) {
        const auto* shape = std::get_if<Shape>(&value);
        return !shape ||
               std::none_of(shape->begin(), shape->end(), [](const Dim& d) { return d.is_symbolic(); });
    });
}

/// What packed kernels compute at least in the time of one operation of a reference kernel.
constexpr double kOperationsOfKernels = 16;

/// What the limits count of one node: bytes of its operands, each once, and of its results, and operations.
struct Effort {
    std::size_t in = 0, out = 0;
    double flops = 0;
};

Effort effort_of(const Graph& graph, const Node& node) {
    Effort effort;
    std::set<ValueId> distinct(node.inputs.begin(), node.inputs.end());
    distinct.erase(kNoValue);
    for (ValueId id : distinct) effort.in += graph.value(id).type.bytes();
    // Each fits the address space; their sum is cut off rather than wrapped.
    for (ValueId id : node.outputs)
        effort.out += std::min(graph.value(id).type.bytes(), SIZE_MAX - effort.out);
    if (node.op->cost) {
        const auto types = graph.operand_types(node);
        const auto outputs = graph.output_types(node);
        effort.flops = node.op->cost(Operands(types), outputs, node.attrs.get()).flops;
        if (folding_kernel(graph, node)) effort.flops /= kOperationsOfKernels;
    }
    return effort;
}

bool is_within(const FoldLimits& limits, const Effort& effort) {
    if (effort.flops > limits.flops) return false;
    if (effort.out <= std::max(effort.in, limits.always_bytes)) return true;
    return static_cast<double>(effort.out) <= limits.growth * static_cast<double>(effort.in) &&
           effort.out <= limits.grown_bytes;
}

/// What all nodes together may still have.
struct Allowance {
    double flops, bytes;

    bool takes(const Effort& effort) {
        if (effort.flops > flops || static_cast<double>(effort.out) > bytes) return false;
        flops -= effort.flops;
        bytes -= static_cast<double>(effort.out);
        return true;
    }
};

}  // namespace

Result<Counts> fold_constants(Graph& graph, const PassContext& context) {
    std::vector<bool> keep(graph.nodes.size(), true);
    std::int64_t folded = 0, skipped = 0, bytes = 0;
    Allowance allowance{context.fold.all_flops, context.fold.most_bytes(graph)};
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& node = graph.nodes[i];
        if (!node.op->is_pure() || node.op->control != Control::none || !has_constant_operands(graph, node) ||
            !has_concrete_outputs(graph, node) || !has_concrete_attributes(node))
            continue;
        const Effort effort = effort_of(graph, node);
        if (!node.op->folds_always && !(is_within(context.fold, effort) && allowance.takes(effort))) {
            ++skipped;
            continue;
        }
        HR_TRY(make_constant(graph, node));
        for (ValueId id : node.outputs)
            bytes += static_cast<std::int64_t>(graph.value(id).constant->bytes.size());
        keep[i] = false;
        ++folded;
    }
    graph.compact(keep);
    return Counts{{"nodes_folded", folded}, {"nodes_too_large", skipped}, {"bytes_made", bytes}};
}

Pass fold_constants_pass() {
    // By then no large matrix is left to transpose, constant half floats are converted, and the biases of
    // networks are added. Integers are multiplied before this makes real numbers of small constants.
    return {.name = "fold_constants",
            .summary = "computes nodes whose operands are constant",
            .run = &fold_constants,
            .after = {"absorb_transposed_weights", "promote_half_floats", "hoist_recurrent_input_projection",
                      "fake_quantization_to_integer", "look_up_functions_of_bytes"}};
}

}  // namespace headrace
