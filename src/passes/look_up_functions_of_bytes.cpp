#include <cstdint>
#include <numeric>
#include <vector>

#include "ir/constant.h"
#include "passes/eliminate_dead_code.h"
#include "passes/evaluate.h"
#include "passes/pass.h"
#include "passes/quantized_values.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

constexpr std::size_t kBytesOfTable = 256;

/// Follows, node by node, what depends on one byte alone, and computes it for each byte that there is.
class ByteFunctions {
public:
    explicit ByteFunctions(Graph& graph)
        : graph_(graph), root_(graph.values.size(), kNoValue), tabled_(graph.values.size(), kNoValue) {}

    Result<Counts> run(const PassContext& context) {
        const std::size_t nodes = graph_.nodes.size();
        for (std::size_t i = 0; i < nodes; ++i) {
            const ValueId root = root_of(graph_.nodes[i]);
            if (root == kNoValue) continue;
            const ValueId result = graph_.nodes[i].outputs[0];
            HR_ASSIGN(const bool is_known, tabulate(graph_.nodes[i], root));
            if (!is_known) continue;
            root_[result] = root;
            if (quantized_scale(graph_, graph_.nodes[i])) HR_TRY(look_up(graph_.nodes[i], root));
        }
        if (lookups_ > 0) HR_TRY(eliminate_dead_code(graph_, context));  // what made real numbers
        return Counts{{"functions", lookups_}};
    }

private:
    /// The bytes that a node's result is a function of, element by element.
    ValueId root_of(const Node& node) const {
        if (!node.op->is_pure() || node.op->control != Control::none || node.op->layout != LayoutRule::any ||
            node.outputs.size() != 1)
            return kNoValue;
        if (const auto integer = dequantized(graph_, node.outputs[0])) {
            if (graph_.value(integer->bytes).kind == ValueKind::constant) return kNoValue;
            return root_[integer->bytes] == kNoValue ? integer->bytes : root_[integer->bytes];
        }
        ValueId root = kNoValue;
        for (const ValueId id : node.inputs) {
            if (id == kNoValue || is_number(id)) continue;
            if (root_[id] == kNoValue || (root != kNoValue && root_[id] != root)) return kNoValue;
            root = root_[id];
        }
        if (root == kNoValue || graph_.value(node.outputs[0]).type.shape != graph_.value(root).type.shape)
            return kNoValue;
        return root;
    }
    bool is_number(ValueId id) const {
        const Value& v = graph_.value(id);
        return v.kind == ValueKind::constant && v.type.elements() == 1;
    }

    /// A node's result for all bytes, as a constant of tables_; false where it is no list of as many.
    Result<bool> tabulate(const Node& node, ValueId root) {
        Node copy{.op = node.op, .attrs = node.attrs, .inputs = {}, .outputs = {}, .label = node.label};
        for (const ValueId id : node.inputs) {
            if (id == root && tabled_[id] == kNoValue) {
                HR_ASSIGN(tabled_[id], all_bytes(graph_.value(id).type.dtype));
            }
            copy.inputs.push_back(id == kNoValue || tabled_[id] != kNoValue ? tabled(id) : number(id));
        }
        const auto types = tables_.operand_types(copy);
        auto made = check_and_infer(*copy.op, Operands(types), copy.attrs.get());
        if (!made.ok() || made.value().size() != 1 || !(made.value()[0].shape == Shape{kBytesOfTable}))
            return false;
        copy.outputs = {add({.type = made.value()[0]})};
        // A kernel may refuse a byte that never comes.
        if (!make_constant(tables_, copy).ok()) return false;
        tabled_[node.outputs[0]] = copy.outputs[0];
        return true;
    }
    ValueId tabled(ValueId id) const { return id == kNoValue ? kNoValue : tabled_[id]; }
    ValueId number(ValueId id) {
        const Value& v = graph_.value(id);
        return add({.kind = ValueKind::constant, .type = {v.type.dtype, {}}, .constant = v.constant});
    }
    Result<ValueId> all_bytes(DType type) {
        std::vector<std::uint8_t> bytes(kBytesOfTable);
        std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
        HR_ASSIGN(auto made, copy_constant(std::as_bytes(std::span(bytes)), "all bytes"));
        return add(
            {.kind = ValueKind::constant, .type = {type, {kBytesOfTable}}, .constant = std::move(made)});
    }
    ValueId add(Value value) {
        tables_.values.push_back(std::move(value));
        return static_cast<ValueId>(tables_.values.size() - 1);
    }

    Status look_up(Node& node, ValueId root) {
        // A value that is only made real and rounded again is left to the ops that move bytes.
        if (producer(graph_, node.inputs[0], "dequantize_linear")) return success();
        const Value& table = tables_.value(tabled_[node.outputs[0]]);
        graph_.values.push_back(
            {.kind = ValueKind::constant, .type = table.type, .constant = table.constant});
        root_.push_back(kNoValue), tabled_.push_back(kNoValue);
        node.op = &catalog_op("byte_table");
        HR_ASSIGN(node.attrs, node.op->make_attrs({}));
        node.inputs = {root, static_cast<ValueId>(graph_.values.size() - 1)};
        ++lookups_;
        return success();
    }

    Graph& graph_;
    Graph tables_;
    std::vector<ValueId> root_;    ///< of each value the bytes that it is a function of
    std::vector<ValueId> tabled_;  ///< of each value what it is for all bytes, in tables_
    std::int64_t lookups_ = 0;
};

/// Makes one table of 256 bytes of what lies between dequantize_linear and quantize_linear and depends,
/// element by element, on one byte alone: activations spelt out, also with roundings between.
Result<Counts> look_up_functions_of_bytes(Graph& graph, const PassContext& context) {
    if (!context.runs_on_cpu || !context.uses_packed_kernels) return Counts{};
    return ByteFunctions(graph).run(context);
}

}  // namespace

Pass look_up_functions_of_bytes_pass() {
    // It follows the passes that make integer ops: what these have taken they keep.
    return {.name = "look_up_functions_of_bytes",
            .summary = "makes tables of functions of one quantised number",
            .run = &look_up_functions_of_bytes,
            .after = {"fake_quantization_to_integer"}};
}

}  // namespace headrace
