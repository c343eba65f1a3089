#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "ops/catalog.h"
#include "passes/fused_matmul.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

bool is_half(DType t) { return kHalfFloats.has(t); }

/// The graph's nodes in f32. A value keeps its id when its type becomes f32; readers that need the type it
/// had get a conversion, made once.
class Widening {
public:
    explicit Widening(Graph& graph)
        : graph_(graph), cast_(catalog_op("cast")), instead_(graph.values.size()) {
        for (const Value& v : graph.values) given_.push_back(v.type.dtype);
    }

    Result<Counts> run() {
        std::vector<Node> nodes = std::exchange(graph_.nodes, {});
        for (Node& node : nodes) HR_TRY(take(std::move(node)));
        for (auto& [name, id] : graph_.outputs) {
            HR_ASSIGN(id, as_given(id));
        }
        graph_.compact(without_unread_casts());
        return counts_;
    }

private:
    /// The nodes without the conversions whose only readers are products, which take half floats as they are.
    std::vector<bool> without_unread_casts() const {
        const auto uses = count_uses(graph_);
        std::vector<bool> keep;
        for (const Node& node : graph_.nodes)
            keep.push_back(node.op != &cast_ || uses[static_cast<std::size_t>(node.outputs[0])] > 0);
        return keep;
    }

    Status take(Node node) {
        const auto touches = [&](ValueId id) { return id != kNoValue && is_half(given_[id]); };
        if (!std::any_of(node.inputs.begin(), node.inputs.end(), touches) &&
            !std::any_of(node.outputs.begin(), node.outputs.end(), touches)) {
            HR_ASSIGN(const bool is_product, take_product(node));
            if (is_product) return success();
            instead_.rewrite_operands(node);
            return keep(std::move(node));
        }
        if (!node.op->is_pure() || moves_what_is_stored(node)) return keep_as_given(std::move(node));
        if (node.op == &cast_) return take_cast(std::move(node));
        HR_ASSIGN(const bool is_product, take_product(node));
        if (is_product) return success();
        return take_any(std::move(node));
    }

    /// A conversion is none between a half and f32, the form in which it goes on, and one to f32 where it
    /// made a half of another type; it stays at hand for those who need its result as it was. Who converts to
    /// a half and on at once wants the rounding.
    Status take_cast(Node node) {
        const ValueId to = node.outputs[0];
        const DType stored = given_[node.inputs[0]];
        const ValueId from = instead_(node.inputs[0]);
        const DType wanted = is_half(given_[to]) ? DType::f32 : given_[to];
        if (is_half(stored) && dropped_.contains({from, stored})) {
            HR_ASSIGN(node.inputs[0], converted(from, stored));
            return keep(std::move(node));
        }
        node.inputs[0] = from;
        if (graph_.value(from).type.dtype != DType::f32 && wanted == DType::f32) {
            if (given_[to] == DType::f32) dropped_.try_emplace({from, DType::f32}, node);
            HR_ASSIGN(const ValueId wide, converted(from, DType::f32));
            if (is_half(given_[to])) dropped_.try_emplace({wide, given_[to]}, std::move(node));
            if (wide != to) instead_.replace(to, wide);
            return success();
        }
        if (graph_.value(from).type.dtype == wanted) {
            dropped_.try_emplace({from, given_[to]}, std::move(node));
            instead_.replace(to, from);
            return success();
        }
        HR_ASSIGN(node.inputs[0],
                  converted(from, is_half(graph_.value(from).type.dtype) ? DType::f32
                                                                         : graph_.value(from).type.dtype));
        HR_ASSIGN(node.attrs, cast_.make_attrs({{"data_type", wanted}}));
        graph_.value(to).type.dtype = wanted;
        return keep(std::move(node));
    }

    /// The half-float constant that was widened to this value, or the value itself.
    ValueId before_widening(ValueId id) const {
        const Value& v = graph_.value(instead_(id));
        if (v.kind != ValueKind::result || v.producer >= static_cast<NodeId>(graph_.nodes.size())) return id;
        const Node& from = graph_.node(v.producer);
        if (from.op != &cast_ || v.type.dtype != DType::f32) return id;
        const Value& stored = graph_.value(from.inputs[0]);
        return stored.kind == ValueKind::constant && is_half(stored.type.dtype) ? from.inputs[0] : id;
    }

    /// A constant matrix stays as it is: half the bytes of f32, which the kernel widens as it reads.
    Result<bool> take_product(const Node& node) {
        auto product = fused_matmul(graph_, node);
        if (!product) return false;
        product->b = before_widening(product->b);
        const Value& b = graph_.value(product->b);
        if (b.kind != ValueKind::constant || !is_half(b.type.dtype)) return false;
        // bf16 was what the other operand was rounded to: processors that multiply bf16 may do so again.
        product->round_a |= b.type.dtype == DType::bf16 && given_[product->a] == DType::bf16;
        if (product->bias != kNoValue) product->bias = flattened(graph_, product->bias);
        follow_values();
        for (ValueId* id : {&product->a, &product->bias, &product->residual})
            if (*id != kNoValue) {
                HR_ASSIGN(*id, widened(*id));
            }
        HR_ASSIGN(Node fused, make_fused(graph_, *product, node.outputs, node.label));
        follow_values();
        graph_.value(fused.outputs[0]).type.dtype = DType::f32;
        ++counts_["products"];
        HR_TRY(keep(std::move(fused)));
        return true;
    }

