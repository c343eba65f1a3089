#pragma once
#include "doors/onnx/reading/numbers.h"
#include "doors/onnx/reading/tables.h"

/// Places in sequences. Those that are known and outside are Invalid; others are errors of the run.
namespace headrace::onnx {

Operand item_at(OpWriter& g, const Value& list, const Operand& at);
/// With a tensor more, at a place or behind the others, where `at` is null.
Value inserted(OpWriter& g, const Value& list, const Operand& tensor, const Operand& at);
/// Without the tensor at a place, or the last one.
Value erased(OpWriter& g, const Value& list, const Operand& at);
/// The tensors along an axis, or a new one.
Operand joined(OpWriter& g, const Value& list, std::int64_t axis, bool is_new);
/// A list of this many tensors counted against the model's limit.
Value counted_sequence(OpWriter& g, std::vector<Operand> items, ElementType element);

/// For each element of tensors that are laid one after another: its tensor, and its place there.
struct Owners {
    Numbers tensor, place;
};
Owners owners_of(const Numbers& sizes, const Dim& total);
/// Where each of these sizes begins, one behind the other.
Numbers begins_of(const Numbers& sizes);

}  // namespace headrace::onnx
