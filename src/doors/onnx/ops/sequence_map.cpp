#include "doors/onnx/ops/sequence_places.h"
#include "doors/onnx/reading/operators.h"

/// SequenceMap: a graph for each tensor of sequences.
namespace headrace::onnx {
namespace {

Values sequence_map(OpWriter& g, const Node& node) {
    const auto branch = node.branch("body");
    invalid_if(!branch, "attribute 'body' is missing");
    invalid_if(!is_list(node.value(0)), "input 0 is no sequence, but {}", kind_of(node.value(0)));
    const Sequence* first = as_sequence(node.value(0));
    refuse_if(!first, "the length of the sequence is known only at run time; a Loop may have it");
    std::vector<std::vector<Operand>> collected(branch->graph.outputs.size());
    for (std::size_t i = 0; i < first->items.size(); ++i) {
        Values inputs;
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
            const Value x = node.value(k);
            const Sequence* sequence = as_sequence(x);
            invalid_if(sequence && sequence->items.size() <= i, "input {} has {} tensors, and input 0 {}", k,
                       sequence ? sequence->items.size() : 0, first->items.size());
            inputs.push_back(sequence ? Value(sequence->items[i]) : x);
        }
        const auto results = tensors_of(g.shared().branches.read_branch(g, *branch, inputs), "result");
        for (std::size_t k = 0; k < results.size(); ++k) collected[k].push_back(results[k]);
    }
    Values sequences;
    for (std::size_t k = 0; k < collected.size(); ++k) {
        const auto element = element_type(branch->graph.outputs[k].type.element_type);
        sequences.push_back(counted_sequence(g, std::move(collected[k]), element.value_or(ElementType::f32)));
    }
    return sequences;
}

}  // namespace

std::span<const Operator> sequence_map_operators() {
    static const Operator kOperators[] = {{"SequenceMap", 17, sequence_map}};
    return kOperators;
}

}  // namespace headrace::onnx
