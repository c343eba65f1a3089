#include <algorithm>
#include <numeric>

#include "doors/onnx/ops/convolution.h"
#include "doors/onnx/ops/indexing.h"
#include "doors/onnx/reading/numbers.h"

/// The ways back from pools and windows to images, and writes into caches.
namespace headrace::onnx {
namespace {

Operand with_zeros_behind(OpWriter& g, Operand x, const Shape& sizes) {
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
        Shape behind = g.shape(x);
        behind[axis] = sizes[axis] - behind[axis];
        x = g.concat({x, g.filled(0, x->type, behind)}, static_cast<int>(axis));
    }
    return g.reshape(x, sizes);
}

/// The smallest image whose windows these elements were the largest of.
Shape unpooled_shape(OpWriter& g, const Node& node) {
    const Shape shape = g.shape(node.x());
    invalid_if(shape.size() < 3, "the input has {} dimensions; 3 are the least", shape.size());
    const auto kernel = node.integer_list("kernel_shape").value_or(std::vector<std::int64_t>());
    const Shape sizes(shape.begin() + 2, shape.end());
    const Window window = window_of(node, sizes, Shape(kernel.begin(), kernel.end()));
    Shape image{shape[0], shape[1]};
    for (std::size_t i = 0; i < window.dims(); ++i)
        image.push_back((sizes[i] - 1) * Dim(window.strides[i]) - window.before[i] - window.after[i] +
                        window.kernel[i]);
    return image;
}

/// An output_shape that is known.
Shape wanted_image(const Node& node, const Shape& least) {
    const Shape wanted = node.dims(2, "the output's shape");
    bool fits = wanted.size() == least.size();
    for (std::size_t i = 0; fits && i < wanted.size(); ++i)
        fits = is_at_least(wanted[i], least[i]) != Answer::no;
    invalid_if(!fits, "output_shape (input 2) is {}; it must be at least {}", str(wanted), str(least));
    return wanted;
}

/// Each element where its maximum was, zero elsewhere.
///
/// Places count in the known output_shape, as in ONNX Runtime and in exported models. Where output_shape is
/// fed, they count in the smallest image, behind which zeros follow, as in ONNX's own tests.
Operand max_unpool(OpWriter& g, const Node& node) {
    const Operand x = node.x(), shape = node.optional(2);
    Shape image = unpooled_shape(g, node);
    if (shape && is_known(shape)) image = wanted_image(node, image);
    const Dim total = product_of(image), count = g.size(x);
    const Operand places =
        checked_numbers(g, g.cast(node.operand(1), ElementType::i64), "the place of a maximum", 0, total - 1);
    Operand y = g.op("scatter_elements",
                     {g.filled(0, x->type, {total}), g.reshape(places, {count}), g.reshape(x, {count})},
                     {{"axis", 0}});
    y = g.reshape(y, image);
    if (!shape || is_known(shape)) return y;
    const Shape wanted = dims_of(g, node, 2, "the output's shape");
    invalid_if(wanted.size() != image.size(), "output_shape (input 2) has {} extents; the image has {}",
               wanted.size(), image.size());
    return with_zeros_behind(g, y, wanted);
}

/// How Col2Im's blocks lie in the image with its margin.
struct Blocks {
    Shape image, block, before, padded, counts;
    std::vector<std::int64_t> strides, dilations;

