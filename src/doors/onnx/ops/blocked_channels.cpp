#include "doors/onnx/ops/onnx_node.h"

/// What ONNX Runtime saves with ORT_ENABLE_ALL: images whose channels lie in blocks, as its kernels read
/// them.
///
/// A value's shape is what it would be otherwise, its channels rounded up to whole blocks; only the order in
/// memory differs, of which nothing is seen between the operators. So images are read as plain ones that have
/// some more channels, and filters are put back into the plain order.
namespace headrace::onnx {
namespace {

std::int64_t rounded_up(std::int64_t count, std::int64_t block) {
    return (count + block - 1) / block * block;
}

/// How many channels are a block.
std::int64_t block_of(OpWriter& g) {
    const std::int64_t block = g.shared().channel_block;
    invalid_if(block == 0, "the model does not import operator set 1 of {}, which the node is of",
               kBlockedChannels);
    return block;
}

/// [o, i, h, w] of what lies as [o / b, i / b, h, w, b of i, b of o], or [o / b, i, h, w, b of o] where the
/// inputs are in no blocks: fewer than a block has, and those of depthwise filters.
Operand plain_filter(OpWriter& g, const Node& node) {
    const Operand filter = node.operand(1);
    const std::int64_t block = block_of(g);
    const std::vector<std::int64_t> sizes = g.fixed_shape(filter, "an extent of the filter");
    invalid_if(sizes.size() != 4, "the filter (input 1) has {} dimensions, not 4", sizes.size());
    const std::int64_t outputs = sizes[0], inputs = sizes[1], height = sizes[2], width = sizes[3];
    const bool is_of_blocks = node.integer("group", 1) > 1 ? inputs != 1 : inputs >= block;
    invalid_if(outputs % block != 0 || (is_of_blocks && inputs % block != 0),
               "the filter has {} outputs and {} inputs; channels lie in blocks of {} here", outputs, inputs,
               block);
    if (!is_of_blocks)
        return g.reshape(
            g.transpose(g.reshape(filter, {outputs / block, inputs, height, width, block}), {0, 4, 1, 2, 3}),
            g.shape(filter));
    const Operand blocks = g.reshape(filter, {outputs / block, inputs / block, height, width, block, block});
    return g.reshape(g.transpose(blocks, {0, 5, 1, 4, 2, 3}), g.shape(filter));
}

Operand blocked_conv(OpWriter& g, const Node& node) {
    Node made = onnx_node(node, "FusedConv", 1,
                          {node.x(), plain_filter(g, node), node.optional(2), node.optional(3)});
    made.domain = kMicrosoft;
    return read_onnx(g, made).at(0);
}

Operand blocked_pool(OpWriter& g, const Node& node) {
    return read_onnx(g, onnx_node(node, node.op, 19, {node.x()})).at(0);
}

std::int64_t channels_of(OpWriter& g, const Operand& x) {
    invalid_if(g.rank(x) != 4, "the image has {} dimensions, not 4", g.rank(x));
    return g.fixed(g.shape(x)[1], "the number of channels");
}

/// A plain image with zeros as its last channels.
Operand reorder_input(OpWriter& g, const Node& node) {
    const Operand x = node.flag("channels_last", false) ? channels_first(g, node.x()) : node.x();
    const std::int64_t channels = channels_of(g, x);
    const std::int64_t surplus = rounded_up(channels, block_of(g)) - channels;
    if (surplus == 0) return x;
    return g.op("pad", {x},
                {{"mode", "constant"},
                 {"value", 0.0},
                 {"beginning_padding", Shape{0, 0, 0, 0}},
                 {"ending_padding", Shape{0, surplus, 0, 0}}});
}

/// Without the channels that fill the last block.
Operand reorder_output(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const std::int64_t channels = node.integer("channels"), all = channels_of(g, x), block = block_of(g);
    invalid_if(channels < 1 || rounded_up(channels, block) != all,
               "{} channels of {} are kept; channels lie in blocks of {} here. A file that ONNX Runtime has "
               "saved with ORT_ENABLE_ALL is for processors like the one it was saved on: save it with "
               "ORT_ENABLE_EXTENDED, or read the model it was made from",
               channels, all, block);
    const Operand y = channels == all ? x : g.cut(x, 1, 0, channels);
    return node.flag("channels_last", false) ? channels_last(g, y) : y;
}

Operand blocked_upsample(OpWriter& g, const Node& node) {
    const auto scales = node.integer_list("scales").value_or(std::vector<std::int64_t>());
    Node made = onnx_node(
        node, "Resize", 13,
        {node.x(), nullptr, known(std::vector<double>(scales.begin(), scales.end()), ElementType::f32)});
    made.attributes = {{"mode", node.text("mode", "nearest")}};
    const bool is_linear = node.text("mode", "nearest") == "linear";
    made.set("coordinate_transformation_mode", is_linear
                                                   ? node.text("coordinate_transformation_mode", "half_pixel")
                                                   : std::string("asymmetric"));
    made.set("nearest_mode", std::string("floor"));
    return read_onnx(g, made).at(0);
}

}  // namespace

std::span<const Operator> blocked_channels_operators() {
    static const Operator kOperators[] = {
        {"AveragePool", 1, blocked_pool,
         "1 -> 1, auto_pad string, ceil_mode int, count_include_pad int, dilations ints, "
         "kernel_shape ints, pads ints, strides ints",
         kBlockedChannels},
        {"Conv", 1, blocked_conv,
         "2..4 -> 1, activation string, activation_params floats, auto_pad string, dilations ints, "
         "group int, kernel_shape ints, pads ints, strides ints",
         kBlockedChannels},
        {"GlobalAveragePool", 1, blocked_pool, "1 -> 1", kBlockedChannels},
        {"GlobalMaxPool", 1, blocked_pool, "1 -> 1", kBlockedChannels},
        {"MaxPool", 1, blocked_pool,
         "1 -> 1, auto_pad string, ceil_mode int, dilations ints, "
         "kernel_shape ints, pads ints, storage_order int, strides ints",
         kBlockedChannels},
        {"ReorderInput", 1, reorder_input, "1 -> 1, channels_last int", kBlockedChannels},
        {"ReorderOutput", 1, reorder_output, "1 -> 1, channels int, channels_last int", kBlockedChannels},
        {"Upsample", 1, blocked_upsample,
         "1 -> 1, coordinate_transformation_mode string, mode string, scales ints", kBlockedChannels},
    };
    return kOperators;
}

}  // namespace headrace::onnx
