#include "doors/onnx/ops/encoder_decoder_steps.h"

#include "doors/onnx/reading/numbers.h"

namespace headrace::onnx {
namespace {

constexpr ElementType kTokens = ElementType::i32;

/// Where the parts of a decoder's inputs stand.
struct DecoderForm {
    DecoderForm(const GraphMessage& decoder, bool has_mask) {
        const auto& inputs = decoder.inputs;
        const std::size_t outputs = decoder.outputs.size();
        sees_states = !has_mask || (inputs.size() > 2 && inputs[2].name == "encoder_hidden_states");
        own = outputs < 3 ? 0 : outputs - 1;
        const std::size_t all = 1 + (has_mask ? 1 : 0) + (sees_states ? 1 : 0) + 2 * own;
        refuse_if(
            own > 0 && (inputs.size() == all + 1 || inputs.size() == all + 3),
            "its decoder writes into caches that are as long as they will be, which ONNX Runtime does on "
            "GPUs only");
        invalid_if(own == 0 || own % 2 != 0 || inputs.size() != all,
                   "its decoder has {} inputs and {} outputs; (input_ids, {}{}past_key_self_0, "
                   "past_value_self_0, ..., past_key_cross_0, past_value_cross_0, ...) and (logits, "
                   "present_key_self_0, present_value_self_0, ...) are right",
                   inputs.size(), outputs, has_mask ? "encoder_attention_mask, " : "",
                   sees_states ? "encoder_hidden_states, " : "");
        const TypeMessage& ids = inputs[0].type;
        takes_all = ids.shape.size() != 2 || ids.shape[1].size != 1;
    }

