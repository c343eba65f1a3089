#include "doors/onnx/ops/recurrent.h"

#include "doors/onnx/reading/numbers.h"

/// Recurrent networks over whole sequences.
namespace headrace::onnx {
namespace {

constexpr double kWideOpen = 1e4;  // far enough for sigmoid to be exactly 0 or 1

/// As the catalog calls it, and for each direction whether it goes backwards.
struct Directions {
    std::string_view name;
    std::vector<bool> backwards;
};

Directions directions_of(const Node& node) {
    const std::string direction = node.text("direction", "forward");
    if (direction == "forward") return {"forward", {false}};
    if (direction == "reverse") return {"backward", {true}};
    invalid_if(direction != "bidirectional", "direction is '{}'; forward, reverse, bidirectional are ONNX's",
               direction);
    return {"both", {false, true}};
}

/// What the operators have in common: the operands as a graph has them.
struct Recurrent {
    Operand x;        ///< [steps, batch, features]
    Operand lengths;  ///< of the sequences; null where all are known to be as long as that
    RecurrentParts parts;
    std::int64_t hidden = 0;
};

bool is_of_zeros(const Operand& x) {
    if (!x) return true;
    if (!x->has_numbers()) return false;
    for (std::int64_t i = 0; i < x->known->count(); ++i)
        if (x->real(i) != 0) return false;
    return true;
}

bool all_are_whole(const Operand& lengths, const Dim& steps) {
    if (!lengths) return true;
    if (!lengths->has_numbers() || steps.is_symbolic()) return false;
    for (std::int64_t i = 0; i < lengths->known->count(); ++i)
        if (lengths->integer(i) != steps.size()) return false;
    return true;
}

Operand state_of(OpWriter& g, const Node& node, std::size_t index) {
    const Operand state = node.optional(index);
    if (!state) return nullptr;
    invalid_if(g.rank(state) != 3, "the state (input {}) has {} dimensions, not 3", index, g.rank(state));
    return node.flag("layout", false) ? g.transpose(state, {1, 0, 2}) : state;
}

/// gates: how many an element of the state has.
Recurrent recurrent_of(OpWriter& g, const Node& node, std::int64_t gates) {
    Recurrent of;
    for (std::size_t i = 0; i < 3; ++i)
        invalid_if(g.rank(node.operand(i)) != 3, "input {} has {} dimensions, not 3", i,
                   g.rank(node.operand(i)));
    of.x = node.flag("layout", false) ? g.transpose(node.x(), {1, 0, 2}) : node.x();
    of.hidden = g.fixed(g.shape(node.operand(2))[2], "the hidden size");
    OpWriter::check_extent(of.hidden);
    of.parts.weight = node.operand(1);
    of.parts.recurrence = node.operand(2);
    if (const Operand both = node.optional(3)) {  // those of the input and of the state behind one another
        invalid_if(g.rank(both) != 2, "the biases (input 3) have {} dimensions, not 2", g.rank(both));
        const std::int64_t size = gates * of.hidden;
        of.parts.input_bias = g.cut(both, 1, 0, size);
        of.parts.state_bias = g.cut(both, 1, size, size);
    }
    of.parts.state = state_of(g, node, 5);
    const Dim steps = g.shape(of.x)[0];
    if (!all_are_whole(node.optional(4), steps))
        of.lengths = checked_numbers(g, node.operand(4), "the length of a sequence", 0, steps);
    return of;
}

/// [batch, steps, directions, hidden] and [batch, directions, hidden], where the layout is that.
Results in_layout(OpWriter& g, const Node& node, const RecurrentResults& found) {
    Results results{found.every, found.last};
    if (found.cell) results.push_back(found.cell);
    if (!node.flag("layout", false)) return results;
    for (std::size_t i = 0; i < results.size(); ++i)
        results[i] = i == 0 ? g.transpose(results[i], {2, 0, 1, 3}) : g.transpose(results[i], {1, 0, 2});
    return results;
}

/// Computes step by step what no op of the catalog computes.
Results stepped(OpWriter& g, const Node& node, const Recurrent& of, const CellRules& rules) {
    const std::vector<bool> backwards = directions_of(node).backwards;
    return in_layout(g, node, stepped_cells(g, of.x, of.parts, of.lengths, backwards, rules));
}

Results lstm(OpWriter& g, const Node& node) {
    Recurrent of = recurrent_of(g, node, 4);
    of.parts.cell = state_of(g, node, 6);
    const CellFunctions functions = cell_functions(node, {"Sigmoid", "Tanh", "Tanh"});
    const Directions directions = directions_of(node);
    const bool couples = node.integer("input_forget", 0) != 0;
    const std::string own = functions.in_catalog();
    if (!of.lengths && is_of_zeros(node.optional(7)) && !couples && !own.empty()) {
        const RecurrentParts& p = of.parts;
        const Results made = g.ops(
            "lstm", {of.x, p.weight, p.recurrence, p.input_bias, p.state_bias, nullptr, p.state, p.cell},
            {{"hidden_size", of.hidden},
             {"layout", "iofg"},
             {"activations", own},
             {"return_sequence", true},
             {"direction", std::string(directions.name)}});
        return in_layout(g, node, {made.at(0), made.at(1), made.at(2)});
    }
    of.parts.peepholes = node.optional(7);
    return stepped(g, node, of, {CellRules::Kind::lstm, node, functions, couples});
}

Results gru_of(OpWriter& g, const Node& node, const Recurrent& of, const std::string& functions, bool after) {
    const Directions directions = directions_of(node);
    const auto states = [&](const Operand& x, const RecurrentParts& p, std::string_view direction) {
        return g.ops("gru", {x, p.weight, p.recurrence, p.input_bias, p.state_bias, p.state},
                     {{"hidden_size", of.hidden},
                      {"layout", "zrn"},
                      {"reset_after", after},
                      {"activations", functions},
                      {"return_sequence", true},
                      {"direction", std::string(direction)}});
    };
    if (!of.lengths) {
        const Results made = states(of.x, of.parts, directions.name);
        return in_layout(g, node, {made.at(0), nullptr, made.at(1)});
    }
    const auto forwards = [&](const Operand& x, int i) {
        RecurrentParts own = of.parts;
        for (Operand* part : {&own.weight, &own.recurrence, &own.input_bias, &own.state_bias, &own.state})
            if (*part) *part = g.cut(*part, 0, i, 1);
        const Operand every = states(x, own, "forward").at(1);
        const Shape s = g.shape(every);
        return g.reshape(every, {s.at(0), s.at(2), s.at(3)});
    };
    return in_layout(g, node, run_of_lengths(g, of.x, of.lengths, directions.backwards, forwards));
}

Results gru(OpWriter& g, const Node& node) {
    const Recurrent of = recurrent_of(g, node, 3);
    const CellFunctions functions = cell_functions(node, {"Sigmoid", "Tanh"});
    const bool after = node.flag("linear_before_reset", false);
    if (const std::string own = functions.in_catalog(); !own.empty()) return gru_of(g, node, of, own, after);
    return stepped(g, node, of, {CellRules::Kind::gru, node, functions, false, after});
}

/// A GRU whose gates stand still: nothing of the old state is kept, and nothing of it is reset.
Results rnn(OpWriter& g, const Node& node) {
    Recurrent of = recurrent_of(g, node, 1);
    const CellFunctions functions = cell_functions(node, {"Tanh"});
    const std::string function = functions.in_catalog();
    if (function.empty()) return stepped(g, node, of, {CellRules::Kind::rnn, node, functions});
    RecurrentParts& p = of.parts;
    const ElementType type = p.weight->type;
    const std::int64_t ways = g.fixed(g.shape(p.weight)[0], "the number of directions");
    invalid_if(ways != 1 && ways != 2, "W (input 1) has {} directions; 1 or 2", ways);
    OpWriter::check_extent(2 * ways * of.hidden);
    const auto behind_gates = [&](const Operand& x) {
        return g.concat({g.filled(0, x->type, {ways, 2 * of.hidden, g.shape(x)[2]}), x}, 1);
    };
    std::vector<double> closed(static_cast<std::size_t>(of.hidden), -kWideOpen);
    closed.resize(closed.size() * 2, kWideOpen);
    const Operand gates = g.expand(known(closed, type), {ways, 2 * of.hidden});
    p.weight = behind_gates(p.weight);
    p.recurrence = behind_gates(p.recurrence);
    const Operand zeros = g.filled(0, type, {ways, of.hidden});
    p.input_bias = g.concat({gates, p.input_bias ? p.input_bias : zeros}, 1);
    if (p.state_bias) p.state_bias = g.concat({zeros, zeros, p.state_bias}, 1);
    return gru_of(g, node, of, "sigmoid," + function, true);
}

}  // namespace

std::span<const Operator> recurrent_operators() {
    static const Operator kOperators[] = {
        {"GRU", 1, gru,
         "3..6 -> 2, activation_alpha floats, activation_beta floats, activations strings, clip float, "
         "direction string, hidden_size int, output_sequence int; 3: 3..6 -> 0..2, activation_alpha floats, "
         "activation_beta floats, activations strings, clip float, direction string, hidden_size int, "
         "linear_before_reset int, output_sequence int; 7: 3..6 -> 0..2, activation_alpha floats, "
         "activation_beta floats, activations strings, clip float, direction string, hidden_size int, "
         "linear_before_reset int; 14: 3..6 -> 0..2, activation_alpha floats, activation_beta floats, "
         "activations strings, clip float, direction string, hidden_size int, layout int, "
         "linear_before_reset int"},
        {"LSTM", 1, lstm,
         "3..8 -> 0..3, activation_alpha floats, activation_beta floats, activations strings, clip float, "
         "direction string, hidden_size int, input_forget int, output_sequence int; 7: 3..8 -> 0..3, "
         "activation_alpha floats, activation_beta floats, activations strings, clip float, direction "
         "string, hidden_size int, input_forget int; 14: 3..8 -> 0..3, activation_alpha floats, "
         "activation_beta floats, activations strings, clip float, direction string, hidden_size int, "
         "input_forget int, layout int"},
        {"RNN", 1, rnn,
         "3..6 -> 0..2, activation_alpha floats, activation_beta floats, activations strings, clip float, "
         "direction string, hidden_size int, output_sequence int; 7: 3..6 -> 0..2, activation_alpha floats, "
         "activation_beta floats, activations strings, clip float, direction string, hidden_size int; 14: "
         "3..6 -> 0..2, activation_alpha floats, activation_beta floats, activations strings, clip float, "
         "direction string, hidden_size int, layout int"}};
    return kOperators;
}

}  // namespace headrace::onnx
