#include "doors/onnx/ops/token_rules.h"

#include <limits>

#include "doors/onnx/ops/indexing.h"
#include "doors/onnx/reading/numbers.h"

/// Rules of generations, as ONNX Runtime applies them: to the scores of all tokens before one is chosen.
namespace headrace::onnx {
namespace {

constexpr double kForbidden = std::numeric_limits<float>::lowest();

Operand forbidden_where(OpWriter& g, const Operand& condition, const Operand& scores) {
    return g.op("where", {condition, known(kForbidden, scores->type), scores});
}

/// 1 at the tokens of each row for which `marks` [rows, length] are 1: truth values [rows, vocabulary].
Operand tokens_marked(OpWriter& g, const Operand& scores, const Operand& tokens, const Operand& marks) {
    const Operand places = checked_indices(g, scores, as_indices(g, tokens), {1});
    const Operand none = g.filled(0, ElementType::f32, g.shape(scores));
    const Operand found = g.op("scatter_reduce", {none, places, g.cast(marks, ElementType::f32)},
                               {{"axis", 1}, {"reduction", "max"}});
    return g.cast(found, ElementType::boolean);
}

/// What is there already: divided by the penalty where it is likely, and multiplied where it is not.
Operand penalized(OpWriter& g, const Operand& scores, const Operand& sequences, const Operand& penalty) {
    const Operand all = g.filled(1, ElementType::f32, g.shape(sequences));
    const Operand is_there = tokens_marked(g, scores, sequences, all);
    const Operand is_low = g.op("lesser", {scores, known(0, scores->type)});
    const Operand factor = g.cast(penalty, scores->type);
    const Operand lower =
        g.op("where", {is_low, g.op("mul", {scores, factor}), g.op("div", {scores, factor})});
    return g.op("where", {is_there, lower, scores});
}

/// One row of a mask for each row of the scores: several beams share one.
Operand mask_of_rows(OpWriter& g, const Operand& mask, const Operand& scores) {
    const Shape own = g.shape(mask), wanted = g.shape(scores);
    invalid_if(own.size() != 2, "prefix_vocab_mask has {} dimensions, not 2", own.size());
    if (is_same(own[0], wanted[0])) return mask;
    const auto beams = exact_quotient(wanted[0], own[0]);
    invalid_if(!beams, "prefix_vocab_mask has {} rows for {} sequences", own[0].str(), wanted[0].str());
    return with_rows_repeated(g, mask, *beams);
}

Operand rule_number(OpWriter& g, const Node& node, std::size_t index, ElementType type) {
    const Operand x = node.optional(index);
    return x ? g.reshape(g.cast(x, type), {}) : nullptr;
}

}  // namespace

TokenRules TokenRules::of(OpWriter& g, const Node& node, std::size_t least_at, std::size_t penalty_at) {
    const auto mask = [&](std::size_t index) -> Operand {
        const Operand x = node.optional(index);
        return x ? g.cast(x, ElementType::boolean) : nullptr;
    };
    TokenRules rules;
    rules.end = node.integer("eos_token_id");
    rules.gram_length = node.integer("no_repeat_ngram_size", 0);
    rules.least = rule_number(g, node, least_at, ElementType::i64);
    rules.penalty = rule_number(g, node, penalty_at, ElementType::f32);
    rules.allowed = mask(penalty_at + 1);
    rules.allowed_first = mask(penalty_at + 2);
    if (rules.least && rules.least->has_numbers() && rules.least->integer(0) <= 0) rules.least = nullptr;
    if (rules.penalty && rules.penalty->has_numbers() && rules.penalty->real(0) == 1) rules.penalty = nullptr;
    return rules;
}

Operand TokenRules::ruled(OpWriter& g, Operand scores, const Operand& sequences,
                          const Operand& number) const {
    if (penalty) scores = penalized(g, scores, sequences, penalty);
    if (gram_length > 0)
        scores = forbidden_where(g, repeats_ngram(g, sequences, scores, gram_length), scores);
    if (allowed) scores = forbidden_where(g, g.op("logical_not", {allowed}), scores);
    if (allowed_first) {
        const Operand is_allowed = mask_of_rows(g, allowed_first, scores);
        const Operand is_first = g.op("equal", {number, known(0, ElementType::i64)});
        scores =
            forbidden_where(g, g.op("logical_and", {is_first, g.op("logical_not", {is_allowed})}), scores);
    }
    if (least) {
        const Operand length = g.at_run_time(Item(g.shape(sequences).at(1)), ElementType::i64);
        const Operand is_end =
            g.op("equal", {g.positions(g.shape(scores).at(1)), known(end, ElementType::i64)});
        scores = forbidden_where(g, g.op("logical_and", {g.op("lesser", {length, least}), is_end}), scores);
    }
    return scores;
}

Operand with_rows_repeated(OpWriter& g, const Operand& x, const Dim& times) {
    if (times.is(1)) return x;
    Shape whole = g.shape(x), apart = whole;
    apart.insert(apart.begin() + 1, 1);
    const Operand lines = g.reshape(x, apart);
    apart[1] = times;
    whole.at(0) = whole[0] * times;
    return g.reshape(g.expand(lines, apart), whole);
}

Operand repeats_ngram(OpWriter& g, const Operand& sequences, const Operand& scores, std::int64_t length) {
    invalid_if(length < 1, "n-grams have the length {}; at least 1", length);
    OpWriter::check_extent(length);
    const Shape sizes = g.shape(sequences);
    invalid_if(sizes.size() != 2 || g.rank(scores) != 2,
               "the sequences have {} dimensions and the scores {}, not 2", sizes.size(), g.rank(scores));
    const Dim count = sizes[1];
    // Before a sequence stand so many that are no tokens: of each token the n-1 before it are compared.
    const Operand padded = g.concat({g.filled(-1, sequences->type, {sizes[0], length}), sequences}, 1);
    Operand is_same = g.filled(1, ElementType::boolean, sizes);
    for (std::int64_t i = 1; i < length; ++i) {
        const Operand before = g.cut(padded, 1, i, count), last = g.cut(padded, 1, count + Dim(i), 1);
        is_same = g.op("logical_and", {is_same, g.op("equal", {before, last})});
    }
    return tokens_marked(g, scores, sequences, is_same);
}

}  // namespace headrace::onnx
