#include "passes/pattern.h"

namespace headrace {
namespace {

/// x · sigmoid(x).
Result<bool> recognize_silu(Patterns& p, NodeId at) {
    const Node& node = p.graph().node(at);
    if (!is(node, "mul")) return false;
    for (const auto& [x, gate] : Patterns::both_ways(node)) {
        const Node* sigmoid = p.producer(gate, "sigmoid");
        if (sigmoid && sigmoid->inputs[0] == x) return p.replace(at, "silu", {x}, {});
    }
    return false;
}

/// activation(gate) · x, where nothing else reads the activation.
Result<bool> recognize_glu(Patterns& p, NodeId at) {
    const Node& node = p.graph().node(at);
    if (!is(node, "mul") || p.type(node.inputs[0]) != p.type(node.inputs[1])) return false;
    for (const auto& [activated, x] : Patterns::both_ways(node))
        for (const OpName activation :
             std::initializer_list<OpName>{"silu", "gelu", "gelu_tanh", "sigmoid"}) {
            const Node* gate = p.producer(activated, activation);
            if (gate && p.is_used_once(activated))
                return p.replace(at, "glu", {gate->inputs[0], x},
                                 {{"activation", std::string(std::string_view(activation))}});
        }
    return false;
}

}  // namespace

Compositions recognize_glu_compositions() {
    return {{.name = "silus", .recognize = &recognize_silu},
            // x · sigmoid(x) is no gated unit.
            {.name = "gated_units", .recognize = &recognize_glu, .after = {"rms_norms", "silus", "gelus"}}};
}

}  // namespace headrace
