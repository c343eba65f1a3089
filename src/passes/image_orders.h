#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace headrace {

/// Where a batch of images has its channels: first, n c h w, or last, n h w c.
enum class ImageOrder : std::uint8_t { unknown, first, last };

constexpr ImageOrder other(ImageOrder order) {
    return order == ImageOrder::first ? ImageOrder::last : ImageOrder::first;
}

/// Which dimension of an image in the other order each dimension is, in `to`.
constexpr std::array<std::int64_t, 4> permutation_to(ImageOrder to) {
    if (to == ImageOrder::last) return {0, 2, 3, 1};
    return {0, 3, 1, 2};
}

/// Which values of a graph are images, as convolutions and pools say, and which nodes could as well work on
/// images in the other order.
class ImageOrders {
public:
    explicit ImageOrders(const Graph& graph);

    /// The order of a value as the graph has it.
    ImageOrder of(ValueId id) const { return id == kNoValue ? ImageOrder::unknown : orders_[id]; }
    /// The order of the images that a node reads and writes, if it may have the other one: by OpDef::layout,
    /// and all its images agree. Else unknown.
    ImageOrder of_free(const Node& node) const;
    /// Whether a node only gives an image its other order's shape: a transposition.
    bool is_reordering(const Node& node) const;
    /// Whether operand i is an image in the order of its node's other images.
    bool follows(const Node& node, std::size_t i) const;
    /// Whether a node is a convolution of so few channels that it should read them first in any case; it may
    /// still give out its own last.
    bool is_stem(const Node& node) const;
    /// Whether operand i comes in the other order when its free node changes to that.
    bool turns(const Node& node, std::size_t i) const {
        return follows(node, i) && !(i == 0 && is_stem(node));
    }

private:
    bool visit(const Node& node);
    bool assign(ValueId id, ImageOrder order);
    bool assign_all(const Node& node, ImageOrder order);
    bool may_be_image(ValueId id) const;

    const Graph& graph_;
    std::vector<ImageOrder> orders_;
};

/// Gives a free node the attributes for images in the order `to`, where they have the other one now; to a
/// stem those for results in that order. False if no attributes say the same.
Result<bool> turn_attrs(Node& node, ImageOrder to, bool is_stem);

}  // namespace headrace
