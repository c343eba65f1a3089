#pragma once
#include <functional>

#include "doors/onnx/reading/bodies.h"
#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// What an iteration gives.
struct Iteration {
    Operand goes_on;
    std::vector<Operand> next;       ///< what is carried
    std::vector<Operand> collected;  ///< what results put side by side
};
/// Makes a body's nodes, of an iteration's number and what is carried.
using BuildIteration =
    std::function<Iteration(Body&, const Operand& number, const std::vector<Operand>& carried)>;

/// The op loop: the last values that are carried, and what is collected. count, condition: null where there
/// is none.
std::vector<Operand> repeat(OpWriter& g, const Operand& count, const Operand& condition,
                            const std::vector<Operand>& initial, const BuildIteration& build);

/// Whether all its elements are known and true.
bool is_true(const Operand& x);

}  // namespace headrace::onnx
