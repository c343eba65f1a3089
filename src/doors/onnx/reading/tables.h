#pragma once
#include <utility>

#include "doors/onnx/reading/op_writer.h"
#include "doors/onnx/reading/values.h"

/// Sequences as tables, and values of two graphs in one form.
namespace headrace::onnx {

/// Dimensions of a list's tensors, the most that one has; none where there are no tensors to tell.
std::optional<int> rank_of(const OpWriter& g, const Value& list);
Dim length_of(const OpWriter& g, const Value& list);
/// The list as a table. rank: dimensions of the tensors, where there are none to tell.
Table table_of(OpWriter& g, const Value& list, std::optional<int> rank = std::nullopt);
/// A table whose tensors may have so many dimensions, or fewer.
Table of_ranks(OpWriter& g, const Table& table, int rank);
/// All elements of a tensor, one after the other.
Operand flattened(OpWriter& g, const Operand& x);

/// A value and whose it is.
struct ValueOf {
    OpWriter* g;
    Value value;
};
/// Two values in one form. Throws Refused where there is none.
std::pair<Value, Value> alike(const ValueOf& one, const ValueOf& other);

}  // namespace headrace::onnx
