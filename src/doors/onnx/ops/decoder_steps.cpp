#include "doors/onnx/ops/decoder_steps.h"

#include "doors/onnx/ops/loops.h"
#include "doors/onnx/reading/numbers.h"

/// What generations of all kinds of models have in common.
namespace headrace::onnx {

DecoderSteps::DecoderSteps(const Node& node) {
    if (const std::int64_t size = node.integer("vocab_size", -1); size > 0) vocabulary_ = size;
}

Operand DecoderSteps::last_logits(OpWriter& g, const Operand& logits) const {
    const Shape found = g.shape(logits);
    invalid_if(found.size() != 3, "its decoder's logits have {} dimensions, not 3", found.size());
    Operand last = g.reshape(g.cut(logits, 1, found[1] - Dim(1), 1), {found[0], found[2]});
    if (vocabulary_) last = g.cut(last, 1, 0, *vocabulary_);
    return g.cast(last, ElementType::f32);
}

std::vector<Operand> generated(OpWriter& g, const DecoderSteps& decoder, const Operand& most,
                               const std::vector<Operand>& search, const Choose& choose) {
    const std::size_t own = search.size();
    const auto behind = [&](OpWriter& into, const Operand& number, const DecoderSteps::Step& made,
                            const std::vector<Operand>& before) {
        Choice choice = choose(into, number, made.logits, before);
        Iteration next{choice.goes_on, std::move(choice.search), std::move(choice.shown)};
        const std::vector<Operand> rest = decoder.next(into, made, choice.tokens, choice.rows);
        next.next.insert(next.next.end(), rest.begin(), rest.end());
        return next;
    };
    const std::optional<DecoderSteps::Step> apart = decoder.apart(g);
    const auto body = [&](Body& into, const Operand& number, const std::vector<Operand>& carried) {
        const auto rest = carried.begin() + static_cast<std::ptrdiff_t>(own);
        return behind(into, apart ? into.plus(number, 1.0) : number,
                      decoder.step(into, {rest, carried.end()}), {carried.begin(), rest});
    };
    Iteration begun{nullptr, search, {}};
    if (apart) {
        begun = behind(g, known(0, ElementType::i64), *apart, search);
    } else {
        const std::vector<Operand> first = decoder.first(g);
        begun.next.insert(begun.next.end(), first.begin(), first.end());
    }
    std::vector<Operand> last = repeat(g, apart ? g.plus(most, -1.0) : most, begun.goes_on, begun.next, body);
    last.erase(last.begin() + static_cast<std::ptrdiff_t>(own),
               last.begin() + static_cast<std::ptrdiff_t>(begun.next.size()));
    for (std::size_t i = 0; i < begun.collected.size(); ++i) {
        Shape one = g.shape(begun.collected[i]);
        one.insert(one.begin(), 1);
        last[own + i] = g.concat({g.reshape(begun.collected[i], one), last[own + i]}, 0);
    }
    return last;
}

LengthLimit::LengthLimit(OpWriter& g, const Node& node, const Dim& prompt) {
    const Shape told = extents_of(g, g.reshape(g.cast(node.operand(1), ElementType::i64), {1}));
    length = told.at(0);
    invalid_if(!length.is_symbolic() && !prompt.is_symbolic() && length.size() <= prompt.size(),
               "max_length (input 1) is {}; the prompt has {} tokens already", length.size(), prompt.size());
    const Operand least = g.at_run_time(Item(length), ElementType::i64);
    left = g.op("sub", {least, g.at_run_time(Item(prompt), ElementType::i64)});
    if (!is_known(left))
        left = checked_numbers(g, left, "by how many tokens max_length is longer than the prompt", 1);
}

Operand all_are(OpWriter& g, const Operand& truths) {
    const Operand numbers = g.reshape(g.cast(truths, ElementType::f32), {g.size(truths)});
    return g.cast(g.op("reduce_min", {numbers}, {{"axes", std::vector<std::int64_t>{0}}}),
                  ElementType::boolean);
}

Operand filled_up(OpWriter& g, const Operand& lines, int axis, const Dim& limit, double filler) {
    Shape rest = g.shape(lines), whole = rest;
    const auto at = static_cast<std::size_t>(axis);
    rest.at(at) = g.at_least_0(limit - rest[at]);
    whole[at] = limit;
    return g.reshape(g.concat({lines, g.filled(filler, lines->type, rest)}, axis), whole);
}

Operand text_tokens(OpWriter& g, const Node& node) {
    const int rank = g.rank(node.x());
    invalid_if(rank != 2, "input_ids (input 0) has {} dimensions, not 2", rank);
    return g.cast(node.x(), ElementType::i32);
}

std::shared_ptr<const Branch> graph_of(const Node& node, std::string_view name) {
    auto graph = node.branch(name);
    invalid_if(!graph, "attribute '{}' is missing", name);
    return graph;
}

std::vector<Operand> made_by(OpWriter& g, const Branch& graph, const std::vector<Operand>& given) {
    return tensors_of(g.shared().branches.read_branch(g, graph, values_of(given)), "result");
}

}  // namespace headrace::onnx
