#include <string>
#include <utility>

#include "ops/catalog.h"
#include "passes/fused_matmul.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

/// The operands of lstm and lstm_cell in one order; those of a cell get a sequence of one step.
struct Network {
    ValueId input, weight, recurrent_weight, bias, recurrent_bias, peephole, hidden, cell;
    NamedAttrs attrs;
    std::int64_t directions = 1;
};

class Split {
public:
    explicit Split(Graph& graph)
        : graph_(graph),
          recurrence_(catalog_op("lstm_recurrence")),
          reshape_(catalog_op("reshape")),
          add_(catalog_op("add")) {}

    Result<Counts> run() {
        for (Node& node : std::exchange(graph_.nodes, {})) {
            if (is_worth_it(node)) {
                HR_TRY(split(node));
                ++count_;
            } else {
                keep(std::move(node));
            }
        }
        graph_.compact(std::vector<bool>(graph_.nodes.size(), true));
        return Counts{{"recurrences", count_}};
    }

private:
    /// The reference, in double, is as fast for a few values, and exact.
    static constexpr std::int64_t kLeastHidden = 16;

    bool is_worth_it(const Node& node) const {
        if (!is(node, "lstm") && !is(node, "lstm_cell")) return false;
        return graph_.value(node.inputs[0]).type.dtype == DType::f32 &&
               attr<std::int64_t>(node, "hidden_size") >= kLeastHidden;
    }

    static Network network_of(const Node& node) {
        const auto in = [&](std::size_t i) { return i < node.inputs.size() ? node.inputs[i] : kNoValue; };
        const bool is_cell = is(node, "lstm_cell");
        Network n = is_cell ? Network{in(0), in(1), in(2), in(5), in(6), in(7), in(3), in(4)}
                            : Network{in(0), in(1), in(2), in(3), in(4), in(5), in(6), in(7)};
        for (auto& [name, value] : named_attrs(node))
            if (name != "steps") n.attrs.emplace_back(name, std::move(value));
        if (!is_cell && attr<std::string>(node, "direction") == "both") n.directions = 2;
        return n;
    }

    /// weight · input + biases in one product for all steps, then the steps.
    Status split(const Node& node) {
        const Network n = network_of(node);
        const std::int64_t hidden = attr<std::int64_t>(node, "hidden_size"), rows = n.directions * 4 * hidden;
        const Shape input = graph_.value(n.input).type.shape;
        const Dim batch = input[input.size() - 2], steps = input.size() == 3 ? input[0] : Dim(1);
        ValueId bias = n.bias == kNoValue ? n.recurrent_bias : n.bias;
        if (n.bias != kNoValue && n.recurrent_bias != kNoValue) {
            Node sum{
                .op = &add_, .attrs = {}, .inputs = {n.bias, n.recurrent_bias}, .outputs = {}, .label = ""};
            HR_ASSIGN(sum.attrs, add_.make_attrs({}));
            HR_ASSIGN(bias, computed(std::move(sum)));
        }
        FusedMatmul product{.a = n.input, .transpose_b = true};
        HR_ASSIGN(product.b, shaped(n.weight, {rows, input.back()}));
        HR_ASSIGN(product.bias, shaped(bias, {rows}));
        HR_ASSIGN(Node multiply, make_fused(graph_, product, {}, node.label));
        HR_ASSIGN(ValueId gates, computed(std::move(multiply)));
        HR_ASSIGN(gates, shaped(gates, {steps, batch, rows}));

        const Shape state{n.directions, batch, hidden};
        Node recurrence{
            .op = &recurrence_, .attrs = {}, .inputs = {gates}, .outputs = {}, .label = node.label};
        HR_ASSIGN(recurrence.attrs, recurrence_.make_attrs(n.attrs));
        for (const auto& [id, shape] :
             {std::pair{n.recurrent_weight, Shape{n.directions, 4 * hidden, hidden}},
              std::pair{n.peephole, Shape{n.directions, 3 * hidden}}, std::pair{n.hidden, state},
              std::pair{n.cell, state}}) {
            HR_ASSIGN(const ValueId operand, shaped(id, shape));
            recurrence.inputs.push_back(operand);
        }
        while (recurrence.inputs.back() == kNoValue) recurrence.inputs.pop_back();
        return give_results(std::move(recurrence), node);
    }

