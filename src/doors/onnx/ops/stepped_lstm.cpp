#include "doors/onnx/ops/loops.h"
#include "doors/onnx/ops/recurrent.h"

namespace headrace::onnx {
namespace {

Operand part_of_direction(OpWriter& g, const Operand& x, std::size_t i) {
    if (!x) return nullptr;
    const Shape s = g.shape(x);
    return g.reshape(g.cut(x, 0, static_cast<std::int64_t>(i), 1), Shape(s.begin() + 1, s.end()));
}

RecurrentParts parts_of_direction(OpWriter& g, const RecurrentParts& parts, std::size_t i) {
    RecurrentParts own = parts;
    for (Operand* part : {&own.weight, &own.recurrence, &own.input_bias, &own.state_bias, &own.peepholes, &own.state,
                          &own.cell})
        *part = part_of_direction(g, *part, i);
    return own;
}

/// The new state and cell. The output's gate sees the new cell.
std::vector<Operand> next_cell(OpWriter& g, const Operand& gates, const Operand& cell, const Operand& peepholes) {
    const Dim size = g.shape(cell).at(1);
    const auto gate = [&](std::int64_t i) { return g.cut(gates, 1, size * i, size); };
    const auto with_peephole = [&](const Operand& own, std::int64_t i, const Operand& of) {
        if (!peepholes) return own;
        return g.op("add", {own, g.op("mul", {of, g.cut(peepholes, 0, size * i, size)})});
    };
    const auto opened = [&](const Operand& x) { return g.op("sigmoid", {x}); };
    const Operand enter = with_peephole(gate(0), 0, cell), forget = with_peephole(gate(2), 2, cell);
    const Operand kept = g.op("mul", {opened(forget), cell});
    const Operand entering = g.op("mul", {opened(enter), g.op("tanh", {gate(3)})});
    const Operand now = g.op("add", {kept, entering});
    const Operand out = with_peephole(gate(1), 1, now);
    return {g.op("mul", {opened(out), g.op("tanh", {now})}), now};
}

/// [steps, batch, 4 hidden]: what the gates get of the sequence.
Operand gates_of_input(OpWriter& g, const Operand& x, const RecurrentParts& own) {
    const Shape s = g.shape(x);
    Operand gates =
        g.op("matmul", {g.reshape(x, {s.at(0) * s.at(1), s.at(2)}), g.transpose(own.weight, {1, 0})});
    for (const Operand& bias : {own.input_bias, own.state_bias})
        if (bias) gates = g.op("add", {gates, bias});
    return g.reshape(gates, {s[0], s[1], g.shape(own.recurrence).at(1) * 4});
}

RecurrentResults one_direction(OpWriter& g, const Operand& x, const RecurrentParts& own, const Operand& lengths,
                               bool is_backwards) {
    const Dim steps = g.shape(x).at(0), batch = g.shape(x).at(1), size = g.shape(own.recurrence).at(1);
    const Operand gates = gates_of_input(g, is_backwards ? turned_sequences(g, x, lengths) : x, own);
    const Operand recurrent = g.transpose(own.recurrence, {1, 0});
    std::vector<Operand> first{own.state, own.cell};
    for (Operand& state : first)
        if (!state) state = g.filled(0, x->type, {batch, size});
    const auto step = [&](Body& body, const Operand& place, const std::vector<Operand>& carried) -> Iteration {
        const Operand now = body.op("gather", {gates, place}, {{"axis", 0}});
        const Operand sum = body.op("add", {now, body.op("matmul", {carried[0], recurrent})});
        std::vector<Operand> next = next_cell(body, sum, carried[1], own.peepholes);
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
        const Operand is_any =
            g.reshape(g.op("greater", {ends, known(0, ElementType::i64)}), {batch, 1});
        for (const std::size_t i : {0, 1}) made.at(i) = g.op("where", {is_any, made[i], known(0, made[i]->type)});
    }
    return {made.at(0), made.at(1), is_backwards ? turned_sequences(g, made.at(2), lengths) : made.at(2)};
}

}  // namespace

RecurrentResults stepped_lstm(OpWriter& g, const Operand& x, const RecurrentParts& parts, const Operand& lengths,
                              const std::vector<bool>& backwards) {
    std::vector<Operand> last, cell, every;
    for (std::size_t i = 0; i < backwards.size(); ++i) {
        const RecurrentResults way = one_direction(g, x, parts_of_direction(g, parts, i), lengths, backwards[i]);
        last.push_back(way.last);
        cell.push_back(way.cell);
        every.push_back(way.every);
    }
    return {stacked(g, last, 0), stacked(g, cell, 0), stacked(g, every, 1)};
}

}  // namespace headrace::onnx
