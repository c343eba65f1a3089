#pragma once
#include "doors/onnx/ops/decoder_steps.h"

namespace headrace::onnx {

/// A model with an encoder, like T5 or Whisper. The encoder's graph is (encoder_input_ids,
/// [encoder_attention_mask], [decoder_input_ids]); it gives the caches of the cross attention, and with
/// decoder_input_ids before them (logits, encoder_hidden_states, the caches of these). The decoder's graph is
/// (input_ids, [encoder_attention_mask], [encoder_hidden_states], own caches, those of the cross attention)
/// and gives (logits, own caches). Caches are [rows, heads, length, width].
class EncoderDecoderSteps : public DecoderSteps {
public:
    struct Given {
        Operand source;  ///< tokens [batch, length], or features of a sound [batch, features, frames]
        Operand mask;    ///< [batch, length]; null for sounds
        Operand begun;   ///< what the decoder's sequences begin with, [batch, length]
    };

    /// rows: how many sequences each prompt is continued by.
    EncoderDecoderSteps(OpWriter& g, const Node& node, const Given& given, const Dim& rows);

    std::optional<Step> apart(OpWriter&) const override { return begun_; }
    std::vector<Operand> first(OpWriter& g) const override;
    Step step(OpWriter& g, const std::vector<Operand>& carried) const override;
    std::vector<Operand> next(OpWriter& g, const Step& step, const Operand& tokens,
                              const Operand& rows) const override;

private:
    std::shared_ptr<const Branch> decoder_;
    bool takes_all_ = false;  ///< the decoder takes whole sequences, not their last tokens
    std::vector<Operand> source_,
        cross_;                  ///< what the decoder takes of the encoder, before and behind its caches
    std::optional<Step> begun_;  ///< made by the encoder's graph
};

/// What a text's encoder takes: the tokens of input 0, a mask of those that count, and one token to begin
/// with.
EncoderDecoderSteps::Given text_given(OpWriter& g, const Node& node, const Operand& given_mask);
/// What a sound's takes; begun: the tokens to begin with.
EncoderDecoderSteps::Given sound_given(OpWriter& g, const Node& node, const Operand& begun);

}  // namespace headrace::onnx
