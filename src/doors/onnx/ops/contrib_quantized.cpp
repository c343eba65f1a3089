#include "doors/onnx/ops/indexing.h"
#include "doors/onnx/ops/linear_algebra.h"
#include "doors/onnx/ops/onnx_node.h"
#include "doors/onnx/ops/pooling.h"
#include "doors/onnx/ops/quantization.h"

/// Operators of ONNX Runtime on whole numbers that stand for real ones.
namespace headrace::onnx {
namespace {

/// The real values of an operand that is followed by its scale and its zero point.
Operand real_operand(OpWriter& g, const Node& node, std::size_t first) {
    return dequantized(g, node, node.operand(first), node.operand(first + 1), node.optional(first + 2), 0);
}

/// By the scale and zero point of the result.
Operand whole_result(OpWriter& g, const Node& node, const Operand& y, std::size_t first, ElementType type) {
    const Operand given = node.optional(first + 1), zero = given ? given : known(0, type);
    return quantized(g, node, y, g.reshape(node.operand(first), {}), g.reshape(zero, {}), 0);
}

template <class F>
Operand in_channels_first(OpWriter& g, const Node& node, const Operand& x, F compute) {
    if (!node.flag("channels_last", false)) return compute(x);
    return channels_last(g, compute(channels_first(g, x)));
}

// --- by real numbers

/// The operator behind "QLinear" in the node's name, of one operand.
Read by_real_numbers(std::int64_t opset) {
    return [opset](OpWriter& g, const Node& node) {
        const std::string op = node.op.substr(std::string_view("QLinear").size());
        const Node made = onnx_node(node, op, opset, {real_operand(g, node, 0)});
        return whole_result(g, node, read_onnx(g, made).at(0), 3, node.x()->type);
    };
}

Operand qlinear_softmax(OpWriter& g, const Node& node) {
    Node made = onnx_node(node, "Softmax", node.integer("opset", 13), {real_operand(g, node, 0)});
    made.set("axis", node.integer("axis", -1));
    return whole_result(g, node, read_onnx(g, made).at(0), 3, node.x()->type);
}

Operand qlinear_average_pool(OpWriter& g, const Node& node) {
    const bool is_global = node.op == "QLinearGlobalAveragePool";
    const bool counts_margin = node.is_one("ceil_mode", false) && node.flag("count_include_pad", false);
    const Operand y = in_channels_first(g, node, real_operand(g, node, 0), [&](const Operand& x) {
        if (counts_margin) return means_with_margin(g, node, x);
        return is_global ? read_onnx(g, onnx_node(node, "GlobalAveragePool", 21, {x})).at(0)
                         : averages(g, node, x);
    });
    return whole_result(g, node, y, 3, node.x()->type);
}

/// Triples of an operand, its scale and its zero point behind those of the result.
Operand qlinear_concat(OpWriter& g, const Node& node) {
    const std::int64_t count = static_cast<std::int64_t>(node.inputs.size()) - 2;
    invalid_if(count < 3 || count % 3 != 0,
               "there are {} inputs behind the result's two; three for each operand", count);
    std::vector<Operand> parts;
    for (std::size_t i = 2; i < node.inputs.size(); i += 3) parts.push_back(real_operand(g, node, i));
    const Operand y = g.concat(parts, g.axis(parts[0], node.integer("axis", 0)));
    return whole_result(g, node, y, 0, node.operand(2)->type);
}

Operand qlinear_where(OpWriter& g, const Node& node) {
    const Operand y = g.op("where", {node.x(), real_operand(g, node, 1), real_operand(g, node, 4)});
    return whole_result(g, node, y, 7, node.operand(1)->type);
}

Operand contrib_qlinear_conv(OpWriter& g, const Node& node) {
    return in_channels_first(g, node, node.x(), [&](const Operand& x) {
        Node plain = onnx_node(node, "QLinearConv", 21, node.inputs);
        plain.inputs[0] = x;
        return qlinear_conv(g, plain);
    });
}

// --- products

/// The exact sums as real numbers. Scales are of the whole operand, or of the second one's columns.
Operand scaled_sums(OpWriter& g, const Operand& total, const Operand& a_scale, const Operand& b_scale,
                    double factor = 1) {
    Operand scale = g.op("mul", {g.cast(a_scale, ElementType::f32), g.cast(b_scale, ElementType::f32)});
    if (g.has_shape(scale, {1})) scale = g.reshape(scale, {});
    return g.op("mul", {g.cast(total, ElementType::f32), g.times(scale, factor)});
}

/// alpha A B + C, C in whole numbers; real ones without a scale of the result.
Operand qgemm(OpWriter& g, const Node& node) {
    Operand a = node.x(), b = node.operand(3);
    const Operand c = node.optional(6);
    invalid_if(g.rank(a) != 2 || g.rank(b) != 2, "A and B have {} and {} dimensions, not 2", g.rank(a),
               g.rank(b));
    const bool is_plain = !node.flag("transA", false) && node.real("alpha", 1) == 1 && node.optional(7);
    if (is_plain && are_known(node, {1, 2, 3, 4, 5, 6, 7, 8}) && (!c || g.rank(c) == 1)) {
        const bool transposed = node.flag("transB", false);
        const Operand unit = g.op("mul", {g.reshape(node.operand(1), {}), node.operand(4)});
        const Operand y = g.op("gemm",
                               {real_operand(g, node, 0),
                                dequantized(g, node, b, node.operand(4), node.operand(5), transposed ? 0 : 1),
                                c ? dequantized(g, node, c, unit, nullptr, 0) : nullptr},
                               {{"b_transpose", transposed}});
        return whole_result(g, node, y, 7, a->type);
    }
    if (node.flag("transA", false)) a = g.transpose(a, {1, 0});
    if (node.flag("transB", false)) b = g.transpose(b, {1, 0});
    Operand total = exact_product(g, a, b, node.optional(2), node.optional(5));
    if (c) total = g.op("add", {total, c});
    const Operand y =
        scaled_sums(g, total, g.reshape(node.operand(1), {}), node.operand(4), node.real("alpha", 1));
    return node.optional(7) ? whole_result(g, node, y, 7, a->type) : y;
}

Operand matmul_integer_to_float(OpWriter& g, const Node& node) {
    const Operand total = exact_product(g, node.x(), node.operand(1), node.optional(4), node.optional(5));
    Operand y = scaled_sums(g, total, node.operand(2), node.operand(3));
    if (node.optional(6)) y = g.op("add", {y, g.cast(node.operand(6), ElementType::f32)});
    return g.cast(y, node.operand(2)->type);
}

/// The first operand in u8 by its own range.
Operand dynamic_quantize_matmul(OpWriter& g, const Node& node) {
    const auto [a, scale, zero] = dynamically_quantized(g, node.x());
    const Operand total = exact_product(g, a, node.operand(1), zero, node.optional(3));
    const Operand y = scaled_sums(g, total, scale, node.operand(2));
    return node.optional(4) ? g.op("add", {y, node.operand(4)}) : y;
}

Operand matmul_integer_16(OpWriter& g, const Node& node) {
    return matrix_product(g, g.cast(node.x(), ElementType::i32), g.cast(node.operand(1), ElementType::i32));
}

// --- tables

/// Several numbers of a byte as elements along the last axis, the low ones first.
Operand unpacked_bytes(OpWriter& g, const Operand& x, std::int64_t bits) {
    const std::int64_t count = 8 / bits;
    Shape shape = g.shape(x);
    std::vector<Operand> parts;
    for (std::int64_t i = 0; i < count; ++i) {
        Operand part = i == 0 ? x : g.op("shift_right", {x, known(i * bits, ElementType::u8)});
        if (i < count - 1) part = g.op("bitwise_and", {part, known((1 << bits) - 1, ElementType::u8)});
        parts.push_back(g.add_axes(part, 1));
    }
    const Operand beside = g.concat(parts, static_cast<int>(shape.size()));
    shape.back() = shape.back() * Dim(count);
    return g.reshape(beside, shape);
}

/// How a table of numbers in blocks lies.
struct BlockTable {
    std::int64_t bits, block;
    bool is_packed;  ///< several numbers in a byte
    int axis;        ///< along which it takes
    int along;       ///< along which the blocks lie
};

BlockTable block_table_of(OpWriter& g, const Node& node) {
    const Operand data = node.x();
    const ElementType type = data->type;
    const std::int64_t bits = node.integer("bits", 4), block = node.integer("block_size", 128);
    refuse_if((bits != 2 && bits != 4 && bits != 8) ||
                  (type != ElementType::u8 && type != ElementType::i4 && type != ElementType::u4),
              "bits is {} and the table is {}; whole numbers of 2, 4 and 8 bits are read", bits,
              name_of(type));
    const BlockTable table{bits, block, type == ElementType::u8 && bits < 8,
                           g.axis(data, node.integer("gather_axis", 0)),
                           g.axis(data, node.integer("quantize_axis", 1))};
    invalid_if(table.axis == table.along || block < 1,
               "gather_axis and quantize_axis are {}, block_size is {}", table.axis, block);
    if (table.is_packed && table.axis == g.rank(data) - 1)
        throw Refused("it takes elements of packed bytes", "Use a gather_axis before the last");
    return table;
}

/// Rows of a table whose blocks have scales and zero points; only the rows become real numbers.
Operand gather_block_quantized(OpWriter& g, const Node& node) {
    const BlockTable table = block_table_of(g, node);
    const Operand data = node.x(), scales = node.operand(2), zeros = node.optional(3);
    const Operand indices = checked_indices(g, data, as_indices(g, node.operand(1)), {table.axis});
    const auto taken = [&](const Operand& x) { return g.op("gather", {x, indices}, {{"axis", table.axis}}); };
    const auto unpacked = [&](const Operand& x) {
        return table.is_packed ? unpacked_bytes(g, x, table.bits) : x;
    };
    const int along = table.along + (table.along > table.axis ? g.rank(indices) - 1 : 0);
    const Operand values = unpacked(taken(data)), scale = taken(scales);
    const std::int64_t extent =
        g.fixed(g.shape(values).at(static_cast<std::size_t>(along)), "the quantised extent");
    const Operand blocks = blocks_of_places(extent, table.block);
    const auto of_blocks = [&](const Operand& x) { return g.op("gather", {x, blocks}, {{"axis", along}}); };
    Operand y = g.cast(values, scale->type);
    if (zeros) {
        y = g.op("sub", {y, of_blocks(g.cast(unpacked(taken(zeros)), scale->type))});
    } else if (data->type == ElementType::u8) {
        y = g.plus(y, -static_cast<double>(1 << (table.bits - 1)));
    }
    return g.op("mul", {y, of_blocks(scale)});
}

/// With the weights' real numbers; they lie as [directions, inputs, gates hidden].
Results dynamic_quantize_lstm(OpWriter& g, const Node& node) {
    std::vector<Operand> inputs = {node.x()};
    for (const auto& [place, first] : {std::pair(1, 8), std::pair(2, 10)}) {
        const Operand x = node.operand(place), scale = node.operand(first), zero = node.operand(first + 1);
        const Shape sizes = g.shape(x);
        invalid_if(sizes.size() != 3, "input {} has {} dimensions; it must have 3", place, sizes.size());
        const Shape of_each = {sizes[0], 1, g.rank(scale) == 2 ? sizes[2] : Dim(1)};
        const auto real = [&](const Operand& v) { return g.cast(v, ElementType::f32); };
        const Operand apart = g.op("sub", {real(x), real(g.reshape(zero, of_each))});
        inputs.push_back(g.transpose(g.op("mul", {apart, g.reshape(scale, of_each)}), {0, 2, 1}));
    }
    for (std::size_t i = 3; i < 8; ++i) inputs.push_back(node.optional(i));
    return read_onnx(g, onnx_node(node, "LSTM", 14, std::move(inputs)));
}

}  // namespace

std::span<const Operator> contrib_quantized_operators() {
    static const Operator kOperators[] = {
        {"DynamicQuantizeLSTM", 1, dynamic_quantize_lstm,
         "12 -> 0..3, activation_alpha floats, activation_beta floats, activations strings, clip float, "
         "direction string, hidden_size int, input_forget int",
         kMicrosoft},
        {"DynamicQuantizeMatMul", 1, dynamic_quantize_matmul, "3..5 -> 1", kMicrosoft},
        {"GatherBlockQuantized", 1, gather_block_quantized,
         "3..4 -> 1, bits int, block_size int, gather_axis int, quantize_axis int", kMicrosoft},
        {"MatMulInteger16", 1, matmul_integer_16, "2 -> 1", kMicrosoft},
        {"MatMulIntegerToFloat", 1, matmul_integer_to_float, "4..7 -> 1", kMicrosoft},
        {"QGemm", 1, qgemm, "6..9 -> 1, alpha float, transA int, transB int", kMicrosoft},
        {"QLinearAveragePool", 1, qlinear_average_pool,
         "4..5 -> 1, auto_pad string, ceil_mode int, channels_last int, count_include_pad int, kernel_shape "
         "ints, pads ints, strides ints",
         kMicrosoft},
        {"QLinearConcat", 1, qlinear_concat, "3.. -> 1, axis int", kMicrosoft},
        {"QLinearConv", 1, contrib_qlinear_conv,
         "8..9 -> 1, auto_pad string, channels_last int, dilations ints, group int, kernel_shape ints, pads "
         "ints, strides ints",
         kMicrosoft},
        {"QLinearGlobalAveragePool", 1, qlinear_average_pool, "5 -> 1, channels_last int", kMicrosoft},
        {"QLinearLeakyRelu", 1, by_real_numbers(21), "4..5 -> 1, alpha float", kMicrosoft},
        {"QLinearReduceMean", 1, by_real_numbers(13), "4..5 -> 1, axes ints, keepdims int", kMicrosoft},
        {"QLinearSigmoid", 1, by_real_numbers(21), "4..5 -> 1", kMicrosoft},
        {"QLinearSoftmax", 1, qlinear_softmax, "5 -> 1, axis int, opset int", kMicrosoft},
        {"QLinearWhere", 1, qlinear_where, "9 -> 1", kMicrosoft},
    };
    return kOperators;
}

}  // namespace headrace::onnx
