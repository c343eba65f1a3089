#include "doors/onnx/ops/loops.h"
#include "doors/onnx/ops/recurrent.h"

namespace headrace::onnx {
namespace {

Operand part_of_direction(OpWriter& g, const Operand& x, std::size_t i) {
    if (!x) return nullptr;
    const Shape s = g.shape(x);
    invalid_if(s.empty(), "an operand of the cells is one number, not one for each direction");
    return g.reshape(g.cut(x, 0, static_cast<std::int64_t>(i), 1), Shape(s.begin() + 1, s.end()));
}

RecurrentParts parts_of_direction(OpWriter& g, const RecurrentParts& parts, std::size_t i) {
    RecurrentParts own = parts;
    for (Operand* part : {&own.weight, &own.recurrence, &own.input_bias, &own.state_bias, &own.peepholes,
                          &own.state, &own.cell})
        *part = part_of_direction(g, *part, i);
    return own;
}

/// One step of one direction: the sums of the sequence's part, and the carried states.
class Step {
public:
    /// The recurrence is transposed.
    Step(OpWriter& g, const CellRules& rules, std::size_t direction, const RecurrentParts& own)
        : g_(g), rules_(rules), direction_(direction), own_(own), size_(g.shape(own.recurrence).at(0)) {}

    /// The new state and cell. The output's gate sees the new cell.
    std::vector<Operand> lstm(const Operand& of_input, const std::vector<Operand>& carried) const {
        const Operand sums = added(of_input, recurrent(carried[0], 0, 4)), &cell = carried[1];
        const Operand enter = through(0, with_peephole(gate(sums, 0), 0, cell));
        const Operand forget = rules_.couples ? g_.op("sub", {known(1, enter->type), enter})
                                              : through(0, with_peephole(gate(sums, 2), 2, cell));
        const Operand entering = times(enter, through(1, gate(sums, 3)));
        const Operand now = added(times(forget, cell), entering);
        const Operand out = through(0, with_peephole(gate(sums, 1), 1, now));
        return {times(out, through(2, now)), now};
    }

    std::vector<Operand> gru(const Operand& of_input, const std::vector<Operand>& carried) const {
        const Operand& state = carried[0];
        const Operand gates = added(part(of_input, 0, 2), recurrent(state, 0, 2));
        const Operand update = through(0, gate(gates, 0)), reset = through(0, gate(gates, 1));
        const Operand of_state = rules_.resets_after ? times(reset, with_bias(recurrent(state, 2, 1), 2))
                                                     : with_bias(recurrent(times(reset, state), 2, 1), 2);
        const Operand fresh = through(1, added(gate(of_input, 2), of_state));
        const Operand kept = g_.op("sub", {state, fresh});
        return {added(fresh, times(update, kept))};
    }

    std::vector<Operand> rnn(const Operand& of_input, const std::vector<Operand>& carried) const {
        return {through(0, added(of_input, recurrent(carried[0], 0, 1)))};
    }

private:
    Operand added(const Operand& a, const Operand& b) const { return g_.op("add", {a, b}); }
    Operand times(const Operand& a, const Operand& b) const { return g_.op("mul", {a, b}); }
    Operand part(const Operand& x, std::int64_t first, std::int64_t count, int axis = 1) const {
        return g_.cut(x, axis, size_ * first, size_ * count);
    }
    Operand gate(const Operand& sums, std::int64_t i) const { return part(sums, i, 1); }
    /// By some gates' columns of the recurrence.
    Operand recurrent(const Operand& state, std::int64_t first, std::int64_t count) const {
        return g_.op("matmul", {state, part(own_.recurrence, first, count)});
    }
    Operand with_bias(const Operand& sum, std::int64_t i) const {
        return own_.state_bias ? added(sum, part(own_.state_bias, i, 1, 0)) : sum;
    }
    Operand with_peephole(const Operand& sum, std::int64_t i, const Operand& cell) const {
        return own_.peepholes ? added(sum, times(cell, part(own_.peepholes, i, 1, 0))) : sum;
    }
    Operand through(std::size_t function, const Operand& sum) const {
        const CellFunctions& functions = rules_.functions;
        return functions.at(direction_, function).of(g_, rules_.node, functions.limited(g_, sum));
    }

