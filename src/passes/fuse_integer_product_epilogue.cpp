#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/constant.h"
#include "ops/catalog.h"
#include "passes/eliminate_dead_code.h"
#include "passes/epilogue_fusion.h"
#include "passes/fused_matmul.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

/// A dequantized_matmul in the making.
struct IntegerEpilogue {
    std::vector<NodeId> parts;   ///< the nodes that it replaces; it computes the result of the last
    ValueId a_scale = kNoValue;  ///< none: 1
    ValueId b_scale = kNoValue, bias = kNoValue, residual = kNoValue;
    std::string activation = "none";

    bool has_activation() const { return activation != "none"; }
};

class IntegerProductFusion {
public:
    IntegerProductFusion(Graph& graph, const OpDef& fused)
        : graph_(graph), fused_(fused), followers_(graph) {}

    Result<Counts> run(const PassContext& context) {
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            HR_ASSIGN(auto epilogue, product(static_cast<NodeId>(i)));
            if (!epilogue) continue;
            while (extend(*epilogue)) continue;
            HR_TRY(replace(*epilogue));
            ++counts_["products"];
            counts_["biases"] += epilogue->bias != kNoValue;
            counts_["activations"] += epilogue->has_activation();
            counts_["residuals"] += epilogue->residual != kNoValue;
        }
        followers_.compact();
        if (counts_["products"] > 0) HR_TRY(eliminate_dead_code(graph_, context));  // scales multiplied
        return counts_;
    }

private:
    const TensorType& type(ValueId id) const { return graph_.value(id).type; }

    /// Sums that become real numbers and are multiplied by a scale, as the beginning.
    Result<std::optional<IntegerEpilogue>> product(NodeId id) {
        const std::optional<IntegerEpilogue> none;
        if (!followers_.is_kept(id) || !is(graph_.node(id), "matmul_integer")) return none;
        if (graph_.value(graph_.node(id).inputs[1]).kind != ValueKind::constant) return none;
        IntegerEpilogue e{.parts = {id}};
        const NodeId cast = followers_.only_reader(e.parts);
        if (cast < 0 || !is(graph_.node(cast), "cast")) return none;
        const ValueId real = graph_.node(cast).outputs[0];
        if (type(real).dtype != DType::f32) return none;
        e.parts.push_back(cast);
        const NodeId mul = followers_.next(e.parts);
        if (mul < 0 || !is(graph_.node(mul), "mul")) return none;
        HR_ASSIGN(const bool is_scaled, set_scales(e, other_addend(graph_.node(mul), real), real));
        if (!is_scaled || !are_current(mul, e)) return none;
        e.parts.push_back(mul);
        return std::optional(std::move(e));
    }
    ValueId operand(const IntegerEpilogue& e, std::size_t i) const {
        const Node& node = graph_.node(e.parts[0]);
        return i < node.inputs.size() ? node.inputs[i] : kNoValue;
    }
    /// The fused node runs where its last part did.
    bool are_current(NodeId at, const IntegerEpilogue& e) const {
        return followers_.are_current(at, {operand(e, 0), operand(e, 2), e.a_scale, e.bias, e.residual});
    }

    /// A scale of a times the constant ones of b's columns, or one of both alone.
    Result<bool> set_scales(IntegerEpilogue& e, ValueId scale, ValueId real) {
        if (is_constant(scale)) return set_column_scales(e, scale, real);
        if (const Node* product = producer(graph_, scale, "mul"))
            for (std::size_t i = 0; i < 2; ++i) {
                const ValueId a_scale = product->inputs[i], b_scale = product->inputs[1 - i];
                if (!is_one_number(a_scale) || !is_constant(b_scale)) continue;
                e.a_scale = a_scale;
                return set_column_scales(e, b_scale, real);
            }
        if (!is_one_number(scale)) return false;
        e.a_scale = scale;
        HR_ASSIGN(const ValueId one, constant({}, {1}));
        return set_column_scales(e, one, real);
    }
    bool is_constant(ValueId id) const { return graph_.value(id).kind == ValueKind::constant; }
    bool is_one_number(ValueId id) const { return type(id) == TensorType{DType::f32, {}}; }

    /// A constant of one number or of one for each column, as a list of these.
    Result<bool> set_column_scales(IntegerEpilogue& e, ValueId scale, ValueId real) {
        const Value& value = graph_.value(scale);
        const Dim& columns = type(real).shape.back();
        if (value.type.dtype != DType::f32 || columns.is_symbolic()) return false;
        if (value.type.elements() == 1) {
            float one;  // memory that a caller lent may lie anywhere
            std::memcpy(&one, value.constant->bytes.data(), sizeof(one));
            HR_ASSIGN(e.b_scale,
                      constant({columns}, std::vector<float>(static_cast<std::size_t>(columns.size()), one)));
            return true;
        }
        if (!is_row(graph_, scale, real)) return false;
        e.b_scale = flattened(graph_, scale);
        return true;
    }
    Result<ValueId> constant(Shape shape, const std::vector<float>& numbers) {
        HR_ASSIGN(auto made, copy_constant(std::as_bytes(std::span(numbers)), "scales"));
        graph_.values.push_back({.kind = ValueKind::constant,
                                 .type = {DType::f32, std::move(shape)},
                                 .constant = std::move(made)});
        return static_cast<ValueId>(graph_.values.size() - 1);
    }

    /// Takes the only reader of the result so far into the epilogue, where it fits.
    bool extend(IntegerEpilogue& e) {
        auto longer = with_reader(graph_, followers_, fused_, e);
        if (!longer || !are_current(longer->parts.back(), *longer)) return false;
        e = *std::move(longer);
        return true;
    }

    Status replace(const IntegerEpilogue& e) {
        ValueId a_scale = e.a_scale;
        if (a_scale == kNoValue) {
            HR_ASSIGN(a_scale, constant({}, {1}));
        }
        const ValueId bias = e.bias == kNoValue ? kNoValue : flattened(graph_, e.bias);
        Node node{
            .op = &fused_,
            .attrs = {},
            .inputs = {operand(e, 0), operand(e, 1), operand(e, 2), a_scale, e.b_scale, bias, e.residual},
            .outputs = graph_.node(e.parts.back()).outputs,
            .label = followers_.label(e.parts)};
        HR_ASSIGN(node.attrs, fused_.make_attrs({{"activation", e.activation}}));
        followers_.replace(e.parts, std::move(node));
        return success();
    }

    Graph& graph_;
    const OpDef& fused_;
    EpilogueFusion followers_;
    Counts counts_{{"products", 0}, {"biases", 0}, {"activations", 0}, {"residuals", 0}};
};

/// Makes one dequantized_matmul of a matmul_integer with a constant matrix and what follows it: the scales of
/// both operands, bias, activation, residual; where the CPU runs it.
Result<Counts> fuse_integer_product_epilogue(Graph& graph, const PassContext& context) {
    if (!context.runs_on_cpu || !context.uses_packed_kernels) return Counts{};
    return IntegerProductFusion(graph, catalog_op("dequantized_matmul")).run(context);
}

}  // namespace

Pass fuse_integer_product_epilogue_pass() {
    // An epilogue would take parts of compositions.
    return {.name = "fuse_integer_product_epilogue",
            .summary = "joins product of integers, scales, bias, activation and residual",
            .run = &fuse_integer_product_epilogue,
            .after = {"recognize_compositions", "sink_reshapes", "fuse_matmul_epilogue"}};
}

}  // namespace headrace
