#include "doors/onnx/reading/channel_block.h"

#include <algorithm>
#include <map>

#include "base/cpu_features.h"
#include "doors/onnx/model/source.h"

namespace headrace::onnx {
namespace {

constexpr std::int64_t kNarrow = 8, kWide = 16;

/// The only block in which a filter of so many outputs and inputs can lie; 0 where it can in both.
std::int64_t only_block(const std::vector<std::int64_t>& filter, bool is_grouped) {
    if (filter.size() != 4) return 0;
    const std::int64_t outputs = filter[0], inputs = filter[1];
    if (outputs % kWide != 0) return kNarrow;
    if (is_grouped) return inputs == 1 || inputs % kWide == 0 ? 0 : kNarrow;
    // Fewer inputs than a block has are not in blocks.
    if (inputs < kWide) return inputs > kNarrow ? kWide : 0;
    return inputs % kWide == 0 ? 0 : kNarrow;
}

bool is_grouped(const NodeMessage& node) {
    return std::ranges::any_of(node.attributes,
                               [](const auto& a) { return a.name == "group" && a.integer > 1; });
}

}  // namespace

Result<std::int64_t> channel_block(const GraphMessage& graph) {
    std::map<std::string_view, bool> filters;  // by name, whether they are of groups
    for (Bytes bytes : graph.nodes) {
        HR_ASSIGN(const NodeMessage node, decode_node(bytes));
        if (node.domain == kBlockedChannels && node.op == "Conv" && node.inputs.size() > 1)
            filters.emplace(node.inputs[1], is_grouped(node));
    }
    if (!filters.empty())
        for (Bytes bytes : graph.initializers) {
            HR_ASSIGN(const TensorMessage tensor, decode_tensor(bytes));
            const auto found = filters.find(tensor.name);
            if (found == filters.end()) continue;
            if (const std::int64_t block = only_block(tensor.dims, found->second)) return block;
        }
    return cpu_features().avx512f ? kWide : kNarrow;
}

}  // namespace headrace::onnx
