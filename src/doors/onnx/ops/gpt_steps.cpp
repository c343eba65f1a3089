#include "doors/onnx/ops/gpt_steps.h"

#include "doors/onnx/reading/numbers.h"

/// Steps of a decoder like GPT-2, a graph of (input_ids, position_ids, attention_mask, past_0, ...) that
/// gives (logits, present_0, ...).
namespace headrace::onnx {
namespace {

constexpr std::size_t kPasts = 3;  ///< the first input of the decoder that is a cache
constexpr ElementType kToken = ElementType::i32;

std::shared_ptr<const Branch> decoder_of(const Node& node) {
    auto decoder = node.branch("decoder");
    invalid_if(!decoder, "attribute 'decoder' is missing");
    const std::size_t inputs = decoder->graph.inputs.size(), outputs = decoder->graph.outputs.size();
    refuse_if(
        inputs == outputs + 3 || inputs == outputs + 4,
        "its decoder writes into caches that are as long as they will be, which ONNX Runtime does on GPUs "
        "only");
    invalid_if(
        outputs < 2 || inputs != outputs + 2,
        "its decoder has {} inputs and {} outputs; (input_ids, position_ids, attention_mask, past_0, ...) "
        "and (logits, present_0, ...) are right",
        inputs, outputs);
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

GptSteps::GptSteps(OpWriter& g, const Node& node, const Operand& given_mask, std::int64_t rows)
    : decoder_(decoder_of(node)) {
    refuse_if(node.has("init_decoder"), "it has a decoder of its own for the first step (init_decoder)");
    refuse_if(node.integer("model_type", 0) != 0, "model_type is {}: decoders alone (0, like GPT-2) are read",
              node.integer("model_type", 0));
    if (const std::int64_t size = node.integer("vocab_size", -1); size > 0) vocabulary_ = size;
    const Operand ids = g.cast(node.x(), kToken);
    const Shape sizes = g.shape(ids);
    invalid_if(sizes.size() != 2, "input_ids (input 0) has {} dimensions, not 2", sizes.size());
    const Operand is_real =
        g.cast(g.op("not_equal", {ids, known(node.integer("pad_token_id"), kToken)}), kToken);
    const Operand before = g.op("cumulative_sum", {is_real}, {{"axis", 1}, {"exclusive", true}});
    const Operand places = g.op("mul", {before, is_real});
    const Operand count = g.op("reduce_sum", {is_real}, {{"axes", std::vector<std::int64_t>{1}}});
    const Operand mask = given_mask ? g.reshape(g.cast(given_mask, kToken), sizes) : is_real;
    prompts_ = with_rows_repeated(g, ids, rows);
    first_ = {prompts_, with_rows_repeated(g, places, rows), with_rows_repeated(g, mask, rows),
              with_rows_repeated(g, g.reshape(count, {sizes[0], 1}), rows)};
    const Dim all = sizes[0] * Dim(rows);
    const std::span inputs(decoder_->graph.inputs);
    for (const ValueMessage& input : inputs.subspan(kPasts)) first_.push_back(empty_cache(g, input, all));
}

GptSteps::Step GptSteps::step(OpWriter& g, const std::vector<Operand>& carried) const {
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
    const std::vector<Operand> made =
        tensors_of(g.shared().branches.read_branch(g, *decoder_, values_of(given)), "result");
    Operand logits = made.at(0);
    const Shape found = g.shape(logits);
    invalid_if(found.size() != 3, "its decoder's logits have {} dimensions, not 3", found.size());
    logits = g.reshape(g.cut(logits, 1, found[1] - Dim(1), 1), {found[0], found[2]});
    if (vocabulary_) logits = g.cut(logits, 1, 0, *vocabulary_);
    Step step{g.cast(logits, ElementType::f32), {mask, count}};
    step.kept.insert(step.kept.end(), made.begin() + 1, made.end());
    return step;
}

std::vector<Operand> GptSteps::next(OpWriter& g, const Step& step, const Operand& tokens,
                                    const Operand& chosen) const {
    const Operand &mask = step.kept.at(0), &count = step.kept.at(1);
    const Operand seen = g.filled(1, kToken, {g.shape(mask).at(0), 1});
    std::vector<Operand> next{tokens, count, g.concat({mask, seen}, 1), g.plus(count, 1.0)};
    for (std::size_t i = 2; i < step.kept.size(); ++i) {
        const Operand& x = step.kept[i];
        next.push_back(chosen ? g.op("gather", {x, chosen}, {{"axis", 1}}) : x);
    }
    return next;
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

Operand filled_up(OpWriter& g, const Operand& sequences, const Dim& limit, std::int64_t filler) {
    Shape rest = g.shape(sequences), whole = rest;
    rest.back() = g.at_least_0(limit - rest.back());
    whole.back() = limit;
    const Operand fill = g.filled(static_cast<double>(filler), sequences->type, rest);
    return g.reshape(g.concat({sequences, fill}, static_cast<int>(rest.size()) - 1), whole);
}

}  // namespace headrace::onnx
