#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "ir/constant.h"
#include "ops/catalog.h"
#include "passes/eliminate_dead_code.h"
#include "passes/fused_matmul.h"
#include "passes/pass.h"
#include "passes/quantized_values.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// What a relu or clamp leaves of real numbers.
struct Limits {
    double low = -kInfinity, high = kInfinity;

    bool is_open() const { return low == -kInfinity && high == kInfinity; }
    /// These limits after others.
    void follow(double inner_low, double inner_high) {
        const double least = low;
        low = std::clamp(inner_low, least, high);
        high = std::clamp(inner_high, least, high);
    }
};

/// Ops that only move numbers, or choose among them by size.
constexpr std::array<OpName, 6> kMovers{"concat", "expand", "max_pool2d", "reshape", "slice", "transpose"};

/// The ways in which a node that quantizes can be computed from bytes.
class Int8Numbers {
public:
    explicit Int8Numbers(Graph& graph)
        : graph_(graph), uses_(count_uses(graph)), instead_(graph.nodes.size()), by_(graph.values.size()) {}

    Result<Counts> run(const PassContext& context) {
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            const auto result = quantized_scale(graph_, graph_.nodes[i]);
            if (!result) continue;
            node_ = i, result_ = *result;
            HR_TRY(compute(graph_.nodes[i].inputs[0]));
        }
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            node_ = i;
            HR_TRY(multiply_to_real());
        }
        if (std::ranges::all_of(counts_, [](const auto& count) { return count.second == 0; })) return counts_;
        apply();
        HR_TRY(eliminate_dead_code(graph_, context));  // what made real numbers
        return counts_;
    }

