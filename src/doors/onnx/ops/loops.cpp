#include "doors/onnx/ops/loops.h"

#include <algorithm>

#include "doors/onnx/ops/sequence_loops.h"
#include "doors/onnx/reading/numbers.h"

/// Loop and Scan: a graph that runs again and again.
namespace headrace::onnx {
namespace {

void check_carried(OpWriter& g, const std::vector<Operand>& initial, const std::vector<Operand>& next) {
    invalid_if(initial.size() != next.size(), "{} values are carried, and its body gives {}", initial.size(),
               next.size());
    for (std::size_t i = 0; i < initial.size(); ++i)
        if (g.rank(initial[i]) != g.rank(next[i]))
            throw Refused(
                fmt::format("value {} that is carried has {} dimensions at first and {} after an iteration",
                            i, g.rank(initial[i]), g.rank(next[i])),
                "Export the model so that what a loop carries keeps its number of dimensions");
}

/// Puts symbols in place of extents that the body changes; whether there were any.
bool opens_extents(Body& body, std::vector<Shape>& shapes, const std::vector<Operand>& next,
                   std::set<std::string>& open) {
    bool found = false;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        const Shape after = body.shape(next[i]);
        for (std::size_t axis = 0; axis < after.size(); ++axis) {
            Dim& d = shapes[i][axis];
            if (open.contains(d.str()) || is_same(d, after[axis])) continue;
            d = body.fresh("carried");
            open.insert(d.str());
            found = true;
        }
    }
    return found;
}

/// How many iterations there are, where that is known or follows from shapes.
std::optional<Dim> iterations_of(const Operand& count) {
    if (!count || count->is_told() || count->known->count() < 1) return std::nullopt;
    const Dim number = count->item(0).above;
    return number.is_symbolic() ? number : Dim(std::max<std::int64_t>(number.size(), 0));
}

/// A body as far as it is built, whose carried extents do not change any more.
struct Built {
    Body* body = nullptr;
    Iteration iteration;
    std::vector<Shape> shapes;
    std::set<std::string> open;  ///< symbols of extents that change from one iteration to the next
};

Built build_body(OpWriter& g, const std::vector<Operand>& initial, const BuildIteration& build) {
    Built built;
    for (const Operand& x : initial) built.shapes.push_back(g.shape(x));
    while (true) {
        Body& body = Body::within(g);
        const Operand number = body.input("iteration", ElementType::i64, {});
        std::vector<Operand> carried;
        for (std::size_t i = 0; i < initial.size(); ++i)
            carried.push_back(body.input(fmt::format("carried {}", i), initial[i]->type, built.shapes[i]));
        built.iteration = build(body, number, carried);
        check_carried(body, initial, built.iteration.next);
        for (std::size_t i = 0; i < initial.size(); ++i)
            built.iteration.next[i] = body.cast(built.iteration.next[i], initial[i]->type);
        built.iteration.goes_on =
            truth_of(body, built.iteration.goes_on, "the condition that the body gives");
        built.body = &body;
        if (!opens_extents(body, built.shapes, built.iteration.next, built.open)) return built;
    }
}

std::shared_ptr<const Branch> body_of(const Node& node) {
    auto branch = node.branch("body");
    invalid_if(!branch, "attribute 'body' is missing");
    return branch;
}

Values loop(OpWriter& g, const Node& node) {
    const auto branch = body_of(node);
    Operand count = node.optional(0), condition = node.optional(1);
    if (count) count = g.reshape(g.cast(count, ElementType::i64), {});
    if (condition) condition = truth_of(g, condition, "the condition (input 1)");
    Values initial;
    for (std::size_t i = 2; i < node.inputs.size(); ++i) {
        initial.push_back(node.value(i));
        invalid_if(is_missing(initial.back()), "input {} is missing", i);
    }
    const auto read = [&](OpWriter& into, const Operand& number, const Values& carried) {
        Values inputs{number, known(1, ElementType::boolean)};
        inputs.insert(inputs.end(), carried.begin(), carried.end());
        const Values results = into.shared().branches.read_branch(into, *branch, inputs);
        invalid_if(results.size() < 1 + carried.size(),
                   "the body has {} results; it needs 1 for the condition and {} that are carried",
                   results.size(), carried.size());
        const std::span all(results);
        const auto next = all.subspan(1, carried.size());
        return Round{tensors_of(all.first(1), "result").at(0), Values(next.begin(), next.end()),
                     tensors_of(all.subspan(1 + carried.size()), "collected result")};
    };
    if (!std::ranges::all_of(initial, &is_tensor))
        return repeat_values(g, {count, condition, iterations_of(count)}, initial, read);
    const auto build = [&](Body& body, const Operand& number, const std::vector<Operand>& carried) {
        const Round made = read(body, number, values_of(carried));
        return Iteration{made.goes_on, tensors_of(made.next, "carried result"), made.collected};
    };
    return values_of(repeat(g, count, condition, tensors_of(initial, "input"), build));
}

std::vector<std::int64_t> entries(const Node& node, std::string_view name, std::size_t count) {
    auto list = node.integer_list(name).value_or(std::vector<std::int64_t>());
    if (list.empty()) list.assign(count, 0);
    invalid_if(list.size() != count, "{} has {} entries for {} values", name, list.size(), count);
    return list;
}

/// What an iteration of a Scan reads: element `number` along an axis of each input.
class Slices {
public:
    Slices(OpWriter& g, const Node& node, std::vector<Operand> inputs) : inputs_(std::move(inputs)) {
        backwards_ = entries(node, node.opset >= 9 ? "scan_input_directions" : "directions", inputs_.size());
        const auto axes = entries(node, "scan_input_axes", inputs_.size());
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            axes_.push_back(static_cast<int>(axes_of({axes[i]}, g.rank(inputs_[i]))[0]));
            shapes_.push_back(g.shape(inputs_[i]));
        }
        count_ = shapes_.at(0).at(static_cast<std::size_t>(axes_.at(0)));
    }

