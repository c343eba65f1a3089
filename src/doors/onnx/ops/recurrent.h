#pragma once
#include <functional>

#include "doors/onnx/ops/recurrent_functions.h"
#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// The parts of a recurrent network, each with a first dimension of directions; null: left out.
struct RecurrentParts {
    Operand weight, recurrence, input_bias, state_bias, peepholes, state, cell;
};

/// [directions, batch, hidden] of the last step and of the last cell, null without cells; and
/// [steps, directions, batch, hidden] of every step.
struct RecurrentResults {
    Operand last, cell, every;
};

/// What a network's cells do.
struct CellRules {
    enum class Kind { lstm, gru, rnn };
    Kind kind;
    const Node& node;
    CellFunctions functions;
    bool couples = false;       ///< of an LSTM: what does not enter is kept
    bool resets_after = false;  ///< of a GRU: the state is reset behind its product
};

/// Networks that the catalog's ops are not, as loops: other activations, clipped sums, coupled gates, LSTMs
/// with peepholes from the new cell or of several lengths. x: [steps, batch, features]. lengths: null where
/// all sequences are as long as that. backwards: for each direction.
RecurrentResults stepped_cells(OpWriter& g, const Operand& x, const RecurrentParts& parts,
                               const Operand& lengths, const std::vector<bool>& backwards,
                               const CellRules& rules);

/// Every state of one direction that goes forwards, [steps, batch, hidden], of x.
using RunForwards = std::function<Operand(const Operand& x, int direction)>;
/// Networks without cells, over sequences of several lengths, which all run to the last step.
RecurrentResults run_of_lengths(OpWriter& g, const Operand& x, const Operand& lengths,
                                const std::vector<bool>& backwards, const RunForwards& run);

/// Each sequence of [steps, batch, size] backwards, and what follows it in its place.
Operand turned_sequences(OpWriter& g, const Operand& x, const Operand& lengths);
/// Side by side along a new axis.
Operand stacked(OpWriter& g, const std::vector<Operand>& parts, int axis);

}  // namespace headrace::onnx