    OpWriter& g_;
    const CellRules& rules_;
    std::size_t direction_;
    const RecurrentParts& own_;
    Dim size_;
};

std::vector<Operand> next_of_step(const Step& step, CellRules::Kind kind, const Operand& of_input,
                                  const std::vector<Operand>& carried) {
    switch (kind) {
        case CellRules::Kind::lstm: return step.lstm(of_input, carried);
        case CellRules::Kind::gru: return step.gru(of_input, carried);
        default: return step.rnn(of_input, carried);
    }
}

/// [steps, batch, gates hidden]: what the gates get of the sequence. A GRU's last gate gets the state's bias
/// with the state.
Operand gates_of_input(OpWriter& g, const Operand& x, const RecurrentParts& own, CellRules::Kind kind) {
    const Shape s = g.shape(x), of_weight = g.shape(own.weight);
    Operand gates =
        g.op("matmul", {g.reshape(x, {s.at(0) * s.at(1), s.at(2)}), g.transpose(own.weight, {1, 0})});
    Operand state_bias = own.state_bias;
    if (state_bias && kind == CellRules::Kind::gru) {
        const Dim size = g.shape(own.recurrence).at(1);
        state_bias = g.concat({g.cut(state_bias, 0, 0, size * 2), g.filled(0, x->type, {size})}, 0);
    }
    for (const Operand& bias : {own.input_bias, state_bias})
        if (bias) gates = g.op("add", {gates, bias});
    return g.reshape(gates, {s[0], s[1], of_weight.at(0)});
}

RecurrentResults one_direction(OpWriter& g, const Operand& x, const RecurrentParts& own,
                               const Operand& lengths, bool is_backwards, const CellRules& rules,
                               std::size_t direction) {
    const Dim steps = g.shape(x).at(0), batch = g.shape(x).at(1), size = g.shape(own.recurrence).at(1);
    const Operand gates =
        gates_of_input(g, is_backwards ? turned_sequences(g, x, lengths) : x, own, rules.kind);
    RecurrentParts turned = own;
    turned.recurrence = g.transpose(own.recurrence, {1, 0});
    std::vector<Operand> first{own.state};
    if (rules.kind == CellRules::Kind::lstm) first.push_back(own.cell);
    for (Operand& state : first)
        if (!state) state = g.filled(0, x->type, {batch, size});
    const auto step = [&](Body& body, const Operand& place,
                          const std::vector<Operand>& carried) -> Iteration {
        const Operand now = body.op("gather", {gates, place}, {{"axis", 0}});
        std::vector<Operand> next =
            next_of_step(Step(body, rules, direction, turned), rules.kind, now, carried);
        Operand given = next[0];
        if (lengths) {
            const Operand ends = body.cast(lengths, ElementType::i64);
            const Operand is_there = body.reshape(body.op("lesser", {place, ends}), {batch, 1});
            for (std::size_t i = 0; i < next.size(); ++i)
                next[i] = body.op("where", {is_there, next[i], carried[i]});
            given = body.op("where", {is_there, given, known(0, given->type)});
        }
        return {known(1, ElementType::boolean), next, {given}};
    };
    std::vector<Operand> made = repeat(g, known(Shape{steps}), nullptr, first, step);
    if (lengths) {  // as ONNX Runtime has it, an empty sequence ends with 0, whatever was there before
        const Operand ends = g.cast(lengths, ElementType::i64);
        const Operand is_any = g.reshape(g.op("greater", {ends, known(0, ElementType::i64)}), {batch, 1});
        for (std::size_t i = 0; i < first.size(); ++i)
            made.at(i) = g.op("where", {is_any, made[i], known(0, made[i]->type)});
    }
    const Operand cell = first.size() > 1 ? made.at(1) : nullptr, every = made.at(first.size());
    return {made.at(0), cell, is_backwards ? turned_sequences(g, every, lengths) : every};
}

}  // namespace

RecurrentResults stepped_cells(OpWriter& g, const Operand& x, const RecurrentParts& parts,
                               const Operand& lengths, const std::vector<bool>& backwards,
                               const CellRules& rules) {
    std::vector<Operand> last, cell, every;
    for (std::size_t i = 0; i < backwards.size(); ++i) {
        const RecurrentResults way =
            one_direction(g, x, parts_of_direction(g, parts, i), lengths, backwards[i], rules, i);
        last.push_back(way.last);
        if (way.cell) cell.push_back(way.cell);
        every.push_back(way.every);
    }
    return {stacked(g, last, 0), cell.empty() ? nullptr : stacked(g, cell, 0), stacked(g, every, 1)};
}

}  // namespace headrace::onnx
