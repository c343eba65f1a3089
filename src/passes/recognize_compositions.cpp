#include "passes/eliminate_dead_code.h"
#include "passes/order.h"
#include "passes/pass.h"
#include "passes/pattern.h"

#include "composition_includes.inc"

namespace headrace {
namespace {

Compositions found_compositions() {
    Compositions all;
    for (Compositions found : {
#include "composition_rows.inc"
         })
        all.insert(all.end(), found.begin(), found.end());
    return all;
}

/// Puts one node in the place of those that spell it out: rms_norm, silu, glu, rotary_embedding, attention,
/// and attention over heads that were repeated for it.
Result<Counts> recognize_compositions(Graph& graph, const PassContext& context) {
    static const Compositions compositions = ordered(found_compositions(), "composition").value();
    Counts counts;
    for (const Composition& c : compositions) counts[std::string(c.name)] = 0;
    Patterns patterns(graph);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        for (const Composition& c : compositions) {
            HR_ASSIGN(const bool found, c.recognize(patterns, static_cast<NodeId>(i)));
            if (found) ++counts[std::string(c.name)];
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