    Status take_any(Node node) {
        Node wide = node;
        std::vector<TensorType> types(node.inputs.size());
        std::vector<const TensorType*> operands(node.inputs.size(), nullptr);
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            if (node.inputs[i] == kNoValue) continue;
            types[i] = graph_.value(instead_(node.inputs[i])).type;
            if (is_half(given_[node.inputs[i]])) types[i].dtype = DType::f32;
            operands[i] = &types[i];
        }
        const auto inferred = check_and_infer(*node.op, Operands(operands), node.attrs.get());
        const auto stays_half = [](const TensorType& t) { return is_half(t.dtype); };
        if (!inferred.ok() || std::any_of(inferred.value().begin(), inferred.value().end(), stays_half))
            return keep_as_given(std::move(node));
        for (ValueId& id : wide.inputs) {
            if (id == kNoValue) continue;
            HR_ASSIGN(id, is_half(given_[id]) ? widened(id) : Result<ValueId>(instead_(id)));
        }
        for (ValueId id : wide.outputs)
            if (is_half(given_[id])) graph_.value(id).type.dtype = DType::f32;
        ++counts_["nodes"];
        return keep(std::move(wide));
    }

    /// Rows of an embedding and slices of a cache are cheaper to convert than what they are taken from; a
    /// constant beside results in f32 (what a mask puts in their places) is not.
    bool moves_what_is_stored(const Node& node) const {
        if (node.op == &cast_) return false;
        bool begins_with_constant = false;
        for (std::size_t i = 0, half_floats = 0; i < node.inputs.size(); ++i) {
            const ValueId id = node.inputs[i];
            if (id == kNoValue || !is_half(given_[id])) continue;
            const Value& v = graph_.value(instead_(id));
            const bool is_moved = node.op->rule(static_cast<int>(i)).dtypes.has(DType::boolean);
            if (++half_floats == 1) {
                if (!is_moved || !is_half(v.type.dtype)) return false;
                begins_with_constant = v.kind == ValueKind::constant;
            } else if (begins_with_constant && !is_half(v.type.dtype)) {
                return false;
            }
        }
        return true;  // also where no operand is a half float
    }

    Status keep_as_given(Node node) {
        for (ValueId& id : node.inputs)
            if (id != kNoValue) {
                HR_ASSIGN(id, as_given(id));
            }
        return keep(std::move(node));
    }

    Status keep(Node node) {
        const auto at = static_cast<NodeId>(graph_.nodes.size());
        for (ValueId id : node.outputs) graph_.value(id).producer = at;
        graph_.nodes.push_back(std::move(node));
        return success();
    }

    Result<ValueId> widened(ValueId id) { return converted(instead_(id), DType::f32); }
    Result<ValueId> as_given(ValueId id) { return converted(instead_(id), given_[id]); }

    Result<ValueId> converted(ValueId id, DType to) {
        if (graph_.value(id).type.dtype == to) return id;
        const auto [it, is_new] = converted_.try_emplace({id, to}, kNoValue);
        if (!is_new) return it->second;
        ++counts_["conversions"];
        if (const auto dropped = dropped_.find({id, to}); dropped != dropped_.end()) {
            it->second = dropped->second.outputs[0];
            graph_.value(it->second).type.dtype = to;
            HR_TRY(keep(dropped->second));
            return it->second;
        }
        Node node{.op = &cast_, .inputs = {id}};
        HR_ASSIGN(node.attrs, cast_.make_attrs({{"data_type", to}}));
        it->second = static_cast<ValueId>(graph_.values.size());
        graph_.values.push_back({.type = {to, graph_.value(id).type.shape}});
        follow_values();
        node.outputs = {it->second};
        HR_TRY(keep(std::move(node)));
        return it->second;
    }

    /// Values were added to the graph.
    void follow_values() {
        for (std::size_t i = given_.size(); i < graph_.values.size(); ++i)
            given_.push_back(graph_.values[i].type.dtype);
        instead_.grow(graph_.values.size());
    }

    Graph& graph_;
    const OpDef& cast_;
    Replacements instead_;
    std::vector<DType> given_;  ///< by value: the dtype that it had
    std::map<std::pair<ValueId, DType>, ValueId> converted_;
    std::map<std::pair<ValueId, DType>, Node>
        dropped_;  ///< conversions of the graph that nobody has needed yet
    Counts counts_{{"nodes", 0}, {"products", 0}, {"conversions", 0}};
};

/// Computes what is in f16 or bf16 in f32, where the CPU runs it: results are rounded where the graph gives
/// them out, keeps them in a state or moves stored elements, not after each node. Constant matrices of
/// products keep their bytes.
Result<Counts> promote_half_floats(Graph& graph, const PassContext& context) {
    const bool has_halves = std::any_of(graph.values.begin(), graph.values.end(),
                                        [](const Value& v) { return is_half(v.type.dtype); });
    if (!context.runs_on_cpu || !has_halves) return Counts{};
    return Widening(graph).run();
}

}  // namespace

Pass promote_half_floats_pass() {
    return {.name = "promote_half_floats",
            .summary = "leaves f16 and bf16 to what is stored, where the CPU runs the graph",
            .run = &promote_half_floats,
            .after = {"eliminate_no_ops"}};
}

}  // namespace headrace
