#pragma once
#include <functional>

#include "doors/onnx/ops/token_rules.h"

namespace headrace::onnx {

/// A decoder as ONNX Runtime's generations have it as an attribute, and what it carries from a token to the
/// next.
class DecoderSteps {
public:
    virtual ~DecoderSteps() = default;

    struct Step {
        Operand logits;             ///< [rows, vocabulary], f32, of the token that follows
        std::vector<Operand> kept;  ///< of all that is carried, what the tokens do not decide
    };

    /// What each sequence begins with, [rows, length], i32: as many rows as there are beams.
    const Operand& prompts() const { return prompts_; }
    /// The step behind the prompts, where another graph than the decoder makes it; else none.
    virtual std::optional<Step> apart(OpWriter& g) const = 0;
    /// What the decoder's first step takes, where none is apart.
    virtual std::vector<Operand> first(OpWriter& g) const = 0;
    virtual Step step(OpWriter& g, const std::vector<Operand>& carried) const = 0;
    /// What the next step takes once tokens [rows, 1] are chosen. rows: those that go on, or null where all
    /// do.
    virtual std::vector<Operand> next(OpWriter& g, const Step& step, const Operand& tokens,
                                      const Operand& rows) const = 0;

protected:
    explicit DecoderSteps(const Node& node);
    /// The last token's logits of those that a graph made, [rows, length, vocabulary].
    Operand last_logits(OpWriter& g, const Operand& logits) const;

    std::optional<std::int64_t> vocabulary_;  ///< where the node tells it
    Operand prompts_;
};

/// What a search goes on with behind a step.
struct Choice {
    Operand goes_on;
    std::vector<Operand> search;  ///< what the search itself carries
    Operand tokens, rows;         ///< DecoderSteps::next's
    std::vector<Operand> shown;   ///< what results put side by side
};
/// Chooses of the logits that step `number` made.
using Choose = std::function<Choice(OpWriter& g, const Operand& number, const Operand& logits,
                                    const std::vector<Operand>& search)>;

/// A loop of at most `most` steps, at least 1: what the search carries at last, and then what was shown,
/// [steps, ...].
std::vector<Operand> generated(OpWriter& g, const DecoderSteps& decoder, const Operand& most,
                               const std::vector<Operand>& search, const Choose& choose);

/// The largest number of tokens of a sequence, an input of one element, and how many a prompt is short of it.
struct LengthLimit {
    LengthLimit(OpWriter& g, const Node& node, const Dim& prompt);
    Dim length;
    Operand left;  ///< a scalar, i64
};

/// Whether all of the truth values are true.
Operand all_are(OpWriter& g, const Operand& truths);
/// Lines of an axis, with `filler` behind them up to the limit.
Operand filled_up(OpWriter& g, const Operand& lines, int axis, const Dim& limit, double filler);
/// The texts that are given to continue or to encode, input 0: tokens [batch, length], i32.
Operand text_tokens(OpWriter& g, const Node& node);
/// A graph that is an attribute; Invalid where it is missing.
std::shared_ptr<const Branch> graph_of(const Node& node, std::string_view name);
/// What a graph makes of tensors.
std::vector<Operand> made_by(OpWriter& g, const Branch& graph, const std::vector<Operand>& given);

}  // namespace headrace::onnx
