#include "passes/layout_choice.h"

#include <algorithm>
#include <memory>

#include "ir/packed_growth.h"
#include "passes/min_cut.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

using Side = MinCut::Node;

/// Prices are bytes of a value that is transposed: 1 MB takes about 150 µs on one thread. A convolution with
/// channels first copies its input and transposes its output, too, a piece at a time in the cache; one of
/// single pixels only copies, and a stem that writes its channels last need not transpose.
constexpr double kPointwise = 0.1, kStem = 0.5, kWindows = 1, kStridedDepthwise = 0.25;
/// In those 150 µs a core does 15 million operations, of which transformed filters save half, and products in
/// 16 bits as well.
constexpr double kHalfOfOperations = 0.03;
/// A transposed convolution with channels first gathers its filters in each run, and adds products that
/// overlap one by one.
constexpr double kTransposed = 0.2, kGatheredFilters = 4, kAddedProducts = 1;
/// With channels last, products with few columns leave most of a vector empty.
constexpr std::int64_t kFewColumns = 16;
constexpr double kEmptyLanes = -2;

double bytes_of(const TensorType& t) { return static_cast<double>(t.bytes()); }

std::int64_t channels_of(const TensorType& images, ImageOrder order) {
    return images.sizes()[order == ImageOrder::first ? 1 : 3];
}

/// A transposition of images of one pixel, or of one channel, moves nothing.
double price_of_transposing(const TensorType& t, ImageOrder order) {
    const auto sizes = t.sizes();
    const std::int64_t channels = channels_of(t, order);
    const std::int64_t pixels =
        sizes[order == ImageOrder::first ? 2 : 1] * sizes[order == ImageOrder::first ? 3 : 2];
    return channels == 1 || pixels == 1 ? 0 : bytes_of(t);
}

/// A node of a concrete graph as it would be in an order, `turned` with the attributes for it.
class Candidate {
public:
    Candidate(const Graph& graph, const ImageOrders& images, const Node& node, const Node& turned,
              ImageOrder order, bool low_memory)
        : node_(turned), low_memory_(low_memory) {
        types_.reserve(node.inputs.size());
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            const ValueId id = node.inputs[i];
            types_.push_back(id == kNoValue ? TensorType() : graph.value(id).type);
            if (id != kNoValue && images.turns(node, i) && images.of(id) != order)
                permute(types_.back(), order);
            operands_.push_back(nullptr);
        }
        for (std::size_t i = 0; i < types_.size(); ++i)
            if (node.inputs[i] != kNoValue) operands_[i] = &types_[i];
        constants_ = graph.constant_mask(node);
    }

    /// The first of our kernels that computes it, or null. With low memory those come first that do not grow
    /// weights.
    const KernelDef* kernel() const {
        const Operands in(operands_);
        const std::unique_ptr<bool[]> constants(new bool[constants_.size()]);
        std::copy(constants_.begin(), constants_.end(), constants.get());
        const KernelDef* grown = nullptr;
        for (const KernelDef& kernel : node_.op->kernels) {
            if (!kernel.applies(in, {constants.get(), constants_.size()}, node_.attrs.get())) continue;
            if (!low_memory_ || !grows_weights(kernel, in, node_.attrs.get())) return &kernel;
            if (!grown) grown = &kernel;
        }
        return grown;
    }
    /// How fast the best that computes it is likely to be: our kernel, ggml's op or the reference kernel.
    int speed() const {
        if (kernel()) return 2;
        return node_.op->lower && node_.op->lowerable(Operands(operands_), node_.attrs.get()).ok() ? 1 : 0;
    }

private:
    static void permute(TensorType& type, ImageOrder to) {
        Shape shape;
        for (std::int64_t axis : permutation_to(to))
            shape.push_back(type.shape[static_cast<std::size_t>(axis)]);
        type.shape = std::move(shape);
    }

    const Node& node_;
    const bool low_memory_;
    std::vector<TensorType> types_;
    std::vector<const TensorType*> operands_;
    std::vector<bool> constants_;
};

class Choice {
public:
    Choice(const Graph& graph, const ImageOrders& images, bool low_memory)
        : graph_(graph), images_(images), low_memory_(low_memory), sides_(graph.nodes.size(), -1) {}

    Result<std::vector<ImageOrder>> run() {
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) HR_TRY(add_node(i));
        add_conversions();
        const std::vector<bool> is_last = cut_.solve();
        std::vector<ImageOrder> orders(graph_.nodes.size(), ImageOrder::unknown);
        for (std::size_t i = 0; i < orders.size(); ++i)
            if (sides_[i] >= 0) orders[i] = is_last[sides_[i]] ? ImageOrder::last : ImageOrder::first;
        return orders;
    }

