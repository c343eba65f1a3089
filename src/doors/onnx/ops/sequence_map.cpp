#include "doors/onnx/ops/sequence_loops.h"
#include "doors/onnx/ops/sequence_places.h"
#include "doors/onnx/reading/operators.h"

/// SequenceMap: a graph for each tensor of sequences.
namespace headrace::onnx {
namespace {

/// The type of an empty sequence of a result's.
ElementType declared_element(const Branch& branch, std::size_t result) {
    return element_type(branch.graph.outputs[result].type.element_type).value_or(ElementType::f32);
}

/// What the graph gives of tensor `number` of each sequence.
std::vector<Operand> mapped(OpWriter& into, const Node& node, const Branch& branch, const Operand& number) {
    Values inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const Value x = node.value(i);
        inputs.push_back(is_list(x) ? Value(item_at(into, x, number)) : x);
    }
    return tensors_of(into.shared().branches.read_branch(into, branch, inputs), "result");
}

/// The map over sequences whose length only a run tells: a loop that appends to its results.
Values mapped_at_run_time(OpWriter& g, const Node& node, const Branch& branch) {
    Values results;
    for (std::size_t i = 0; i < branch.graph.outputs.size(); ++i)
        results.push_back(sequence_of({}, declared_element(branch, i)));
    const auto read = [&](OpWriter& into, const Operand& number, const Values& carried) {
        const std::vector<Operand> made = mapped(into, node, branch, number);
        Round round{known(1, ElementType::boolean), {}, {}};
        for (std::size_t i = 0; i < made.size(); ++i)
            round.next.push_back(inserted(into, carried[i], made[i], nullptr));
        return round;
    };
    const Operand count = known({Item(length_of(g, node.value(0)))}, {}, ElementType::i64);
    return repeat_at_run_time(g, {count, nullptr, {}}, results, read);
}

Values sequence_map(OpWriter& g, const Node& node) {
    const auto branch = node.branch("body");
    invalid_if(!branch, "attribute 'body' is missing");
    const Value first = node.value(0);
    invalid_if(!is_list(first), "input 0 is no sequence, but {}",
               is_missing(first) ? "missing" : kind_of(first));
    const Dim length = length_of(g, first);
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
        const Value x = node.value(i);
        invalid_if(is_list(x) && as_sequence(first) && as_sequence(x) && !is_same(length_of(g, x), length),
                   "input {} has {} tensors, and input 0 {}", i, is_list(x) ? length_of(g, x).str() : "no",
                   length.str());
    }
    if (!as_sequence(first)) return mapped_at_run_time(g, node, *branch);
    std::vector<std::vector<Operand>> collected(branch->graph.outputs.size());
    for (std::int64_t i = 0; i < length.size(); ++i) {
        const std::vector<Operand> made = mapped(g, node, *branch, known(i, ElementType::i64));
        for (std::size_t k = 0; k < made.size(); ++k) collected[k].push_back(made[k]);
    }
    Values sequences;
    for (std::size_t k = 0; k < collected.size(); ++k)
        sequences.push_back(counted_sequence(g, std::move(collected[k]), declared_element(*branch, k)));
    return sequences;
}

}  // namespace

std::span<const Operator> sequence_map_operators() {
    static const Operator kOperators[] = {{"SequenceMap", 17, sequence_map, "1.. -> 1.., body graph"}};
    return kOperators;
}

}  // namespace headrace::onnx
