#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

#include "base/file_pages.h"
#include "ir/constant.h"
#include "passes/eliminate_dead_code.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

constexpr std::size_t kFilter = 1, kBias = 2;  // operands of conv2d

/// The elements of a constant of f32, which may lie at any place.
class FloatList {
public:
    FloatList() = default;
    explicit FloatList(const std::byte* data) : data_(data) {}
    explicit operator bool() const { return data_ != nullptr; }
    float operator[](std::size_t i) const {
        float element;
        std::memcpy(&element, data_ + i * sizeof(element), sizeof(element));
        return element;
    }

private:
    const std::byte* data_ = nullptr;
};

/// A constant list of f32, or none.
FloatList list_of(const Graph& graph, const Node& node, std::size_t operand) {
    if (operand >= node.inputs.size() || node.inputs[operand] == kNoValue) return {};
    const Value& v = graph.value(node.inputs[operand]);
    const bool is_plain =
        v.kind == ValueKind::constant && v.type.dtype == DType::f32 && v.type.format == BlockFormat::plain;
    return is_plain ? FloatList(v.constant->bytes.data()) : FloatList();
}

bool is_absent(const Node& node, std::size_t operand) {
    return operand >= node.inputs.size() || node.inputs[operand] == kNoValue;
}

/// A normalisation as y = factor · x + offset, by channel.
struct Affine {
    std::vector<double> factor, offset;
};

std::optional<Affine> affine_of(const Graph& graph, const Node& norm) {
    const FloatList mean = list_of(graph, norm, 1), variance = list_of(graph, norm, 2),
                    scale = list_of(graph, norm, 3), bias = list_of(graph, norm, 4);
    if (!mean || !variance || (!scale && !is_absent(norm, 3)) || (!bias && !is_absent(norm, 4)))
        return std::nullopt;
    const auto channels = static_cast<std::size_t>(graph.value(norm.inputs[1]).type.elements());
    const auto epsilon = attr<double>(norm, "epsilon");
    Affine a;
    for (std::size_t c = 0; c < channels; ++c) {
        const double factor = (scale ? scale[c] : 1.0) / std::sqrt(variance[c] + epsilon);
        a.factor.push_back(factor);
        a.offset.push_back((bias ? bias[c] : 0.0) - mean[c] * factor);
    }
    return a;
}

ValueId add_constant(Graph& graph, TensorType type, std::shared_ptr<const Constant> constant) {
    graph.values.push_back({.kind = ValueKind::constant, .type = std::move(type)});
    graph.values.back().constant = std::move(constant);
    return static_cast<ValueId>(graph.values.size() - 1);
}

/// Whether the factors stay beside a filter, which is multiplied as it is packed, so that it is not in memory
/// twice. What devices and files of quantised weights read has its elements.
bool stays_beside_factors(const TensorType& filter, const PassContext& context) {
    constexpr std::size_t kLeastBytes = std::size_t{64} << 10;
    return context.runs_on_cpu && context.weights == BlockFormat::plain && filter.bytes() >= kLeastBytes;
}

/// The filter with each output channel's elements multiplied; `within` of them follow one another.
Result<ValueId> scaled_filter(Graph& graph, const Node& conv, const Affine& a, std::size_t within,
                              const PassContext& context, const FilePages& pages) {
    const TensorType type = graph.value(conv.inputs[kFilter]).type;
    const Constant& plain = *graph.value(conv.inputs[kFilter]).constant;
    ElementFactors factors{a.factor, within};
    if (plain.factors)
        std::ranges::transform(a.factor, plain.factors->values, factors.values.begin(), std::multiplies());
    Constant multiplied{.bytes = plain.bytes,
                        .owner = plain.owner,
                        .mapped = plain.mapped,
                        .key = "",
                        .factors = std::make_shared<const ElementFactors>(std::move(factors))};
    if (stays_beside_factors(type, context))
        return add_constant(graph, type, std::make_shared<const Constant>(std::move(multiplied)));
    HR_ASSIGN(auto elements, aligned_copy(multiplied, &pages));
    return add_constant(graph, type, own_constant(std::move(elements), type.bytes()));
}

Result<ValueId> moved_bias(Graph& graph, const Node& conv, const Affine& a) {
    const auto channels = static_cast<std::int64_t>(a.factor.size());
    const TensorType type{DType::f32, {channels}};
    HR_ASSIGN(auto bytes, AlignedBuffer::allocate(type.bytes(), "a folded bias"));
    const FloatList from = list_of(graph, conv, kBias);
    float* to = reinterpret_cast<float*>(bytes.data());
    for (std::size_t c = 0; c < a.factor.size(); ++c)
        to[c] = static_cast<float>((from ? from[c] : 0.0) * a.factor[c] + a.offset[c]);
    return add_constant(graph, type, own_constant(std::move(bytes)));
}

/// The number of elements that each of the filter's output channels has in a row in memory.
std::size_t elements_within_channel(const Graph& graph, const Node& conv) {
    const auto sizes = graph.value(conv.inputs[kFilter]).type.sizes();
    const auto layout = attr<std::string>(conv, "filter_layout");
    if (layout == "hwio" || layout == "ihwo") return 1;
    return static_cast<std::size_t>(sizes[1] * sizes[2] * sizes[3]);
}

bool is_along_channels(const Node& norm, const Node& conv) {
    const auto axis = attr<std::int64_t>(norm, "axis");
    return (axis < 0 ? axis + 4 : axis) == (attr<std::string>(conv, "input_layout") == "nchw" ? 1 : 3);
}

/// Multiplies a batch normalisation of constants into the constant filter and bias of the conv2d before it.
Result<Counts> fold_batch_normalization(Graph& graph, const PassContext& context) {
    const auto uses = count_uses(graph);
    std::vector<bool> keep(graph.nodes.size(), true);
    std::int64_t folded = 0;
    const FilePages pages;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& norm = graph.nodes[i];
        if (!is(norm, "batch_normalization")) continue;
        const ValueId between = norm.inputs[0], result = norm.outputs[0];
        if (graph.value(between).kind != ValueKind::result || uses[static_cast<std::size_t>(between)] != 1)
            continue;
        const NodeId at = graph.value(between).producer;
        const Node& conv = graph.node(at);
        if (!is(conv, "conv2d") || !list_of(graph, conv, kFilter) || !is_along_channels(norm, conv) ||
            (!list_of(graph, conv, kBias) && !is_absent(conv, kBias)))
            continue;
        const auto affine = affine_of(graph, norm);
        if (!affine) continue;
        HR_ASSIGN(const ValueId filter,
                  scaled_filter(graph, conv, *affine, elements_within_channel(graph, conv), context, pages));
        HR_ASSIGN(const ValueId bias, moved_bias(graph, conv, *affine));
        Node& changed = graph.nodes[static_cast<std::size_t>(at)];
        changed.inputs = {changed.inputs[0], filter, bias};
        changed.outputs = {result};
        graph.value(result).producer = at;
        keep[i] = false;
        ++folded;
    }
    graph.compact(keep);
    HR_TRY(eliminate_dead_code(graph, context));
    return Counts{{"normalizations", folded}};
}

}  // namespace

Pass fold_batch_normalization_pass() {
    return {.name = "fold_batch_normalization",
            .summary = "multiplies normalisations into the convolutions before them",
            .run = &fold_batch_normalization,
            .after = {"eliminate_common_subexpressions"}};
}

}  // namespace headrace
