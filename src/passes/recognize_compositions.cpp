#include "passes/eliminate_dead_code.h"
#include "passes/pass.h"
#include "passes/pattern.h"

namespace headrace {
namespace {

struct Composition {
    std::string_view count;
    Result<bool> (*recognize)(Patterns&, NodeId);
};

/// In this order at each node, which may be one after the other.
constexpr Composition kCompositions[] = {
    {"rms_norms", &recognize_rms_norm},
    {"silus", &recognize_silu},
    {"gelus", &recognize_gelu},
    {"gated_units", &recognize_glu},
    {"rotary_embeddings", &recognize_rotary_embedding},
    {"transposed_matrices", &recognize_transposed_matrices},
    {"attentions", &recognize_attention},
    {"grouped_attentions", &recognize_grouped_attention},
    {"attentions_of_rows", &recognize_attention_of_rows},
};

/// Puts one node in the place of those that spell it out: rms_norm, silu, glu, rotary_embedding, attention,
/// and attention over heads that were repeated for it.
Result<Counts> recognize_compositions(Graph& graph, const PassContext& context) {
    Counts counts;
    for (const Composition& c : kCompositions) counts[std::string(c.count)] = 0;
    Patterns patterns(graph);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        for (const Composition& c : kCompositions) {
            HR_ASSIGN(const bool found, c.recognize(patterns, static_cast<NodeId>(i)));
            if (found) ++counts[std::string(c.count)];
        }
    HR_TRY(eliminate_dead_code(graph, context));
    return counts;
}

}  // namespace

Pass recognize_compositions_pass() {
    // x is one value in x · f(x) by then.
    return {.name = "recognize_compositions",
            .summary = "makes one node of rms_norm, glu, rotary_embedding … spelt out",
            .run = &recognize_compositions,
            .after = {"eliminate_common_subexpressions", "fold_batch_normalization"}};
}

}  // namespace headrace
