#include <algorithm>
#include <utility>

#include "ir/expression.h"
#include "ops/catalog.h"
#include "passes/fold_constants.h"
#include "passes/layout_choice.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

/// Extents that stand for symbols while prices are compared: batches are as small as they may be, images of
/// middle size.
SymbolBindings typical_extents(const Graph& graph) {
    constexpr std::int64_t kExtent = 64;
    SymbolBindings bindings;
    for (ValueId id : graph.inputs) {
        const Shape& shape = graph.value(id).type.shape;
        for (std::size_t i = 0; i < shape.size(); ++i)
            if (shape[i].is_symbolic())
                // "(n+1)" gets its number by way of n, from which other extents may be computed as well.
                for (const std::string& name : shape[i].expression().names())
                    bindings.emplace(
                        name, name == shape[i].str()
                                  ? std::clamp(i == 0 ? 1 : kExtent, shape[i].min_size(), shape[i].max_size())
                                  : kExtent);
    }
    for (const Node& node : graph.nodes)
        for (const std::string& symbol : counted_symbols(node)) bindings.emplace(symbol, kExtent);
    return bindings;
}

/// Writes the graph anew with each node's images in the order that was chosen for it.
class Ordering {
public:
    Ordering(Graph& graph, const ImageOrders& images, std::vector<ImageOrder> chosen)
        : graph_(graph),
          images_(images),
          chosen_(std::move(chosen)),
          transpose_(catalog_op("transpose")),
          reshape_(catalog_op("reshape")),
          values_(graph.values.size()),
          is_output_(graph.values.size()) {}

    Result<Counts> run() {
        std::vector<Node> nodes = std::exchange(graph_.nodes, {});
        for (const auto& [name, id] : graph_.outputs) is_output_[id] = true;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const std::vector<ValueId> results = nodes[i].outputs;
            HR_TRY(take(std::move(nodes[i]), chosen_[i]));
            for (ValueId id : results)
                if (is_output_[id]) HR_TRY(as_given(id));
        }
        for (auto& [name, id] : graph_.outputs) {
            HR_ASSIGN(id, as_given(id));
        }
        graph_.compact(std::vector<bool>(graph_.nodes.size(), true));
        return counts_;
    }

