#pragma once
#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// What forbids a generation tokens, or makes them less likely. Null operands: there is no such rule.
struct TokenRules {
    /// Of a generation's node, whose input `min_length` stands at `least_at`, and from `penalty_at` on the
    /// penalty of what is there already, the mask of the vocabulary and that of the first token.
    static TokenRules of(OpWriter& g, const Node& node, std::size_t least_at, std::size_t penalty_at);

    /// Scores [rows, vocabulary] of what follows sequences [rows, length] of i32, the number of tokens that
    /// were made, and the rows that the mask of the first token has.
    Operand ruled(OpWriter& g, Operand scores, const Operand& sequences, const Operand& number) const;

    std::int64_t end = 0;            ///< the token that ends a sequence
    std::int64_t gram_length = 0;    ///< no tokens so long occur twice; 0: they may
    Operand least, penalty;          ///< scalars, i64 and f32
    Operand allowed, allowed_first;  ///< truth values [vocabulary] and [batch, vocabulary]
};

/// Whether each token of the vocabulary would end an n-gram that the row has already: [rows, vocabulary] of
/// sequences [rows, length].
Operand repeats_ngram(OpWriter& g, const Operand& sequences, const Operand& scores, std::int64_t length);

/// Each row of [rows, ...] so many times, one after the other.
Operand with_rows_repeated(OpWriter& g, const Operand& x, const Dim& times);

}  // namespace headrace::onnx