    Status give_results(Node recurrence, const Node& node) {
        HR_ASSIGN(const auto types, inferred(recurrence));
        std::vector<std::pair<ValueId, ValueId>> reshaped;  // and what they were
        for (std::size_t i = 0; i < types.size(); ++i) {
            const bool is_same = types[i].shape == graph_.value(node.outputs[i]).type.shape;
            recurrence.outputs.push_back(is_same ? node.outputs[i] : new_value(types[i], i));
            if (!is_same) reshaped.emplace_back(node.outputs[i], recurrence.outputs[i]);
        }
        keep(std::move(recurrence));
        for (const auto& [result, source] : reshaped) {
            HR_ASSIGN(Node reshape, reshape_of(source, graph_.value(result).type.shape));
            reshape.outputs = {result};
            graph_.value(result).output_index = 0;
            keep(std::move(reshape));
        }
        return success();
    }

    /// The same elements in another shape: of a constant, the same bytes.
    Result<ValueId> shaped(ValueId id, Shape shape) {
        if (id == kNoValue || graph_.value(id).type.shape == shape) return id;
        if (graph_.value(id).kind == ValueKind::constant) {
            Value constant = graph_.value(id);
            constant.type.shape = std::move(shape);
            graph_.values.push_back(std::move(constant));
            return static_cast<ValueId>(graph_.values.size() - 1);
        }
        HR_ASSIGN(Node reshape, reshape_of(id, std::move(shape)));
        return computed(std::move(reshape));
    }
    Result<Node> reshape_of(ValueId id, Shape shape) const {
        Node node{.op = &reshape_, .attrs = {}, .inputs = {id}, .outputs = {}, .label = ""};
        HR_ASSIGN(node.attrs, reshape_.make_attrs({{"new_shape", std::move(shape)}}));
        return node;
    }

    Result<std::vector<TensorType>> inferred(const Node& node) const {
        const auto types = graph_.operand_types(node);
        return check_and_infer(*node.op, Operands(types), node.attrs.get());
    }
    /// The result of a node that has one.
    Result<ValueId> computed(Node node) {
        HR_ASSIGN(auto types, inferred(node));
        node.outputs = {new_value(std::move(types[0]), 0)};
        const ValueId id = node.outputs[0];
        keep(std::move(node));
        return id;
    }
    ValueId new_value(TensorType type, std::size_t output_index) {
        graph_.values.push_back(
            {.type = std::move(type), .output_index = static_cast<std::int32_t>(output_index)});
        return static_cast<ValueId>(graph_.values.size() - 1);
    }
    void keep(Node node) { graph_.nodes.push_back(std::move(node)); }

    Graph& graph_;
    const OpDef &recurrence_, &reshape_, &add_;
    std::int64_t count_ = 0;
};

/// Multiplies the input of an lstm in f32 with its weight in one product for all steps, and leaves an
/// lstm_recurrence of the rest; an lstm_cell becomes a sequence of one step.
Result<Counts> hoist_recurrent_input_projection(Graph& graph, const PassContext&) {
    return Split(graph).run();
}

}  // namespace

Pass hoist_recurrent_input_projection_pass() {
    // An lstm in f16 is one in f32 by then.
    return {.name = "hoist_recurrent_input_projection",
            .summary = "multiplies the inputs of all steps of an lstm at once",
            .run = &hoist_recurrent_input_projection,
            .after = {"promote_halves_to_f32"}};
}

}  // namespace headrace