private:
    /// A value in both orders; none where nobody has asked for it yet.
    struct Both {
        ValueId first = kNoValue, last = kNoValue;
        ValueId& in(ImageOrder order) { return order == ImageOrder::last ? last : first; }
    };

    Status take(Node node, ImageOrder order) {
        if (order == ImageOrder::unknown) {
            for (ValueId& id : node.inputs) {
                HR_ASSIGN(id, as_given(id));
            }
            return keep(std::move(node));
        }
        if (images_.is_reordering(node)) {
            HR_ASSIGN(values_[node.outputs[0]].in(order), image(node.inputs[0], order));
            ++counts_["transpositions_removed"];
            return success();
        }
        const bool turns = images_.of_free(node) != order, is_stem = images_.is_stem(node);
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            ValueId& id = node.inputs[i];
            if (id == kNoValue) continue;
            HR_ASSIGN(id, images_.turns(node, i)            ? image(id, order)
                          : turns && may_broadcast(node, i) ? broadcast(id, order)
                                                            : as_given(id));
        }
        if (!turns) return keep(std::move(node));
        ++counts_["nodes_turned"];
        // That the node can turn was found out when it was given a say.
        HR_TRY(turn_attrs(node, order, is_stem));
        return keep_turned(std::move(node), order);
    }

    Status keep_turned(Node node, ImageOrder order) {
        const std::vector<ValueId> given = node.outputs;
        for (ValueId& id : node.outputs) {
            if (images_.of(id) == ImageOrder::unknown) continue;
            const ValueId turned = new_value();
            values_[id].in(order) = turned;
            id = turned;
        }
        return keep(std::move(node));
    }

    /// An image in an order.
    Result<ValueId> image(ValueId id, ImageOrder order) {
        if (images_.of(id) == ImageOrder::unknown) return id;
        Both& both = values_[id];
        if (both.in(order) != kNoValue) return both.in(order);
        if (both.in(other(order)) == kNoValue) both.in(images_.of(id)) = id;
        if (both.in(order) != kNoValue) return both.in(order);
        ++counts_["transpositions_inserted"];
        HR_ASSIGN(const ValueId turned, transposed(both.in(other(order)), order));
        values_[id].in(order) = turned;
        return turned;
    }
    Result<ValueId> as_given(ValueId id) {
        if (id == kNoValue) return id;
        return image(id, images_.of(id));
    }

    /// Whether an operand that is no image is in the place of one: a constant, and what is broadcast, but no
    /// table, which has a rank of its own.
    static bool may_broadcast(const Node& node, std::size_t i) {
        if (node.op->rule(static_cast<int>(i)).max_rank < 4) return false;
        return node.op->layout == LayoutRule::any ||
               (node.op->layout == LayoutRule::axes && node.op->variadic);
    }
    /// An operand that is broadcast to images, or a constant one, for images in another order than it was
    /// made for.
    Result<ValueId> broadcast(ValueId id, ImageOrder order) {
        const Shape& shape = graph_.value(id).type.shape;
        if (std::ranges::all_of(shape, [](const Dim& d) { return d.is(1); })) return id;
        if (shape.size() == 4) return transposed(id, order);
        Node node{.op = &reshape_, .inputs = {id}, .outputs = {}};
        Shape four(4 - shape.size(), Dim(1));
        four.insert(four.end(), shape.begin(), shape.end());
        HR_ASSIGN(node.attrs, reshape_.make_attrs({{"new_shape", four}}));
        node.outputs = {new_value()};
        const ValueId reshaped = node.outputs[0];
        HR_TRY(keep(std::move(node)));
        return transposed(reshaped, order);
    }

    Result<ValueId> transposed(ValueId id, ImageOrder to) {
        const auto axes = permutation_to(to);
        Node node{.op = &transpose_, .inputs = {id}, .outputs = {}};
        HR_ASSIGN(node.attrs, transpose_.make_attrs(
                                  {{"permutation", std::vector<std::int64_t>(axes.begin(), axes.end())}}));
        const ValueId turned = new_value();
        node.outputs = {turned};
        HR_TRY(keep(std::move(node)));
        return turned;
    }

    ValueId new_value() {
        graph_.values.emplace_back();
        return static_cast<ValueId>(graph_.values.size()) - 1;
    }

    Status keep(Node node) {
        const auto types = graph_.operand_types(node);
        auto inferred = check_and_infer(*node.op, Operands(types), node.attrs.get());
        if (!inferred.ok()) return inferred.error().within(node.title());
        for (std::size_t i = 0; i < node.outputs.size(); ++i) {
            Value& value = graph_.value(node.outputs[i]);
            value.type = std::move(inferred.value()[i]);
            value.output_index = static_cast<std::int32_t>(i);
        }
        graph_.nodes.push_back(std::move(node));
        return success();
    }

    Graph& graph_;
    const ImageOrders& images_;
    std::vector<ImageOrder> chosen_;
    const OpDef &transpose_, &reshape_;
    std::vector<Both> values_;  ///< by the ids of values that the graph had
    std::vector<bool> is_output_;
    Counts counts_{{"nodes_turned", 0}, {"transpositions_inserted", 0}, {"transpositions_removed", 0}};
};

/// Lets nodes work on images with their channels first or last, so that what their kernels gain and what
/// transpositions between them cost is the best in sum: OpDef::layout says who can.
Result<Counts> choose_layouts(Graph& graph, const PassContext& context) {
    const bool has_convolution = std::ranges::any_of(
        graph.nodes, [](const Node& node) { return node.op->layout == LayoutRule::channels; });
    if (!context.uses_packed_kernels || !has_convolution) return Counts{};
    const ImageOrders images(graph);
    auto typical = specialize(graph, typical_extents(graph));
    // Extents may have to go together in ways that only the model's owner knows.
    if (!typical.ok() || !typical.value().is_concrete()) return Counts{};
    HR_ASSIGN(auto chosen, choose_image_orders(typical.value(), images, context.low_memory));
    Graph ordered = graph;
    HR_ASSIGN(Counts counts, Ordering(ordered, images, std::move(chosen)).run());
    // The transpositions that a graph has anyway are taken away and put back.
    if (counts["nodes_turned"] == 0 && counts["transpositions_inserted"] >= counts["transpositions_removed"])
        return Counts{{"nodes_turned", 0}, {"transpositions_inserted", 0}, {"transpositions_removed", 0}};
    graph = std::move(ordered);
    // Constants that nodes broadcast are brought into their order now.
    PassContext once = context;  // what was folded before is a constant here
    once.fold.all_growth = 1;
    HR_TRY(fold_constants(graph, once));
    return counts;
}

}  // namespace

Pass choose_layouts_pass() {
    // The fusions come first: one node has one layout.
    return {.name = "choose_layouts",
            .summary = "puts the channels of images first or last, as kernels are fastest",
            .run = &choose_layouts,
            .after = {"fuse_matmul_epilogue", "fuse_integer_product_epilogue", "fuse_convolution_epilogue",
                      "allow_bf16_products"}};
}

}  // namespace headrace