private:
    static constexpr Side kFirst = MinCut::kLeft, kLast = MinCut::kRight;
    static Side side_of(ImageOrder order) { return order == ImageOrder::last ? kLast : kFirst; }

    Status add_node(std::size_t i) {
        const Node& node = graph_.nodes[i];
        if (images_.is_reordering(node)) return sides_[i] = cut_.add_node(), success();
        const ImageOrder given = images_.of_free(node);
        if (given == ImageOrder::unknown) return success();
        Node turned = node;
        HR_ASSIGN(const bool can_turn, turn_attrs(turned, other(given), images_.is_stem(node)));
        if (!can_turn) return success();
        sides_[i] = cut_.add_node();
        const auto candidate = [&](ImageOrder order) {
            return Candidate(graph_, images_, node, order == given ? node : turned, order, low_memory_);
        };
        const Candidate first = candidate(ImageOrder::first), last = candidate(ImageOrder::last);
        if (first.speed() > last.speed()) cut_.pay(kFirst, sides_[i], MinCut::kNever);
        if (last.speed() > first.speed()) cut_.pay(sides_[i], kLast, MinCut::kNever);
        const auto gain = static_cast<std::int64_t>(gain_of_last(node, given, last.kernel()));
        if (gain >= 0)
            cut_.pay(sides_[i], kLast, gain);
        else
            cut_.pay(kFirst, sides_[i], -gain);
        return success();
    }

    /// What a node gains by working with channels last, by a kernel.
    double gain_of_last(const Node& node, ImageOrder given, const KernelDef* kernel) const {
        if (is(node, "conv_transpose2d")) return gain_of_transposed(node, given);
        if (!is(node, "conv2d") && !is(node, "fused_conv2d")) return 0;
        const TensorType &in = graph_.value(node.inputs[0]).type, &out = graph_.value(node.outputs[0]).type;
        const std::int64_t channels = channels_of(in, given);
        if (images_.is_stem(node)) return kStem * bytes_of(out);
        const double moved = bytes_of(in) + bytes_of(out);
        if (attr<std::int64_t>(node, "groups") == channels && channels > 1)
            return attr<std::vector<std::int64_t>>(node, "strides")[1] == 1 ? 0 : kStridedDepthwise * moved;
        const TensorType& filter = graph_.value(node.inputs[1]).type;
        const std::int64_t out_channels = channels_of(out, given);
        const bool is_pointwise = filter.elements() == channels * out_channels;
        const bool saves_half =
            kernel && (kernel->name == "nhwc_winograd_conv2d_f32" ||
                       kernel->name == "nhwc_bf16_winograd_conv2d" || kernel->name == "nhwc_bf16_conv2d");
        const double operations = 2.0 * static_cast<double>(out.elements()) *
                                  static_cast<double>(filter.elements()) / static_cast<double>(out_channels);
        return (is_pointwise ? kPointwise : kWindows) * moved +
               (saves_half ? kHalfOfOperations * operations : 0);
    }

    double gain_of_transposed(const Node& node, ImageOrder given) const {
        const TensorType &in = graph_.value(node.inputs[0]).type, &out = graph_.value(node.outputs[0]).type;
        const TensorType& filter = graph_.value(node.inputs[1]).type;
        const std::int64_t channels = channels_of(in, given);
        if (channels == 0) return 0;
        const double products = static_cast<double>(in.elements()) * bytes_of(filter) /
                                (static_cast<double>(channels) * static_cast<double>(channels));
        const auto order = attr<std::string>(node, "filter_layout");
        const auto sizes = filter.sizes();
        if (sizes[order.find('o')] * sizes[order.find('w')] < kFewColumns) return kEmptyLanes * products;
        const bool overlaps = products > bytes_of(out);
        return kTransposed * (bytes_of(in) + bytes_of(out)) + kGatheredFilters * bytes_of(filter) +
               (overlaps ? kAddedProducts * products : 0);
    }

    /// What a transposition costs between each value's producer and its readers. Where several readers want
    /// the other order, one transposition serves them all.
    void add_conversions() {
        std::vector<std::vector<Side>> readers(graph_.values.size());
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            const Node& node = graph_.nodes[i];
            for (std::size_t k = 0; k < node.inputs.size(); ++k) {
                const ValueId id = node.inputs[k];
                if (images_.of(id) == ImageOrder::unknown) continue;
                const bool has_say = sides_[i] >= 0 && images_.turns(node, k);
                readers[id].push_back(has_say ? sides_[i] : side_of(images_.of(id)));
            }
        }
        for (const auto& [name, id] : graph_.outputs)
            if (images_.of(id) != ImageOrder::unknown) readers[id].push_back(side_of(images_.of(id)));
        for (std::size_t id = 0; id < readers.size(); ++id)
            if (!readers[id].empty()) add_conversion(static_cast<ValueId>(id), readers[id]);
    }

    void add_conversion(ValueId id, const std::vector<Side>& readers) {
        const Value& value = graph_.value(id);
        const bool has_say = value.kind == ValueKind::result && sides_[value.producer] >= 0;
        const Side from = has_say ? sides_[value.producer] : side_of(images_.of(id));
        // Half a byte more than nothing: among equal choices the one with fewer transpositions is taken.
        const auto price = static_cast<std::int64_t>(price_of_transposing(value.type, images_.of(id))) + 1;
        const Side any_last = cut_.add_node(), any_first = cut_.add_node();
        cut_.pay(from, any_last, price);
        cut_.pay(any_first, from, price);
        for (const Side reader : readers) {
            cut_.pay(any_last, reader, MinCut::kNever);
            cut_.pay(reader, any_first, MinCut::kNever);
        }
    }

    const Graph& graph_;
    const ImageOrders& images_;
    const bool low_memory_;
    MinCut cut_;
    std::vector<Side> sides_;
};

}  // namespace

Result<std::vector<ImageOrder>> choose_image_orders(const Graph& graph, const ImageOrders& images,
                                                    bool low_memory) {
    return Choice(graph, images, low_memory).run();
}

}  // namespace headrace
