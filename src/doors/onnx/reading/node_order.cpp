#include "doors/onnx/reading/node_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

namespace headrace::onnx {
namespace {

constexpr int kDeepestBody = 64;  // of bodies within one another; deeper ones are refused when they are read

using Visit = std::function<void(std::string_view name)>;

/// Calls visit for each name that the node reads, and for those in its bodies.
Status visit_read_names(const NodeMessage& node, int depth, const Visit& visit) {
    for (std::string_view name : node.inputs) visit(name);
    if (depth == kDeepestBody) return success();
    for (const AttributeMessage& attribute : node.attributes) {
        if (attribute.type != AttributeMessage::kGraph) continue;
        HR_ASSIGN(const GraphMessage body, decode_graph(attribute.graph));
        for (Bytes bytes : body.nodes) {
            HR_ASSIGN(const NodeMessage inner, decode_node(bytes));
            HR_TRY(visit_read_names(inner, depth + 1, visit));
        }
        for (const ValueMessage& result : body.outputs) visit(result.name);
    }
    return success();
}

/// The error that names one of the nodes that wait for one another. readers: of each node's results.
Error cycle_among(const std::vector<NodeMessage>& nodes, const std::vector<std::size_t>& waits_for,
                  const std::vector<std::vector<std::size_t>>& readers) {
    constexpr auto kNobody = static_cast<std::size_t>(-1);
    std::vector<std::size_t> before(nodes.size(), kNobody);  // a node for which each one waits
    std::size_t at = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (waits_for[i] == 0) continue;
        at = i;
        for (std::size_t reader : readers[i]) before[reader] = i;
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) at = before[at];  // as many steps end within a cycle
    const NodeMessage &node = nodes[at], &other = nodes[before[at]];
    const auto result_of = [](const NodeMessage& of) {
        return *std::ranges::find_if(of.outputs, [](std::string_view name) { return !name.empty(); });
    };
    return invalid(
        "the node of output '{}' ({}) waits for that of '{}' ({}), which waits for it: nodes must "
        "not be a cycle; use Loop for what repeats",
        result_of(node), node.op, result_of(other), other.op);
}

}  // namespace

Result<std::vector<Bytes>> in_order(std::span<const Bytes> nodes) {
    std::vector<NodeMessage> messages;
    std::unordered_map<std::string_view, std::size_t> computed_by;
    for (Bytes bytes : nodes) {
        HR_ASSIGN(NodeMessage message, decode_node(bytes));
        for (std::string_view name : message.outputs) computed_by.emplace(name, messages.size());
        messages.push_back(std::move(message));
    }
    computed_by.erase("");  // an operand or result that is left out

    std::vector<std::vector<std::size_t>> readers(nodes.size());
    std::vector<std::size_t> waits_for(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        HR_TRY(visit_read_names(messages[i], 0, [&](std::string_view name) {
            const auto found = computed_by.find(name);
            if (found == computed_by.end()) return;
            readers[found->second].push_back(i);
            ++waits_for[i];
        }));
    }

    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (waits_for[i] == 0) ready.push(i);
    std::vector<Bytes> ordered;
    while (!ready.empty()) {
        const std::size_t next = ready.top();
        ready.pop();
        ordered.push_back(nodes[next]);
        for (std::size_t reader : readers[next])
            if (--waits_for[reader] == 0) ready.push(reader);
    }
    if (ordered.size() < nodes.size()) return cycle_among(messages, waits_for, readers);
    return ordered;
}

}  // namespace headrace::onnx
