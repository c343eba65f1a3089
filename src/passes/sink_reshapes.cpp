#include <algorithm>
#include <optional>
#include <utility>

#include "ops/catalog.h"
#include "passes/eliminate_dead_code.h"
#include "passes/eliminate_no_ops.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

using Axes = std::vector<std::int64_t>;

/// Rewrites the nodes in order, so that a reshape moves past all that follow it.
class Delay {
public:
    explicit Delay(Graph& graph)
        : graph_(graph),
          uses_(count_uses(graph)),
          maker_(graph.values.size(), -1),
          is_image_(graph.values.size(), false),
          reshape_(catalog_op("reshape")) {}

    Result<Counts> run() {
        for (Node& node : std::exchange(graph_.nodes, {})) {
            HR_ASSIGN(const bool is_delayed, is_elementwise(node)    ? pass_elementwise(node)
                                             : is(node, "transpose") ? pass_transpose(node)
                                                                     : Result<bool>(false));
            if (!is_delayed) keep(std::move(node));
        }
        graph_.compact(std::vector<bool>(graph_.nodes.size(), true));
        return Counts{{"reshapes_delayed", delayed_}};
    }

private:
    static bool is_elementwise(const Node& node) {
        return node.op->layout == LayoutRule::any && node.op->is_pure() && node.outputs.size() == 1;
    }

    const Node* maker(ValueId id) const {
        const std::int64_t at = id == kNoValue ? -1 : maker_[static_cast<std::size_t>(id)];
        return at < 0 ? nullptr : &graph_.nodes[static_cast<std::size_t>(at)];
    }

    /// The image that `id` is a reshape of, which nothing else reads. What convolutions, pools and those who
    /// follow them have computed is no view of a state, which might change before it is read.
    std::optional<ValueId> reshaped_image(ValueId id) const {
        const Node* reshape = maker(id);
        if (!reshape || reshape->op != &reshape_ || uses_[static_cast<std::size_t>(id)] != 1)
            return std::nullopt;
        const ValueId source = reshape->inputs[0];
        return is_image_[static_cast<std::size_t>(source)] ? std::optional(source) : std::nullopt;
    }

    bool is_scalar(ValueId id, int rank) const {
        const Value& value = graph_.value(id);
        return value.kind == ValueKind::constant && value.type.elements() == 1 && value.type.rank() <= rank;
    }

    /// f(reshape(x), …) becomes reshape(f(x, …)) where all operands were given their shape, or are numbers.
    Result<bool> pass_elementwise(Node& node) {
        const Shape *before = nullptr, &after = graph_.value(node.outputs[0]).type.shape;
        std::vector<ValueId> operands = node.inputs;
        for (ValueId& id : operands) {
            if (id == kNoValue) continue;
            const auto source = reshaped_image(id);
            if (!source) continue;
            const Shape& shape = graph_.value(*source).type.shape;
            if (graph_.value(id).type.shape != after || (before && *before != shape)) return false;
            before = &shape;
            id = *source;
        }
        if (!before) return false;
        const int rank = static_cast<int>(before->size());
        for (std::size_t i = 0; i < operands.size(); ++i)
            if (operands[i] != kNoValue && operands[i] == node.inputs[i] && !is_scalar(operands[i], rank))
                return false;
        return keep_before_reshape(node, std::move(operands));
    }

    /// A transposition of what was an image without its only row or column becomes one of the image.
    Result<bool> pass_transpose(Node& node) {
        const auto source = reshaped_image(node.inputs[0]);
        if (!source) return false;
        const auto axes =
            with_dropped_axis(graph_.value(*source).type.shape, graph_.value(node.inputs[0]).type.shape,
                              permutation_of(graph_, node));
        if (axes.empty()) return false;
        HR_ASSIGN(node.attrs, node.op->make_attrs({{"permutation", axes}}));
        return keep_before_reshape(node, {*source});
    }

    /// The permutation of `whole` that gives what `axes` gives of `part`, which lacks one dimension of one
    /// element; that stays in front of the one that follows it. Empty where this is not so.
    static Axes with_dropped_axis(const Shape& whole, const Shape& part, const Axes& axes) {
        if (whole.size() != part.size() + 1) return {};
        const std::int64_t dropped =
            std::mismatch(part.begin(), part.end(), whole.begin()).second - whole.begin();
        if (!whole[static_cast<std::size_t>(dropped)].is(1) || dropped + 1 == std::ssize(whole) ||
            !std::equal(whole.begin() + dropped + 1, whole.end(), part.begin() + dropped))
            return {};
        Axes all;
        for (const std::int64_t axis : axes) {
            if (axis == dropped) all.push_back(dropped);
            all.push_back(axis < dropped ? axis : axis + 1);
        }
        return all;
    }

    /// Keeps the node with other operands, and gives its result the shape that it had.
    Result<bool> keep_before_reshape(Node& node, std::vector<ValueId> operands) {
        Node reshape{.op = &reshape_, .inputs = {}, .outputs = node.outputs, .label = node.label};
        HR_ASSIGN(reshape.attrs,
                  reshape_.make_attrs({{"new_shape", graph_.value(node.outputs[0]).type.shape}}));
        node.inputs = std::move(operands);
        const auto types = graph_.operand_types(node);
        HR_ASSIGN(auto inferred, check_and_infer(*node.op, Operands(types), node.attrs.get()));
        graph_.values.push_back({.type = std::move(inferred[0])});
        const auto id = static_cast<ValueId>(graph_.values.size()) - 1;
        maker_.push_back(-1);
        uses_.push_back(1);
        is_image_.push_back(false);
        node.outputs = {id};
        reshape.inputs = {id};
        keep(std::move(node));
        keep(std::move(reshape));
        ++delayed_;
        return true;
    }

    void keep(Node node) {
        const bool has_image = std::ranges::any_of(node.inputs, [&](ValueId id) {
            return id != kNoValue && is_image_[static_cast<std::size_t>(id)];
        });
        const bool follows = is_elementwise(node) || is(node, "transpose");
        const bool is_image = node.op->layout == LayoutRule::channels || (follows && has_image);
        for (ValueId id : node.outputs) {
            maker_[static_cast<std::size_t>(id)] = static_cast<std::int64_t>(graph_.nodes.size());
            is_image_[static_cast<std::size_t>(id)] = is_image;
        }
        graph_.nodes.push_back(std::move(node));
    }

    Graph& graph_;
    std::vector<std::int32_t> uses_;
    std::vector<std::int64_t> maker_;  ///< of each value, in the new order
    std::vector<bool> is_image_;       ///< values that nodes with images have computed
    const OpDef& reshape_;
    std::int64_t delayed_ = 0;
};

/// Moves reshapes of images past element-wise nodes and transpositions, so that convolutions of one
/// dimension, which are images of one row, meet what follows them.
Result<Counts> sink_reshapes(Graph& graph, const PassContext& context) {
    const bool has_images = std::ranges::any_of(
        graph.nodes, [](const Node& node) { return node.op->layout == LayoutRule::channels; });
    if (!has_images) return Counts{{"reshapes_delayed", 0}};
    HR_ASSIGN(Counts counts, Delay(graph).run());
    HR_TRY(eliminate_dead_code(graph, context));
    HR_TRY(eliminate_no_ops(graph, context));  // a reshape that met the next one
    return counts;
}

}  // namespace

Pass sink_reshapes_pass() {
    // Compositions have reshapes in places of their own.
    return {.name = "sink_reshapes",
            .summary = "moves reshapes of images past what follows them",
            .run = &sink_reshapes,
            .after = {"recognize_compositions", "update_states_in_place"}};
}

}  // namespace headrace
