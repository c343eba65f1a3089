#include <string>
#include <utility>
#include <vector>

#include "ops/catalog.h"
#include "passes/fused_matmul.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

/// What is left of an op: the number of its gates, and the operands behind the recurrent weights.
struct Recurrence {
    const OpDef* op = nullptr;
    std::int64_t gates = 0;
    /// The operand and, where it is no state, how many gates it has values for.
    struct Operand {
        ValueId id;
        std::int64_t gates;
    };
    std::vector<Operand> others;
};

/// The operands of a sequence and of a cell alike; those of a cell get a sequence of one step.
struct Network {
    ValueId input, weight, recurrent_weight, bias;
    Recurrence left;
    NamedAttrs attrs;
    std::int64_t directions = 1;
};

class Split {
public:
    explicit Split(Graph& graph)
        : graph_(graph),
          lstm_(catalog_op("lstm_recurrence")),
          gru_(catalog_op("gru_recurrence")),
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
        if (!is_lstm(node) && !is(node, "gru") && !is(node, "gru_cell")) return false;
        return graph_.value(node.inputs[0]).type.dtype == DType::f32 &&
               attr<std::int64_t>(node, "hidden_size") >= kLeastHidden;
    }

    static bool is_lstm(const Node& node) { return is(node, "lstm") || is(node, "lstm_cell"); }

    Result<Network> network_of(const Node& node) {
        const auto in = [&](std::size_t i) { return i < node.inputs.size() ? node.inputs[i] : kNoValue; };
        const bool is_cell = is(node, "lstm_cell") || is(node, "gru_cell");
        Network n{.input = in(0),
                  .weight = in(1),
                  .recurrent_weight = in(2),
                  .bias = kNoValue,
                  .left = {},
                  .attrs = {}};
        constexpr std::int64_t kState = 0;
        if (is_lstm(node)) {
            // A cell has the states before the biases.
            HR_ASSIGN(n.bias, both_biases(in(is_cell ? 5 : 3), in(is_cell ? 6 : 4)));
            n.left = {
                &lstm_,
                4,
                {{in(is_cell ? 7 : 5), 3}, {in(is_cell ? 3 : 6), kState}, {in(is_cell ? 4 : 7), kState}}};
        } else {
            // The reset gate may scale the new state's product with its bias, which is no part of the
            // input's.
            n.bias = in(is_cell ? 4 : 3);
            n.left = {&gru_, 3, {{in(is_cell ? 5 : 4), 3}, {in(is_cell ? 3 : 5), kState}}};
        }
        for (auto& [name, value] : named_attrs(node))
            if (name != "steps") n.attrs.emplace_back(name, std::move(value));
        if (!is_cell && attr<std::string>(node, "direction") == "both") n.directions = 2;
        return n;
    }
    Result<ValueId> both_biases(ValueId bias, ValueId recurrent_bias) {
        if (bias == kNoValue) return recurrent_bias;
        if (recurrent_bias == kNoValue) return bias;
        Node sum{.op = &add_, .attrs = {}, .inputs = {bias, recurrent_bias}, .outputs = {}, .label = ""};
        HR_ASSIGN(sum.attrs, add_.make_attrs({}));
        return computed(std::move(sum));
    }

    /// weight · input + biases in one product for all steps, then the steps.
    Status split(const Node& node) {
        HR_ASSIGN(const Network n, network_of(node));
        const std::int64_t hidden = attr<std::int64_t>(node, "hidden_size"),
                           rows = n.directions * n.left.gates * hidden;
        const Shape input = graph_.value(n.input).type.shape;
        const Dim batch = input[input.size() - 2], steps = input.size() == 3 ? input[0] : Dim(1);
        FusedMatmul product{.a = n.input, .transpose_b = true};
        HR_ASSIGN(product.b, shaped(n.weight, {rows, input.back()}));
        HR_ASSIGN(product.bias, shaped(n.bias, {rows}));
        HR_ASSIGN(Node multiply, make_fused(graph_, product, {}, node.label));
        HR_ASSIGN(ValueId gates, computed(std::move(multiply)));
        HR_ASSIGN(gates, shaped(gates, {steps, batch, rows}));

        Node recurrence{.op = n.left.op, .attrs = {}, .inputs = {gates}, .outputs = {}, .label = node.label};
        HR_ASSIGN(recurrence.attrs, n.left.op->make_attrs(n.attrs));
        HR_ASSIGN(const ValueId weight,
                  shaped(n.recurrent_weight, {n.directions, n.left.gates * hidden, hidden}));
        recurrence.inputs.push_back(weight);
        for (const auto& [id, count] : n.left.others) {
            const Shape shape =
                count ? Shape{n.directions, count * hidden} : Shape{n.directions, batch, hidden};
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
    const OpDef &lstm_, &gru_, &reshape_, &add_;
    std::int64_t count_ = 0;
};

/// Multiplies the input of an lstm or gru in f32 with its weight in one product for all steps, and leaves a
/// recurrence of the rest; a cell becomes a sequence of one step.
Result<Counts> hoist_recurrent_input_projection(Graph& graph, const PassContext&) {
    return Split(graph).run();
}

}  // namespace

Pass hoist_recurrent_input_projection_pass() {
    // A network in f16 is one in f32 by then.
    return {.name = "hoist_recurrent_input_projection",
            .summary = "multiplies the inputs of all steps of an lstm or gru at once",
            .run = &hoist_recurrent_input_projection,
            .after = {"promote_half_floats"}};
}

}  // namespace headrace
