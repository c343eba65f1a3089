#include "passes/passes.h"
#include "passes/pattern.h"

namespace headrace {
namespace {

struct Composition {
    std::string_view count;
    Result<bool> (*recognise)(Patterns&, NodeId);
};

/// In this order at each node, which may be one after the other.
constexpr Composition kCompositions[] = {
    {"rms_norms", &recognise_rms_norm},
    {"silus", &recognise_silu},
    {"gelus", &recognise_gelu},
    {"gated_units", &recognise_glu},
    {"rotary_embeddings", &recognise_rotary_embedding},
    {"transposed_matrices", &recognise_transposed_matrices},
    {"attentions", &recognise_attention},
    {"grouped_attentions", &recognise_grouped_attention},
    {"attentions_of_rows", &recognise_attention_of_rows},
};

}  // namespace

Result<Counts> recognise_compositions(Graph& graph, const PassContext& context) {
    Counts counts;
    for (const Composition& c : kCompositions) counts[std::string(c.count)] = 0;
    Patterns patterns(graph);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        for (const Composition& c : kCompositions) {
            HR_ASSIGN(const bool found, c.recognise(patterns, static_cast<NodeId>(i)));
            if (found) ++counts[std::string(c.count)];
        }
    HR_TRY(eliminate_dead_code(graph, context));
    return counts;
}

}  // namespace headrace