private:
    ValueId quantized() const { return graph_.nodes[node_].outputs[0]; }

    /// What node_ rounds, from bytes, where one of our kernels does that.
    Status compute(ValueId real) {
        Limits limits;
        while (const Node* limit = limiting_node(real)) {
            is(*limit, "relu") ? limits.follow(0, kInfinity)
                               : limits.follow(clamp_limit(*limit, "min_value").value_or(-kInfinity),
                                               clamp_limit(*limit, "max_value").value_or(kInfinity));
            real = limit->inputs[0];
        }
        HR_ASSIGN(bool done, compute_convolution(real, limits));
        if (!done) {
            HR_ASSIGN(done, compute_product(real, limits));
        }
        if (!done) {
            HR_ASSIGN(done, compute_sum(real, limits));
        }
        if (!done && limits.is_open()) HR_TRY(move(real));
        return success();
    }

    bool is_used_once(ValueId id) const { return uses_[static_cast<std::size_t>(id)] == 1; }
    /// The node by which a value is limited, if nothing else reads that.
    const Node* limiting_node(ValueId real) const {
        if (!is_used_once(real)) return nullptr;
        const Node* clamp = producer(graph_, real, "clamp");
        return clamp ? clamp : producer(graph_, real, "relu");
    }

    // --- convolutions and products

    Result<bool> compute_convolution(ValueId real, const Limits& limits) {
        const Node* conv = producer(graph_, real, "conv2d");
        if (!conv || !is_used_once(real)) return false;
        const auto x = dequantized(graph_, conv->inputs[0]);
        const auto order = attr<std::string>(*conv, "filter_layout");
        const int axis = static_cast<int>(order.find('o'));
        const auto filter = int8_weights(graph_, conv->inputs[1], axis);
        if (!x || !filter) return false;
        HR_ASSIGN(auto operands,
                  sum_operands(*x, *filter, conv->inputs.size() > 2 ? conv->inputs[2] : kNoValue, axis));
        if (operands.empty()) return false;
        NamedAttrs attrs = named_attrs(*conv);
        const bool is_first = attr<std::string>(*conv, "input_layout") == "nchw";
        for (auto& [name, value] : attrs)
            if (name == "input_layout") value = std::string("nhwc");
        add_limits(attrs, limits);
        HR_ASSIGN(const bool can, has_kernel("quantized_conv2d", operands, attrs));
        if (!can) return false;
        const std::string label = conv->label;
        if (!is_first) {
            HR_TRY(add("quantized_conv2d", std::move(operands), attrs, label, quantized()));
        } else {
            // Our kernels have channels last; choose_layouts takes away what is turned to and fro.
            HR_ASSIGN(operands[0], transposed(operands[0], {0, 2, 3, 1}, label));
            HR_ASSIGN(const ValueId last, add("quantized_conv2d", std::move(operands), attrs, label));
            HR_TRY(transposed(last, {0, 3, 1, 2}, label, quantized()));
        }
        ++counts_["products"];
        return true;
    }

    Result<bool> compute_product(ValueId real, const Limits& limits) {
        const Value& value = graph_.value(real);
        if (value.kind != ValueKind::result || !is_used_once(real)) return false;
        const Node& node = graph_.node(value.producer);
        const auto product = fused_matmul(graph_, node);
        if (!product || product->residual != kNoValue || product->activation != "none") return false;
        const int axis = product->transpose_b ? 0 : 1;
        const auto a = dequantized(graph_, product->a);
        const auto b = int8_weights(graph_, product->b, axis);
        if (!a || !b || graph_.value(a->bytes).type.rank() < 2) return false;
        HR_ASSIGN(auto operands, sum_operands(*a, *b, product->bias, axis));
        if (operands.empty()) return false;
        NamedAttrs attrs{{"transpose_b", product->transpose_b}};
        add_limits(attrs, limits);
        HR_ASSIGN(const bool can, has_kernel("quantized_matmul", operands, attrs));
        if (!can) return false;
        HR_TRY(add("quantized_matmul", std::move(operands), attrs, node.label, quantized()));
        is_taken_.insert(real);
        ++counts_["products"];
        return true;
    }

    /// A product whose result nothing quantizes: its exact sums times the scales, plus its bias, as real
    /// numbers.
    Status multiply_to_real() {
        const Node node = graph_.nodes[node_];
        const auto product = fused_matmul(graph_, node);
        if (!product || is_taken_.contains(node.outputs[0]) || product->residual != kNoValue ||
            product->activation != "none")
            return success();
        const int axis = product->transpose_b ? 0 : 1;
        const auto a = dequantized(graph_, product->a);
        const auto b = int8_weights(graph_, product->b, axis);
        if (!a || !b || graph_.value(a->bytes).type.rank() < 2) return success();
        std::vector<float> scales;
        for (const float scale : b->scales) scales.push_back(a->scale.scale * scale);
        if (!std::ranges::all_of(scales, [](float scale) { return std::isnormal(scale); })) return success();
        HR_ASSIGN(ValueId matrix, cleared_weights(graph_, *b, axis));
        by_.grow(graph_.values.size());
        if (product->transpose_b) {
            HR_ASSIGN(matrix, transposed(matrix, {1, 0}, node.label));
        }
        HR_ASSIGN(const ValueId zero, zero_point(a->scale));
        const std::vector<ValueId> operands{by_(a->bytes), matrix, zero};
        HR_ASSIGN(const bool can, has_kernel("matmul_integer", operands, {}));
        if (!can) {
            instead_[node_].clear();
            return success();
        }
        HR_ASSIGN(const ValueId sums, add("matmul_integer", operands, {}, node.label));
        HR_ASSIGN(const ValueId real, add("cast", {sums}, {{"data_type", DType::f32}}, node.label));
        HR_ASSIGN(const ValueId factors, list(scales));
        const ValueId bias = product->bias, result = node.outputs[0];
        HR_ASSIGN(const ValueId scaled,
                  add("mul", {real, factors}, {}, node.label, bias == kNoValue ? result : kNoValue));
        if (bias != kNoValue) HR_TRY(add("add", {scaled, bias}, {}, node.label, result));
        ++counts_["real_products"];
        return success();
    }

    /// Operands of a quantized_conv2d or quantized_matmul; none where the bias is no constant list.
    Result<std::vector<ValueId>> sum_operands(const Int8Value& x, const Int8Weights& weights, ValueId bias,
                                              int axis) {
        std::vector<double> units;
        std::vector<float> scales;
        for (const float scale : weights.scales) {
            units.push_back(static_cast<double>(x.scale.scale) * static_cast<double>(scale));
            scales.push_back(x.scale.scale * scale / result_.scale);
            if (!std::isfinite(scales.back()) || !std::isnormal(x.scale.scale * scale))
                return std::vector<ValueId>();
        }
        std::optional<std::vector<float>> shifts;
        if (bias != kNoValue) {
            shifts = in_units(graph_, bias, units);
            if (!shifts) return std::vector<ValueId>();
        }
        std::vector<ValueId> operands(6, kNoValue);
        operands[0] = by_(x.bytes);
        HR_ASSIGN(operands[1], cleared_weights(graph_, weights, axis));
        if (shifts) {
            HR_ASSIGN(operands[2], list(*shifts));
        }
        HR_ASSIGN(operands[3], list(scales));
        HR_ASSIGN(operands[4], zero_point(x.scale));
        HR_ASSIGN(operands[5], zero_point(result_));
        return operands;
    }

    // --- sums

    Result<bool> compute_sum(ValueId real, const Limits& limits) {
        const Node* node = producer(graph_, real, "add");
        if (!node || !is_used_once(real)) return false;
        const auto a = dequantized(graph_, node->inputs[0]), b = dequantized(graph_, node->inputs[1]);
        if (!a || !b || graph_.value(a->bytes).type.shape != graph_.value(b->bytes).type.shape) return false;
        // As ONNX Runtime has it: sums that lie between two integers are rounded alike.
        const float a_ratio = a->scale.scale / result_.scale, b_ratio = b->scale.scale / result_.scale;
        const float a_shift = a_ratio * static_cast<float>(a->scale.zero),
                    b_shift = b_ratio * static_cast<float>(b->scale.zero), shifts = a_shift + b_shift;
        if (!std::isfinite(shifts)) return false;
        std::vector<ValueId> operands{by_(a->bytes), by_(b->bytes)};
        for (const float x : {a_ratio, b_ratio, static_cast<float>(result_.zero) - shifts}) {
            HR_ASSIGN(const ValueId id, number(x));
            operands.push_back(id);
        }
        NamedAttrs attrs{{"data_type", result_.type}};
        add_limits(attrs, limits);
        HR_TRY(add("quantized_add", std::move(operands), attrs, node->label, quantized()));
        ++counts_["sums"];
        return true;
    }

    // --- what only moves

    /// Bytes of the same scale and zero point move as real numbers do.
    Status move(ValueId real) {
        constexpr int kMostMoves = 16;
        if (!can_move(real, kMostMoves)) return success();
        HR_ASSIGN(const ValueId bytes, moved(real, quantized()));
        if (bytes != quantized()) by_.replace(quantized(), bytes);
        is_replaced_.push_back(node_);
        ++counts_["moves"];
        return success();
    }
    bool can_move(ValueId real, int most) const {
        if (const auto integer = dequantized(graph_, real)) return integer->scale == result_;
        const Value& value = graph_.value(real);
        if (value.kind != ValueKind::result || most == 0 || !is_used_once(real)) return false;
        const Node& node = graph_.node(value.producer);
        if (std::ranges::none_of(kMovers, [&](OpName name) { return is(node, name); }) ||
            node.outputs.size() != 1)
            return false;
        return is(node, "concat")
                   ? std::ranges::all_of(node.inputs, [&](ValueId id) { return can_move(id, most - 1); })
                   : can_move(node.inputs[0], most - 1);
    }
    Result<ValueId> moved(ValueId real, ValueId result = kNoValue) {
        if (const auto integer = dequantized(graph_, real)) return by_(integer->bytes);
        const Node node = graph_.node(graph_.value(real).producer);
        std::vector<ValueId> operands = node.inputs;
        const std::size_t moving = is(node, "concat") ? operands.size() : 1;
        for (std::size_t i = 0; i < moving; ++i) {
            HR_ASSIGN(operands[i], moved(operands[i]));
        }
        return add(OpName(*node.op), std::move(operands), named_attrs(node), node.label, result);
    }

    // --- nodes and constants

    void add_limits(NamedAttrs& attrs, const Limits& limits) const {
        attrs.emplace_back("min_value", std::int64_t{result_.integer(limits.low)});
        attrs.emplace_back("max_value", std::int64_t{result_.integer(limits.high)});
    }

    Result<bool> has_kernel(OpName op, const std::vector<ValueId>& operands, const NamedAttrs& attrs) const {
        const OpDef* def = &catalog_op(op);
        Node node{.op = def, .attrs = {}, .inputs = operands, .outputs = {}, .label = {}};
        HR_ASSIGN(node.attrs, def->make_attrs(attrs));
        const auto types = graph_.operand_types(node);
        constexpr std::array constants{false, true, true, true, true, true};
        return std::ranges::any_of(def->kernels, [&](const KernelDef& kernel) {
            return kernel.applies(Operands(types), constants, node.attrs.get());
        });
    }

    /// A node before what comes in the place of node_; its result is new unless it is named.
    Result<ValueId> add(OpName op, std::vector<ValueId> operands, const NamedAttrs& attrs,
                        const std::string& label, ValueId result = kNoValue) {
        const OpDef* def = &catalog_op(op);
        Node node{.op = def, .attrs = {}, .inputs = std::move(operands), .outputs = {}, .label = label};
        HR_ASSIGN(node.attrs, def->make_attrs(attrs));
        const auto types = graph_.operand_types(node);
        auto inferred = check_and_infer(*def, Operands(types), node.attrs.get());
        if (!inferred.ok()) return inferred.error().within(node.title());
        if (result == kNoValue) result = new_value({.type = std::move(inferred).value()[0]});
        node.outputs = {result};
        instead_[node_].push_back(std::move(node));
        return result;
    }
    Result<ValueId> transposed(ValueId id, std::vector<std::int64_t> axes, const std::string& label,
                               ValueId result = kNoValue) {
        return add("transpose", {id}, {{"permutation", std::move(axes)}}, label, result);
    }

    ValueId new_value(Value value) {
        graph_.values.push_back(std::move(value));
        by_.grow(graph_.values.size());
        return static_cast<ValueId>(graph_.values.size() - 1);
    }
    template <class T>
    Result<ValueId> constant(DType type, Shape shape, std::span<const T> elements) {
        HR_ASSIGN(auto made, copy_constant(std::as_bytes(elements), "a scale or zero point"));
        return new_value(
            {.kind = ValueKind::constant, .type = {type, std::move(shape)}, .constant = std::move(made)});
    }
    Result<ValueId> list(const std::vector<float>& numbers) {
        return constant<float>(DType::f32, {static_cast<std::int64_t>(numbers.size())}, numbers);
    }
    Result<ValueId> number(float x) { return constant<float>(DType::f32, {}, {&x, 1}); }
    Result<ValueId> zero_point(const Int8Scale& scale) {
        const auto byte = static_cast<std::int8_t>(scale.zero);
        return constant<std::int8_t>(scale.type, {}, {&byte, 1});
    }

    void apply() {
        std::vector<Node> nodes;
        for (std::size_t i = 0; i < instead_.size(); ++i) {
            const bool is_gone = std::ranges::binary_search(is_replaced_, i);
            if (instead_[i].empty() && !is_gone) instead_[i].push_back(std::move(graph_.nodes[i]));
            for (Node& node : instead_[i]) {
                by_.rewrite_operands(node);
                nodes.push_back(std::move(node));
            }
        }
        by_.rewrite_outputs(graph_);
        graph_.nodes = std::move(nodes);
        graph_.compact(std::vector<bool>(graph_.nodes.size(), true));
    }

    Graph& graph_;
    std::vector<std::int32_t> uses_;
    std::vector<std::vector<Node>> instead_;
    std::vector<std::size_t> is_replaced_;  ///< nodes that something moved stands for, ascending
    Replacements by_;
    std::size_t node_ = 0;
    Int8Scale result_;
    std::set<ValueId> is_taken_;  ///< products that are quantized where they are computed
    Counts counts_{{"products", 0}, {"real_products", 0}, {"sums", 0}, {"moves", 0}};
};

/// Lets what lies between dequantize_linear and quantize_linear of bytes with one scale be computed in
/// integers, where the CPU runs it: convolutions and products with constant weights, bias and limits among
/// them, sums, and what only moves numbers; products that nothing quantizes become real numbers after their
/// exact sums. Results differ from those of real numbers by at most one step,
/// where these were not rounded as exactly.
Result<Counts> fake_quantization_to_integer(Graph& graph, const PassContext& context) {
    if (!context.runs_on_cpu || !context.uses_packed_kernels) return Counts{};
    return Int8Numbers(graph).run(context);
}

}  // namespace

Pass fake_quantization_to_integer_pass() {
    return {.name = "fake_quantization_to_integer",
            .summary = "leaves out real numbers between operations on quantised ones",
            .run = &fake_quantization_to_integer,
            .after = {"promote_half_floats", "hoist_recurrent_input_projection"}};
}

}  // namespace headrace
