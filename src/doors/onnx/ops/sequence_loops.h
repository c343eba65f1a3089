#pragma once
#include <functional>

#include "doors/onnx/reading/tables.h"

/// Loops that carry sequences and optionals.
namespace headrace::onnx {

/// What an iteration gives.
struct Round {
    Operand goes_on;
    Values next;                     ///< what is carried
    std::vector<Operand> collected;  ///< what results put side by side
};
/// Makes the nodes of an iteration, of its number and what is carried.
using ReadRound = std::function<Round(OpWriter&, const Operand& number, const Values& carried)>;

/// How often: null and none where there is no such thing.
struct Rounds {
    Operand count, condition;
    std::optional<Dim> known;  ///< the count, where it is known or follows from shapes
};

/// The last values that are carried, and what is collected. A loop whose number of iterations is known is
/// read one iteration after the other.
Values repeat_values(OpWriter& g, const Rounds& rounds, const Values& initial, const ReadRound& read);
/// The same as one loop of the graph.
Values repeat_at_run_time(OpWriter& g, const Rounds& rounds, const Values& initial, const ReadRound& read);

}  // namespace headrace::onnx
