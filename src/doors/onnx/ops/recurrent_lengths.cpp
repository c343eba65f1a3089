#include "doors/onnx/ops/recurrent.h"

/// What is behind a sequence's end changes nothing before it: its last state is taken where it ends.
namespace headrace::onnx {

RecurrentResults run_of_lengths(OpWriter& g, const Operand& x, const Operand& lengths,
                                const std::vector<bool>& backwards, const RunForwards& run) {
    const Dim steps = g.shape(x).at(0), batch = g.shape(x).at(1);
    const Operand zero = known(0, ElementType::i64);
    const Operand place = g.reshape(g.positions(steps), {steps, 1, 1});
    const Operand ends = g.reshape(g.cast(lengths, ElementType::i64), {1, batch, 1});
    const Operand is_there = g.op("lesser", {place, ends});
    const Operand at_end = g.op("max", {g.plus(ends, Item(-1)), zero});
    std::vector<Operand> finals, all;
    for (std::size_t i = 0; i < backwards.size(); ++i) {
        Operand every = run(backwards[i] ? turned_sequences(g, x, lengths) : x, static_cast<int>(i));
        const Dim hidden = g.shape(every).at(2);
        const Operand nothing = known(0, every->type);
        const Operand final =
            g.op("gather_elements", {every, g.expand(at_end, {1, batch, hidden})}, {{"axis", 0}});
        // As ONNX Runtime has it, an empty sequence ends with 0, whatever was there before.
        const Operand kept = g.op("where", {g.op("greater", {ends, zero}), final, nothing});
        finals.push_back(g.reshape(kept, {batch, hidden}));
        every = g.op("where", {is_there, every, nothing});
        all.push_back(backwards[i] ? turned_sequences(g, every, lengths) : every);
    }
    return {stacked(g, finals, 0), nullptr, stacked(g, all, 1)};
}

Operand turned_sequences(OpWriter& g, const Operand& x, const Operand& lengths) {
    if (!lengths) return g.op("reverse", {x}, {{"axes", std::vector<std::int64_t>{0}}});
    const Shape s = g.shape(x);
    const Operand place = g.reshape(g.positions(s.at(0)), {s.at(0), 1});
    const Operand ends = g.reshape(g.cast(lengths, ElementType::i64), {1, s.at(1)});
    const Operand mirrored = g.plus(g.op("sub", {ends, place}), Item(-1));
    const Operand source = g.op("where", {g.op("lesser", {place, ends}), mirrored, place});
    return g.op("gather_elements", {x, g.expand(g.add_axes(source, 1), s)}, {{"axis", 0}});
}

Operand stacked(OpWriter& g, const std::vector<Operand>& parts, int axis) {
    std::vector<Operand> rows;
    for (const Operand& x : parts) {
        Shape shape = g.shape(x);
        shape.insert(shape.begin() + axis, 1);
        rows.push_back(g.reshape(x, shape));
    }
    return g.concat(rows, axis);
}

}  // namespace headrace::onnx
