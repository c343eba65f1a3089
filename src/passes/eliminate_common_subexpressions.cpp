#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>

#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

std::string_view text_of_bytes(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class T>
void append(std::string& key, T value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_text(std::string& key, std::string_view text) {
    append(key, text.size());  // so that no two lists of texts give one key
    key.append(text);
}

/// Finds constants of equal type and bytes. Weights are compared in full only where a few of their bytes
/// agree: reading them all would fetch every page of a mapped model.
class ConstantTable {
public:
    explicit ConstantTable(const Graph& graph) : graph_(graph) {}

    /// An earlier constant that equals this one, or `id` itself.
    ValueId first_equal(ValueId id) {
        std::vector<ValueId>& alike = by_sample_[sample_key(graph_.value(id))];
        // The full hash makes many constants that agree in their samples cheap to tell apart.
        const std::size_t hash = alike.empty() ? 0 : full_hash(id);
        for (ValueId other : alike)
            if (full_hash(other) == hash && is_equal(other, id)) return other;
        alike.push_back(id);
        return id;
    }

private:
    static constexpr std::size_t kSample = 64;

    static std::string sample_key(const Value& v) {
        std::string key = v.type.str();
        const std::string_view bytes = text_of_bytes(v.constant->bytes);
        if (bytes.size() <= 3 * kSample) {
            append_text(key, bytes);
            return key;
        }
        append_text(key, bytes.substr(0, kSample));
        append_text(key, bytes.substr(bytes.size() / 2, kSample));
        append_text(key, bytes.substr(bytes.size() - kSample));
        return key;
    }

    std::size_t full_hash(ValueId id) {
        const auto [at, is_new] = hashes_.try_emplace(graph_.value(id).constant.get(), 0);
        if (is_new)
            at->second = std::hash<std::string_view>()(text_of_bytes(graph_.value(id).constant->bytes));
        return at->second;
    }

    bool is_equal(ValueId a, ValueId b) const {
        const Constant &x = *graph_.value(a).constant, &y = *graph_.value(b).constant;
        return x.bytes.data() == y.bytes.data() || text_of_bytes(x.bytes) == text_of_bytes(y.bytes);
    }

    const Graph& graph_;
    std::unordered_map<std::string, std::vector<ValueId>> by_sample_;
    std::unordered_map<const Constant*, std::size_t> hashes_;
};

/// Equal for nodes that compute the same: op, operands and attributes. Reals are printed exactly, -0 apart
/// from 0.
std::string node_key(const Node& node) {
    std::string key;
    append(key, node.op);
    append(key, node.inputs.size());
    for (ValueId id : node.inputs) append(key, id);
    for (const AttrValue& value : node.op->attr_values(node.attrs.get())) {
        append(key, value.index());
        if (const auto* body = std::get_if<GraphPtr>(&value)) append(key, body->get());
        append_text(key, text_of(value));
    }
    return key;
}

/// Merges constants of equal type and bytes, then pure nodes of equal op, attributes and operands.
Result<Counts> eliminate_common_subexpressions(Graph& graph, const PassContext&) {
    Replacements replacements(graph.values.size());
    std::int64_t constants_merged = 0, nodes_removed = 0;
    ConstantTable constants(graph);
    for (std::size_t i = 0; i < graph.values.size(); ++i) {
        if (graph.values[i].kind != ValueKind::constant) continue;
        const auto id = static_cast<ValueId>(i);
        const ValueId first = constants.first_equal(id);
        if (first == id) continue;
        replacements.replace(id, first);
        ++constants_merged;
    }
    std::unordered_map<std::string, NodeId> seen;
    std::vector<bool> keep(graph.nodes.size(), true);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        Node& node = graph.nodes[i];
        replacements.rewrite_operands(node);
        if (!node.op->is_pure()) continue;
        const auto [first, is_new] = seen.try_emplace(node_key(node), static_cast<NodeId>(i));
        if (is_new) continue;
        const Node& same = graph.node(first->second);
        for (std::size_t k = 0; k < node.outputs.size(); ++k)
            replacements.replace(node.outputs[k], same.outputs[k]);
        keep[i] = false;
        ++nodes_removed;
    }
    replacements.rewrite_outputs(graph);
    graph.compact(keep);
    return Counts{{"constants_merged", constants_merged}, {"nodes_removed", nodes_removed}};
}

}  // namespace

Pass eliminate_common_subexpressions_pass() {
    // Folding makes constants equal.
    return {.name = "eliminate_common_subexpressions",
            .summary = "merges equal constants and equal nodes",
            .run = &eliminate_common_subexpressions,
            .after = {"fold_constants", "fold_dequantize_into_matmul"}};
}

}  // namespace headrace
