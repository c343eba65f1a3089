#include <algorithm>
#include <cstring>

#include "ir/constant.h"
#include "passes/passes.h"

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

bool is_within(const FoldLimits& limits, const Graph& graph, const Node& node) {
    std::size_t in = 0, out = 0;
    for (ValueId id : node.inputs)
        if (id != kNoValue) in += graph.value(id).type.bytes();
    // Each fits the address space; their sum is cut off rather than wrapped.
    for (ValueId id : node.outputs) out += std::min(graph.value(id).type.bytes(), SIZE_MAX - out);
    if (node.op->cost && !node.op->folds_always) {
        const auto types = graph.operand_types(node);
        const auto outputs = graph.output_types(node);
        if (node.op->cost(Operands(types), outputs, node.attrs.get()).flops > limits.flops) return false;
    }
    if (node.op->folds_always || out <= std::max(in, limits.always_bytes)) return true;
    return static_cast<double>(out) <= limits.growth * static_cast<double>(in) && out <= limits.grown_bytes;
}

/// Runs a node's reference kernel on constants.
class Evaluation {
public:
    explicit Evaluation(const Graph& graph) : graph_(graph) {}

    Result<std::vector<std::shared_ptr<const Constant>>> run(const Node& node) {
        const std::size_t count = node.inputs.size() + node.outputs.size();
        shapes_.reserve(count);  // views point into it
        std::vector<ConstView> in;
        for (ValueId id : node.inputs) {
            if (id == kNoValue) {
                in.push_back({});
                continue;
            }
            HR_ASSIGN(const auto view, operand(graph_.value(id)));
            in.push_back(view);
        }
        // A kernel may ask for every operand it declares.
        in.resize(std::max(in.size(), node.op->operands.size()));
        std::vector<MutView> out;
        std::vector<std::shared_ptr<const Constant>> results;
        for (ValueId id : node.outputs) {
            const TensorType& type = graph_.value(id).type;
            HR_ASSIGN(auto buffer, AlignedBuffer::allocate(type.bytes(), "a folded constant"));
            out.push_back({type.dtype, shapes_.emplace_back(type.sizes()), buffer.data()});
            results.push_back(own_constant(std::move(buffer)));
        }
        node.op->reference({in, out, {}}, node.attrs.get());
        return results;
    }

private:
    Result<ConstView> operand(const Value& v) {
        const std::span<const std::byte> bytes = v.constant->bytes;
        const std::byte* data = bytes.data();
        // Memory that a caller lent may lie anywhere; kernels read whole elements. Null would mean absent.
        const std::size_t alignment = static_cast<std::size_t>(std::max(1, bits_of(v.type.dtype) / 8));
        if (!data || reinterpret_cast<std::uintptr_t>(data) % alignment != 0) {
            HR_ASSIGN(auto copy, AlignedBuffer::allocate(bytes.size(), "an aligned constant"));
            std::copy(bytes.begin(), bytes.end(), copy.data());
            data = copies_.emplace_back(std::move(copy)).data();
        }
        return ConstView{v.type.dtype, shapes_.emplace_back(v.type.sizes()), data, v.type.format};
    }

    const Graph& graph_;
    std::vector<std::vector<std::int64_t>> shapes_;
    std::vector<AlignedBuffer> copies_;
};

}  // namespace

Result<Counts> fold_constants(Graph& graph, const PassContext& context) {
    std::vector<bool> keep(graph.nodes.size(), true);
    std::int64_t folded = 0, skipped = 0, bytes = 0;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& node = graph.nodes[i];
        if (!node.op->is_pure() || !has_constant_operands(graph, node) || !has_concrete_outputs(graph, node))
            continue;
        if (!is_within(context.fold, graph, node)) {
            ++skipped;
            continue;
        }
        auto results = Evaluation(graph).run(node);
        if (!results.ok()) return results.error().within(node.title());
        for (std::size_t k = 0; k < node.outputs.size(); ++k) {
            Value& v = graph.value(node.outputs[k]);
            v.constant = std::move(results.value()[k]);
            v.kind = ValueKind::constant;
            v.producer = -1;
            v.output_index = 0;
            bytes += static_cast<std::int64_t>(v.constant->bytes.size());
        }
        keep[i] = false;
        ++folded;
    }
    graph.compact(keep);
    return Counts{{"nodes_folded", folded}, {"nodes_too_large", skipped}, {"bytes_made", bytes}};
}

}  // namespace headrace
