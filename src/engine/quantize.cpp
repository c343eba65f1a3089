#include "engine/quantize.h"

#include <set>
#include <string_view>

#include "passes/pipeline.h"

namespace headrace {
namespace {

/// quantize_weights, and what leaves a product's matrix as a constant beside it.
const std::set<std::string_view> kNeeded{
    "eliminate_dead_code", "eliminate_no_ops", "absorb_transposed_weights",
    "promote_half_floats", "fold_constants",   "quantize_weights"};

}  // namespace

BlockFormat block_format(WeightFormat format) {
    switch (format) {
        case WeightFormat::q8_0: return BlockFormat::q8_0;
        case WeightFormat::q4_0: return BlockFormat::q4_0;
        default: return BlockFormat::plain;
    }
}

Result<Graph> quantize_graph(Graph graph, WeightFormat format) {
    PassOptions options;
    options.context.weights = block_format(format);
    for (const Pass& pass : all_passes())
        if (!kNeeded.contains(pass.name)) options.disabled.emplace(pass.name);
    HR_TRY(run_passes(graph, options));
    return graph;
}

}  // namespace headrace
