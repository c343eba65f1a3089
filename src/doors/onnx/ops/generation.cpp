#include "doors/onnx/ops/gpt_steps.h"
#include "doors/onnx/reading/numbers.h"

/// Whole generations in one operator: a loop whose body is the decoder.
namespace headrace::onnx {
namespace {

/// The token of the largest score after each sequence, until each has ended or is as long as it may be.
Operand greedy_search(OpWriter& g, const Node& node) {
    refuse_if(node.integer("model_type", 0) != 0,
              "model_type is {}: GreedySearch is of decoders alone (0, like GPT-2), in ONNX Runtime, too",
              node.integer("model_type", 0));
    const GptSteps decoder(g, node, node.optional(6), 1);
    const TokenRules rules = TokenRules::of(g, node, 2, 3);
    const Shape sizes = g.shape(decoder.prompts());
    const LengthLimit limit(g, node, sizes.at(1));
    const std::int64_t pad = node.integer("pad_token_id");
    const auto choose = [&](OpWriter& body, const Operand& number, const Operand& logits,
                            const std::vector<Operand>& search) {
        const Operand &sequences = search.at(0), &ended = search.at(1);
        const Operand scores = rules.ruled(body, logits, sequences, number);
        Operand token = body.op("arg_max", {scores}, {{"axis", 1}, {"output_data_type", DType::i32}});
        const Operand ends = body.op("equal", {token, known(rules.end, ElementType::i32)});
        const Operand has_ended = body.op("logical_or", {ended, ends});
        token = body.op("where", {has_ended, known(pad, ElementType::i32), token});
        token = body.reshape(token, {sizes.at(0), 1});
        return Choice{body.op("logical_not", {all_are(body, has_ended)}),
                      {body.concat({sequences, token}, 1), has_ended},
                      token,
                      nullptr,
                      {}};
    };
    const std::vector<Operand> first{decoder.prompts(), g.filled(0, ElementType::boolean, {sizes.at(0)})};
    return filled_up(g, generated(g, decoder, limit.left, first, choose).at(0), 1, limit.length,
                     static_cast<double>(pad));
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