    bool sees_states, takes_all;
    std::size_t own;  ///< caches of the decoder's tokens; as many are the encoder's
};

/// Caches whose lengths belong together, which a loop does not know of what it carries.
std::vector<Operand> of_one_length(OpWriter& g, std::span<const Operand> caches) {
    const Dim length = g.shape(caches[0]).at(2);
    std::vector<Operand> same;
    for (const Operand& x : caches) {
        Shape shape = g.shape(x);
        shape.at(2) = length;
        same.push_back(g.reshape(x, shape));
    }
    return same;
}

/// The graph's results, with what it takes.
std::vector<Operand> encoded(OpWriter& g, const Node& node, const EncoderDecoderSteps::Given& given,
                             std::size_t caches) {
    const auto encoder = graph_of(node, "encoder");
    const std::size_t inputs = encoder->graph.inputs.size(), outputs = encoder->graph.outputs.size();
    const bool begins = outputs == 2 + 2 * caches;
    std::vector<Operand> operands{given.source};
    if (given.mask) operands.push_back(given.mask);
    if (begins) operands.push_back(given.begun);
    const std::string_view source =
        given.mask ? "encoder_input_ids, encoder_attention_mask" : "encoder_input_ids";
    const std::string alone =
        given.mask ? fmt::format("({}) and ({} caches of the cross attention), or ", source, caches) : "";
    invalid_if(inputs != operands.size() || (!begins && (outputs != caches || !given.mask)),
               "its encoder has {} inputs and {} outputs; {}({}, decoder_input_ids) and (logits, "
               "encoder_hidden_states, {} caches) are right",
               inputs, outputs, alone, source, 2 * caches);
    std::vector<Operand> made = made_by(g, *encoder, operands);
    for (std::size_t i = begins ? 2 : 0; i < made.size(); ++i)
        invalid_if(g.rank(made[i]) != 4, "output {} of its encoder, a cache, has {} dimensions, not 4", i,
                   g.rank(made[i]));
    invalid_if(begins && g.rank(made[1]) != 3,
               "output 1 of its encoder, encoder_hidden_states, has {} dimensions, not 3", g.rank(made[1]));
    return made;
}

}  // namespace

EncoderDecoderSteps::EncoderDecoderSteps(OpWriter& g, const Node& node, const Given& given, const Dim& rows)
    : DecoderSteps(node), decoder_(graph_of(node, "decoder")) {
    const DecoderForm form(decoder_->graph, given.mask != nullptr);
    takes_all_ = form.takes_all;
    prompts_ = with_rows_repeated(g, given.begun, rows);
    std::vector<Operand> made = encoded(g, node, given, form.own);
    const bool begins = made.size() > form.own;
    if (begins) made[0] = last_logits(g, made[0]);
    for (Operand& x : made) x = with_rows_repeated(g, x, rows);
    if (given.mask) source_.push_back(with_rows_repeated(g, given.mask, rows));
    if (form.sees_states) {
        refuse_if(!begins, "its decoder takes encoder_hidden_states, which its encoder does not give");
        source_.push_back(made[1]);
    }
    const auto cross = made.end() - static_cast<std::ptrdiff_t>(form.own);
    cross_ = of_one_length(g, {cross, made.end()});
    if (!begins) return;
    begun_ = Step{made[0], {prompts_}};
    begun_->kept.insert(begun_->kept.end(), made.begin() + 2, cross);
}

std::vector<Operand> EncoderDecoderSteps::first(OpWriter& g) const {
    std::vector<Operand> first{prompts_};
    for (const Operand& x : cross_) {
        Shape empty = g.shape(x);
        empty[2] = 0;
        first.push_back(g.filled(0, x->type, empty));
    }
    return first;
}

EncoderDecoderSteps::Step EncoderDecoderSteps::step(OpWriter& g, const std::vector<Operand>& carried) const {
    const std::vector<Operand> own = of_one_length(g, std::span(carried).subspan(1));
    std::vector<Operand> given{carried.at(0)};
    for (const std::vector<Operand>* part : {&source_, &own, &cross_})
        given.insert(given.end(), part->begin(), part->end());
    const std::vector<Operand> made = made_by(g, *decoder_, given);
    Step step{last_logits(g, made.at(0)), {carried[0]}};
    step.kept.insert(step.kept.end(), made.begin() + 1, made.end());
    return step;
}

std::vector<Operand> EncoderDecoderSteps::next(OpWriter& g, const Step& step, const Operand& tokens,
                                               const Operand& rows) const {
    const auto going_on = [&](const Operand& x) {
        return rows ? g.op("gather", {x, rows}, {{"axis", 0}}) : x;
    };
    std::vector<Operand> next{takes_all_ ? g.concat({going_on(step.kept.at(0)), tokens}, 1) : tokens};
    for (const Operand& x : std::span(step.kept).subspan(1)) next.push_back(going_on(x));
    return next;
}

EncoderDecoderSteps::Given text_given(OpWriter& g, const Node& node, const Operand& given_mask) {
    const Operand ids = text_tokens(g, node);
    const Shape sizes = g.shape(ids);
    const std::int64_t start = node.integer("decoder_start_token_id", -1);
    invalid_if(start < 0, "decoder_start_token_id is {}; at least 0 is right", start);
    Operand mask;
    if (given_mask) {
        mask = g.reshape(g.cast(given_mask, kTokens), sizes);
    } else {  // padding behind the first token of a text counts, as ONNX Runtime has it
        const Operand pad = known(node.integer("pad_token_id"), kTokens);
        const Operand is_real = g.cast(g.op("not_equal", {ids, pad}), kTokens);
        const Operand so_far = g.op("cumulative_sum", {is_real}, {{"axis", 1}});
        mask = g.cast(g.op("greater", {so_far, known(0, kTokens)}), kTokens);
    }
    return {ids, mask, g.filled(static_cast<double>(start), kTokens, {sizes[0], 1})};
}

EncoderDecoderSteps::Given sound_given(OpWriter& g, const Node& node, const Operand& begun) {
    invalid_if(!begun, "decoder_input_ids (input 10) is missing");
    invalid_if(g.rank(node.x()) != 3 || g.rank(begun) != 2,
               "the features (input 0) have {} dimensions and decoder_input_ids (input 10) {}; 3 and 2 are "
               "right",
               g.rank(node.x()), g.rank(begun));
    return {node.x(), nullptr, g.cast(begun, kTokens)};
}

}  // namespace headrace::onnx