    const Dim& count() const { return count_; }

    std::vector<Operand> at(Body& body, const Operand& number) const {
        std::vector<Operand> slices;
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            if (is_same(count_, 0)) {  // nothing is read of nothing, in an iteration that there never is
                Shape rest = shapes_[i];
                rest.erase(rest.begin() + axes_[i]);
                slices.push_back(body.filled(0, inputs_[i]->type, rest));
                continue;
            }
            Operand place = number;
            if (backwards_[i] != 0)
                place = body.op("sub", {body.at_run_time(Item(count_ - 1), ElementType::i64), number});
            slices.push_back(body.op("gather", {inputs_[i], place}, {{"axis", axes_[i]}}));
        }
        return slices;
    }

private:
    std::vector<Operand> inputs_;
    std::vector<std::int64_t> backwards_;
    std::vector<int> axes_;
    std::vector<Shape> shapes_;
    Dim count_;
};

Results scan_over(OpWriter& g, const Node& node, const std::vector<Operand>& states,
                  const std::vector<Operand>& inputs) {
    const auto branch = body_of(node);
    const Slices slices(g, node, inputs);
    const auto build = [&](Body& body, const Operand& number, const std::vector<Operand>& carried) {
        std::vector<Operand> given = carried;
        for (Operand& x : slices.at(body, number)) given.push_back(std::move(x));
        const std::vector<Operand> results =
            tensors_of(g.shared().branches.read_branch(body, *branch, values_of(given)), "result");
        invalid_if(results.size() < carried.size(), "its body has {} results for {} states", results.size(),
                   carried.size());
        const auto end = results.begin() + static_cast<std::ptrdiff_t>(carried.size());
        return Iteration{known(1, ElementType::boolean), {results.begin(), end}, {end, results.end()}};
    };
    const Operand count = known({Item(slices.count())}, {}, ElementType::i64);
    Results results = repeat(g, count, nullptr, states, build);
    const std::size_t made = results.size() - states.size();
    const auto out_axes = entries(node, "scan_output_axes", made);
    const auto backwards = entries(node, "scan_output_directions", made);
    for (std::size_t i = 0; i < made; ++i) {
        Operand& x = results[states.size() + i];
        if (backwards[i] != 0) x = g.op("reverse", {x}, {{"axes", std::vector<std::int64_t>{0}}});
        std::vector<std::int64_t> order = counted_list(g.rank(x));
        order.erase(order.begin());
        order.insert(order.begin() + axes_of({out_axes[i]}, g.rank(x))[0], 0);
        x = g.transpose(x, order);
    }
    return results;
}

