#include "doors/onnx/ops/gpt_steps.h"
#include "doors/onnx/ops/loops.h"
#include "doors/onnx/reading/numbers.h"

/// Whole generations in one operator: a loop whose body is the decoder.
namespace headrace::onnx {
namespace {

/// The token of the largest score after each sequence, until each has ended or is as long as it may be.
Operand greedy_search(OpWriter& g, const Node& node) {
    const GptSteps decoder(g, node, node.optional(6), 1);
    const TokenRules rules = TokenRules::of(g, node, 2, 3);
    const Shape sizes = g.shape(decoder.prompts());
    const LengthLimit limit(g, node, sizes.at(1));
    const std::int64_t pad = node.integer("pad_token_id");
    const auto step = [&](Body& body, const Operand& number, const std::vector<Operand>& carried) {
        const Operand &sequences = carried.at(0), &ended = carried.at(1);
        const GptSteps::Step made = decoder.step(body, {carried.begin() + 2, carried.end()});
        const Operand scores = rules.ruled(body, made.logits, sequences, number);
        Operand token = body.op("arg_max", {scores}, {{"axis", 1}, {"output_data_type", DType::i32}});
        const Operand ends = body.op("equal", {token, known(rules.end, ElementType::i32)});
        const Operand has_ended = body.op("logical_or", {ended, ends});
        token = body.op("where", {has_ended, known(pad, ElementType::i32), token});
        token = body.reshape(token, {sizes.at(0), 1});
        Iteration next{body.op("logical_not", {all_are(body, has_ended)}),
                       {body.concat({sequences, token}, 1), has_ended},
                       {}};
        const std::vector<Operand> own = decoder.next(body, made, token, nullptr);
        next.next.insert(next.next.end(), own.begin(), own.end());
        return next;
    };
    std::vector<Operand> first{decoder.prompts(), g.filled(0, ElementType::boolean, {sizes.at(0)})};
    first.insert(first.end(), decoder.first().begin(), decoder.first().end());
    return filled_up(g, repeat(g, limit.left, nullptr, first, step).at(0), limit.length, pad);
}

}  // namespace

std::span<const Operator> generation_operators() {
    static const Operator kOperators[] = {
        {"GreedySearch", 1, greedy_search,
         "2..7 -> 1, decoder graph, decoder_start_token_id int, encoder graph, eos_token_id int, "
         "init_decoder "
         "graph, model_type int, no_repeat_ngram_size int, pad_token_id int, vocab_size int",
         kMicrosoft}};
    return kOperators;
}

}  // namespace headrace::onnx
