#pragma once
#include "doors/onnx/ops/decoder_steps.h"

namespace headrace::onnx {

/// A decoder like GPT-2, a graph of (input_ids, position_ids, attention_mask, past_0, ...) that gives
/// (logits, present_0, ...).
class GptSteps : public DecoderSteps {
public:
    /// rows: how many sequences each prompt is continued by.
    GptSteps(OpWriter& g, const Node& node, const Operand& given_mask, const Dim& rows);

    std::optional<Step> apart(OpWriter& g) const override;
    std::vector<Operand> first(OpWriter&) const override { return first_; }
    Step step(OpWriter& g, const std::vector<Operand>& carried) const override;
    std::vector<Operand> next(OpWriter& g, const Step& step, const Operand& tokens,
                              const Operand& rows) const override;

private:
    Step step_of(OpWriter& g, const Branch& graph, const std::vector<Operand>& carried) const;

    std::shared_ptr<const Branch> decoder_, prompts_decoder_;  ///< the latter null where there is one for all
    std::vector<Operand> first_;
};

}  // namespace headrace::onnx