Results scan(OpWriter& g, const Node& node) {
    const std::int64_t scanned = node.integer("num_scan_inputs", 0);
    std::vector<Operand> values;
    for (std::size_t i = node.opset < 9 ? 1 : 0; i < node.inputs.size(); ++i)
        values.push_back(node.operand(i));
    const auto count = static_cast<std::int64_t>(values.size());
    invalid_if(scanned < 1 || scanned > count, "num_scan_inputs is {}; there are {} inputs", scanned, count);
    const auto split = [&](const std::vector<Operand>& all) {
        const auto at = all.end() - static_cast<std::ptrdiff_t>(scanned);
        return std::pair(std::vector<Operand>(all.begin(), at), std::vector<Operand>(at, all.end()));
    };
    if (node.opset >= 9) {
        const auto [states, inputs] = split(values);
        return scan_over(g, node, states, inputs);
    }
    refuse_if(node.inputs.at(0) != nullptr, "it has lengths of sequences (input 0)");
    const Shape batched = g.shape(values.back());
    invalid_if(batched.empty(), "input {} is a scalar", node.inputs.size() - 1);
    const auto build = [&](Body& body, const Operand& number, const std::vector<Operand>&) {
        std::vector<Operand> own;
        for (const Operand& x : values) own.push_back(body.op("gather", {x, number}, {{"axis", 0}}));
        const auto [states, inputs] = split(own);
        return Iteration{known(1, ElementType::boolean), {}, scan_over(body, node, states, inputs)};
    };
    return repeat(g, known({Item(batched[0])}, {}, ElementType::i64), nullptr, {}, build);
}

}  // namespace

bool is_true(const Operand& x) {
    if (!x->has_numbers()) return false;
    for (std::int64_t i = 0; i < x->known->count(); ++i)
        if (x->integer(i) == 0) return false;
    return true;
}

std::vector<Operand> repeat(OpWriter& g, const Operand& count, const Operand& condition,
                            const std::vector<Operand>& initial, const BuildIteration& build) {
    const Built built = build_body(g, initial, build);
    Body& body = *built.body;
    const Iteration& iteration = built.iteration;
    std::set<std::string> own = body.counts;
    own.insert(built.open.begin(), built.open.end());
    ResultExtents extents(g, own);
    for (std::size_t i = 0; i < initial.size(); ++i) {
        std::vector<Shape> candidates{built.shapes[i]};
        if (!built.open.empty()) candidates.push_back(g.shape(initial[i]));
        extents.add(candidates);
    }
    const bool always = is_true(iteration.goes_on) && (!condition || is_true(condition));
    const auto number = iterations_of(count);
    for (const Operand& x : iteration.collected) {
        extents.add(always && number ? *number : extents.count());
        extents.add({body.shape(x)});
    }
    std::vector<Operand> results{iteration.goes_on};
    results.insert(results.end(), iteration.next.begin(), iteration.next.end());
    results.insert(results.end(), iteration.collected.begin(), iteration.collected.end());
    const GraphPtr graph = body.finish(results);
    std::vector<Operand> operands{count, condition};
    operands.insert(operands.end(), initial.begin(), initial.end());
    operands.insert(operands.end(), body.captured().begin(), body.captured().end());
    std::vector<Operand> made = g.ops("loop", operands,
                                      {{"body", graph},
                                       {"carried", static_cast<std::int64_t>(initial.size())},
                                       {"results", extents.results()},
                                       {"counts", extents.counts()}});
    for (std::size_t i = 0; i < made.size(); ++i)
        made[i] = g.retyped(
            made[i], (i < initial.size() ? initial[i] : iteration.collected[i - initial.size()])->type);
    return made;
}

std::span<const Operator> loops_operators() {
    static const Operator kOperators[] = {
        {"Loop", 1, loop, "3.. -> 1.., body graph; 11: 2.. -> 1.., body graph"},
        {"Scan", 8, scan,
         "2.. -> 1.., body graph, directions ints, num_scan_inputs int; 9: 1.. -> 1.., body graph, "
         "num_scan_inputs int, scan_input_axes ints, scan_input_directions ints, scan_output_axes ints, "
         "scan_output_directions ints"}};
    return kOperators;
}

}  // namespace headrace::onnx
