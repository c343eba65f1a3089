#include "doors/onnx/ops/gpt_steps.h"

#include "doors/onnx/reading/numbers.h"

namespace headrace::onnx {
namespace {

constexpr std::size_t kPasts = 3;  ///< the first input of the decoder that is a cache
constexpr ElementType kToken = ElementType::i32;

std::shared_ptr<const Branch> decoder_of(const Node& node, std::string_view name) {
    auto decoder = graph_of(node, name);
    const std::size_t inputs = decoder->graph.inputs.size(), outputs = decoder->graph.outputs.size();
    refuse_if(
        inputs == outputs + 3 || inputs == outputs + 4,
        "its decoder writes into caches that are as long as they will be, which ONNX Runtime does on GPUs "
        "only");
    invalid_if(outputs < 2 || inputs != outputs + 2,
               "its {} has {} inputs and {} outputs; (input_ids, position_ids, attention_mask, past_0, ...) "
               "and (logits, present_0, ...) are right",
               name, inputs, outputs);
    return decoder;
}

/// [2, rows, heads, 0, width]
Operand empty_cache(OpWriter& g, const ValueMessage& input, const Dim& rows) {
    const TypeMessage& type = input.type;
    invalid_if(
        type.shape.size() != 5 || !type.shape[2].size || !type.shape[4].size,
        "its decoder's input '{}' does not declare [2, batch, heads, length, width] with known heads and "
        "width",
        input.name);
    return g.filled(0, type_named(type.element_type, "the type of a cache"),
                    {2, rows, *type.shape[2].size, 0, *type.shape[4].size});
}

}  // namespace

GptSteps::GptSteps(OpWriter& g, const Node& node, const Operand& given_mask, const Dim& rows)
    : DecoderSteps(node), decoder_(decoder_of(node, "decoder")) {
    if (node.has("init_decoder")) {
        prompts_decoder_ = decoder_of(node, "init_decoder");
        invalid_if(prompts_decoder_->graph.inputs.size() != decoder_->graph.inputs.size(),
                   "its init_decoder has {} inputs and its decoder {}; as many are right",
                   prompts_decoder_->graph.inputs.size(), decoder_->graph.inputs.size());
    }
    const Operand ids = text_tokens(g, node);
    const Shape sizes = g.shape(ids);
    const Operand is_real =
        g.cast(g.op("not_equal", {ids, known(node.integer("pad_token_id"), kToken)}), kToken);
    const Operand before = g.op("cumulative_sum", {is_real}, {{"axis", 1}, {"exclusive", true}});
    const Operand places = g.op("mul", {before, is_real});
    const Operand count = g.op("reduce_sum", {is_real}, {{"axes", std::vector<std::int64_t>{1}}});
    const Operand mask = given_mask ? g.reshape(g.cast(given_mask, kToken), sizes) : is_real;
    prompts_ = with_rows_repeated(g, ids, rows);
    first_ = {prompts_, with_rows_repeated(g, places, rows), with_rows_repeated(g, mask, rows),
              with_rows_repeated(g, g.reshape(count, {sizes[0], 1}), rows)};
    const Dim all = sizes[0] * rows;
    const std::span inputs(decoder_->graph.inputs);
    for (const ValueMessage& input : inputs.subspan(kPasts)) first_.push_back(empty_cache(g, input, all));
}

std::optional<GptSteps::Step> GptSteps::apart(OpWriter& g) const {
    if (!prompts_decoder_) return std::nullopt;
    return step_of(g, *prompts_decoder_, first_);
}

GptSteps::Step GptSteps::step(OpWriter& g, const std::vector<Operand>& carried) const {
    return step_of(g, *decoder_, carried);
}

GptSteps::Step GptSteps::step_of(OpWriter& g, const Branch& graph,
                                 const std::vector<Operand>& carried) const {
    const Operand &ids = carried.at(0), &count = carried.at(3);
    std::vector<Operand> pasts(carried.begin() + 4, carried.end());
    // What a loop carries has extents of its own; these belong together.
    const Shape sizes = g.shape(ids);
    const Dim past = g.shape(pasts.at(0)).at(3);
    for (Operand& x : pasts) {
        Shape shape = g.shape(x);
        shape.at(3) = past;
        x = g.reshape(x, shape);
    }
    std::vector<Operand> given{ids, g.reshape(carried.at(1), sizes),
                               g.reshape(carried.at(2), {sizes.at(0), past + sizes.at(1)})};
    const Operand mask = given.back();
    given.insert(given.end(), pasts.begin(), pasts.end());
    const std::vector<Operand> made = made_by(g, graph, given);
    Step step{last_logits(g, made.at(0)), {mask, count}};
    step.kept.insert(step.kept.end(), made.begin() + 1, made.end());
    return step;
}

std::vector<Operand> GptSteps::next(OpWriter& g, const Step& step, const Operand& tokens,
                                    const Operand& rows) const {
    const Operand &mask = step.kept.at(0), &count = step.kept.at(1);
    const Operand seen = g.filled(1, kToken, {g.shape(mask).at(0), 1});
    std::vector<Operand> next{tokens, count, g.concat({mask, seen}, 1), g.plus(count, 1.0)};
    for (std::size_t i = 2; i < step.kept.size(); ++i) {
        const Operand& x = step.kept[i];
        next.push_back(rows ? g.op("gather", {x, rows}, {{"axis", 1}}) : x);
    }
    return next;
}

}  // namespace headrace::onnx
