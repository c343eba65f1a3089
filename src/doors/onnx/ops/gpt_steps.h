#pragma once
#include "doors/onnx/ops/token_rules.h"

namespace headrace::onnx {

/// A decoder as ONNX Runtime's generations have it as an attribute, and what it carries from a token to the
/// next.
class GptSteps {
public:
    /// rows: how many sequences each prompt is continued by.
    GptSteps(OpWriter& g, const Node& node, const Operand& given_mask, std::int64_t rows);

    struct Step {
        Operand logits;             ///< [rows, vocabulary], of the token that follows
        std::vector<Operand> kept;  ///< of all that is carried, what the tokens do not decide
    };

    /// The prompts [rows, length], i32.
    const Operand& prompts() const { return prompts_; }
    /// What is carried at first.
    const std::vector<Operand>& first() const { return first_; }
    Step step(OpWriter& g, const std::vector<Operand>& carried) const;
    /// What is carried after a step whose tokens [rows, 1] are chosen. chosen: the rows that go on, or null
    /// where all do.
    std::vector<Operand> next(OpWriter& g, const Step& step, const Operand& tokens,
                              const Operand& chosen) const;

private:
    std::shared_ptr<const Branch> decoder_;
    std::optional<std::int64_t> vocabulary_;
    Operand prompts_;
    std::vector<Operand> first_;
};

/// The largest number of tokens of a sequence, an input of one element, and how many a prompt is short of it.
struct LengthLimit {
    LengthLimit(OpWriter& g, const Node& node, const Dim& prompt);
    Dim length;
    Operand left;  ///< a scalar, i64
};

/// Whether all of the truth values are true.
Operand all_are(OpWriter& g, const Operand& truths);
/// Sequences [..., length], with `filler` up to the limit.
Operand filled_up(OpWriter& g, const Operand& sequences, const Dim& limit, std::int64_t filler);

}  // namespace headrace::onnx