    Dim taps() const { return product_of(block); }
};

Blocks blocks_of(OpWriter& g, const Node& node) {
    Blocks blocks;
    blocks.image = dims_of(g, node, 1, "the image's shape");
    blocks.block = dims_of(g, node, 2, "the blocks' shape");
    const std::size_t rank = blocks.image.size();
    invalid_if(blocks.block.size() != rank, "the image has {} extents and the blocks {}", rank,
               blocks.block.size());
    const Window window = window_of(node, blocks.image, blocks.block);
    blocks.strides = window.strides;
    blocks.dilations = window.dilations;
    blocks.before = window.before;
    const Shape reach = window.reach();
    for (std::size_t i = 0; i < rank; ++i) {
        blocks.padded.push_back(blocks.image[i] + window.before[i] + window.after[i]);
        blocks.counts.push_back(divided_down(blocks.padded[i] - reach[i], blocks.strides[i]) + 1);
    }
    return blocks;
}

/// Where each element of each block lies in the image with its margin, the blocks' elements first: [1, 1,
/// all].
Operand places_of_blocks(OpWriter& g, const Blocks& blocks, const Dim& count) {
    const std::size_t rank = blocks.image.size();
    Numbers place(g, std::vector<std::int64_t>{0});
    for (std::size_t axis = 0; axis < rank; ++axis) {
        const Numbers inner = Numbers(g, g.positions(blocks.block[axis])) * blocks.dilations[axis];
        const Numbers begins = Numbers(g, g.positions(blocks.counts[axis])) * blocks.strides[axis];
        Shape of_inner(2 * rank, 1), of_begins(2 * rank, 1);
        of_inner[axis] = blocks.block[axis];
        of_begins[rank + axis] = blocks.counts[axis];
        place = place * Numbers(g, Shape{blocks.padded[axis]}) +
                (inner.shaped(of_inner) + begins.shaped(of_begins));
    }
    return place.shaped({1, 1, count}).x();
}

void check_blocks(const Blocks& blocks, const Dim& rows, const Dim& columns) {
    if (is_open(blocks.block) || is_open(blocks.counts) || is_open({rows, columns})) return;
    const std::int64_t taps = blocks.taps().size();
    invalid_if(taps == 0 || rows.size() % taps != 0 || !is_same(product_of(blocks.counts), columns),
               "the input has {} rows and {} columns; blocks {} lie {} times in the image", rows.size(),
               columns.size(), str(blocks.block), str(blocks.counts));
    OpWriter::check_extent((Dim(taps) * columns).size());
}

/// Adds up the blocks' elements where they lie in the image.
Operand columns_to_image(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const Shape shape = g.shape(x);
    invalid_if(shape.size() != 3, "the input has {} dimensions; 3 are ONNX's", shape.size());
    const Blocks blocks = blocks_of(g, node);
    check_blocks(blocks, shape[1], shape[2]);
    const Dim count = blocks.taps() * shape[2], channels = divided_down(shape[1], blocks.taps());
    const Shape whole{shape[0], channels, count};
    const Operand places = g.expand(places_of_blocks(g, blocks, count), whole);
    const Operand zeros = g.filled(0, x->type, {shape[0], channels, product_of(blocks.padded)});
    Operand y =
        g.op("scatter_reduce", {zeros, places, g.reshape(x, whole)}, {{"axis", 2}, {"reduction", "sum"}});
    Shape padded{shape[0], channels};
    padded.insert(padded.end(), blocks.padded.begin(), blocks.padded.end());
    y = g.reshape(y, padded);
    for (std::size_t axis = 0; axis < blocks.image.size(); ++axis)
        y = g.cut(y, static_cast<int>(2 + axis), blocks.before[axis], blocks.image[axis]);
    return y;
}

/// The cache with an update written at each sequence's own place.
Operand tensor_scatter(OpWriter& g, const Node& node) {
    const Operand cache = node.x(), update = node.operand(1), begins = node.optional(2);
    const int axis = g.axis(cache, node.integer("axis", -2));
    const std::string mode = node.text("mode", "linear");
    invalid_if(mode != "linear" && mode != "circular", "mode is '{}'; linear and circular are ONNX's", mode);
    invalid_if(axis == 0, "axis is 0, the batch");
    const Shape shape = g.shape(update), whole = g.shape(cache);
    invalid_if(shape.size() != whole.size(), "the cache has {} dimensions and the update {}", whole.size(),
               shape.size());
    const auto rank = static_cast<std::int64_t>(shape.size());
    const Dim& extent = shape[static_cast<std::size_t>(axis)];
    const Dim& room = whole[static_cast<std::size_t>(axis)];
    Operand places = g.add_axes(g.positions(extent), rank - 1 - axis);
    if (begins) {
        const auto most = mode == "linear" ? std::optional(room - extent) : std::nullopt;
        const Operand starts = g.cast(as_indices(g, begins), ElementType::i64);
        const Operand checked = checked_numbers(g, starts, "the place of an update", 0, most);
        places = g.op("add", {g.add_axes(checked, rank - 1), places});
    }
    if (mode == "circular") places = g.op("remainder", {places, g.at_run_time(Item(room), ElementType::i64)});
    return g.op("scatter_elements", {cache, g.expand(places, shape), update}, {{"axis", axis}});
}

/// All windows of an axis, whose elements are a new last axis.
Operand unfold_tensor(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const int axis = g.axis(x, node.integer("dim", -1));
    const std::int64_t size = node.integer("size"), step = node.integer("step", 1);
    const Dim extent = g.shape(x).at(static_cast<std::size_t>(axis));
    invalid_if(size < 1 || step < 1 || is_at_least(extent, size) == Answer::no,
               "size is {} and step {}, each at least 1, for an extent of {}", size, step, extent.str());
    const Dim count = divided_down(extent - size, step) + 1, all = count * size;
    OpWriter::check_extent(all.is_symbolic() ? size : all.size());
    const Numbers begins = Numbers(g, g.positions(count)) * step;
    const Numbers places = begins.shaped({count, 1}) + Numbers(g, g.positions(size)).shaped({1, size});
    const Operand y = g.op("gather", {x, places.x()}, {{"axis", axis}});
    std::vector<std::int64_t> order(static_cast<std::size_t>(g.rank(y)));
    std::iota(order.begin(), order.end(), 0);
    std::rotate(order.begin() + axis + 1, order.begin() + axis + 2, order.end());
    return g.transpose(y, order);
}

}  // namespace

std::span<const Operator> unfolding_operators() {
    static const Operator kOperators[] = {
        {"Col2Im", 18, columns_to_image, "3 -> 1, dilations ints, pads ints, strides ints"},
        {"MaxUnpool", 9, max_unpool, "2..3 -> 1, kernel_shape ints, pads ints, strides ints"},
        {"TensorScatter", 24, tensor_scatter, "2..3 -> 1, axis int, mode string"},
        {"UnfoldTensor", 1, unfold_tensor, "1 -> 1, dim int, size int, step int", kMicrosoft},
    };
    return kOperators;
}

}  // namespace headrace::onnx
