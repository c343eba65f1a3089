#include "doors/onnx/ops/quantization.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "doors/onnx/ops/convolution.h"
#include "doors/onnx/ops/linear_algebra.h"
#include "doors/onnx/reading/carried.h"
#include "ir/constant.h"

/// Whole numbers that stand for real ones, and products of them.
namespace headrace::onnx {
namespace {

constexpr std::int64_t kExactTerms = 256;  ///< so many products of bytes add up exactly in single precision

/// Absent, or known to be nothing but zeros.
bool is_zero_point_0(const Operand& zero) {
    if (!zero) return true;
    if (!zero->has_numbers()) return false;
    for (std::int64_t i = 0; i < zero->known->count(); ++i)
        if (zero->real(i) != 0) return false;
    return true;
}

// --- scales and zero points

std::int64_t block_size_of(const Node& node) {
    const std::int64_t block = node.integer("block_size", 0);
    invalid_if(block < 0, "block_size is {}; at least 0", block);
    return block;
}

/// The block in which each place along an extent lies; the extent may be open.
Operand blocks_of(OpWriter& g, const Dim& extent, std::int64_t block) {
    if (!extent.is_symbolic()) return blocks_of_places(extent.size(), block);
    return g.op("div", {g.positions(extent), known(block, ElementType::i64)});
}

/// The catalog's blocks have one size: where the last one is smaller, each element gets its own number.
Operand even_scale_blocks(OpWriter& g, const Operand& x, const Operand& v, int axis, std::int64_t block) {
    const auto at = static_cast<std::size_t>(axis);
    const Dim extent = g.shape(x).at(at), count = g.shape(v).at(at);
    if (extent == count * Dim(block)) return v;
    refuse_if(!extent.is_symbolic() && !count.is_symbolic() && !(count == divided_up(extent, block)),
              "{} blocks of {} for an extent of {}", count.size(), block, extent.size());
    return g.op("gather", {v, blocks_of(g, extent, block)}, {{"axis", axis}});
}

/// A scale or zero point so that it broadcasts: per tensor, per axis, or in blocks along the axis.
Operand scales_beside(OpWriter& g, const Node& node, const Operand& x, const Operand& v, int axis) {
    const int rank = g.rank(x);
    if (g.rank(v) == 0 || g.has_shape(v, {1})) return g.reshape(v, {});
    const std::int64_t block = block_size_of(node);
    if (block != 0 && g.rank(v) == rank) return even_scale_blocks(g, x, v, axis, block);
    if (g.rank(v) == rank && rank > 1) return v;
    return g.add_axes(v, std::max(rank - 1 - axis, 0));
}

/// As `scales_beside`, f32, and a number for each element where they come in blocks: for ops that know no
/// blocks.
Operand for_each_element(OpWriter& g, const Node& node, const Operand& x, const Operand& scale, int axis) {
    const Operand v = scales_beside(g, node, x, scale, axis);
    const std::int64_t block = block_size_of(node);
    if (block == 0 || g.rank(v) != g.rank(x) || g.rank(x) == 0 || g.has_shape(v, g.shape(x)))
        return g.cast(v, ElementType::f32);
    const Dim extent = g.shape(x).at(static_cast<std::size_t>(axis));
    return g.cast(g.op("gather", {v, blocks_of(g, extent, block)}, {{"axis", axis}}), ElementType::f32);
}

/// To a type that the catalog's op does not know.
Operand quantized_by_parts(OpWriter& g, const Node& node, const Operand& x, const Operand& scale,
                           const Operand& zero, int axis, ElementType type) {
    Operand y = g.op("div", {g.cast(x, ElementType::f32), for_each_element(g, node, x, scale, axis)});
    if (!is_small_float(type)) y = g.op("round_even", {y});
    if (!is_zero_point_0(zero)) y = g.op("add", {y, for_each_element(g, node, x, zero, axis)});
    if (is_small_float(type)) return narrowed(g, y, type, node.flag("saturate", true));
    const WholeRange range = range_of(type);
    y = g.op("min", {y, known(range.high, ElementType::f32)});
    y = g.op("max", {y, known(range.low, ElementType::f32)});
    return g.retyped(g.cast(y, element_type(stored_as(type))), type);
}

/// The axis along which scales lie.
int scale_axis(OpWriter& g, const Node& node) {
    return g.rank(node.x()) > 1 ? g.axis(node.x(), node.integer("axis", 1)) : 0;
}

Operand quantize_linear(OpWriter& g, const Node& node) {
    const int axis = scale_axis(g, node);
    const Operand values = node.x()->is_float() ? node.x() : g.cast(node.x(), ElementType::f32);
    return quantized(g, node, values, node.operand(1), node.optional(2), axis);
}

Operand dequantize_linear(OpWriter& g, const Node& node) {
    const Operand y = dequantized(g, node, node.x(), node.operand(1), node.optional(2), scale_axis(g, node));
    const std::int64_t wanted = node.integer("output_dtype", 0);
    return wanted == 0 ? y : g.cast(y, type_named(wanted, "output_dtype"));
}

Results dynamic_quantize_linear(OpWriter& g, const Node& node) {
    const auto [y, scale, zero] = dynamically_quantized(g, node.x());
    return {y, scale, zero};
}

// --- products

/// Less its zero point, in single precision. A row of zero points belongs to the first operand's rows.
Operand less_zero(OpWriter& g, const Operand& whole, const Operand& zero_point, bool is_column) {
    const Operand x = g.cast(whole, ElementType::f32);
    if (is_zero_point_0(zero_point)) return x;
    Operand zero = g.cast(zero_point, ElementType::f32);
    if (g.has_shape(zero, {1})) zero = g.reshape(zero, {});
    if (g.rank(zero) == 1 && is_column) zero = g.add_axes(zero, 1);
    return g.op("sub", {x, zero});
}

Operand matmul_integer(OpWriter& g, const Node& node) {
    return exact_product(g, node.x(), node.operand(1), node.optional(2), node.optional(3));
}

/// round(total * scale / y_scale) + y_zero, in the zero point's type
Operand requantized(OpWriter& g, const Node& node, const Operand& total, const Operand& scale,
                    const Operand& y_scale, const Operand& y_zero) {
    const Operand factor = g.op("div", {g.cast(scale, ElementType::f32), g.cast(y_scale, ElementType::f32)});
    const Operand values = g.op("mul", {g.cast(total, ElementType::f32), factor});
    return quantized(g, node, values, known(1.0, ElementType::f32), y_zero, 0);
}

Operand qlinear_matmul(OpWriter& g, const Node& node) {
    const auto is_one = [&](std::size_t i) {
        return g.rank(node.operand(i)) == 0 || g.has_shape(node.operand(i), {1});
    };
    if (are_known(node, {1, 2, 3, 4, 5, 6, 7}) && g.rank(node.operand(3)) == 2 && is_one(1) && is_one(6)) {
        const Operand a = dequantized(g, node, node.x(), node.operand(1), node.operand(2), 0);
        const Operand b = dequantized(g, node, node.operand(3), node.operand(4), node.operand(5), 1);
        return quantized(g, node, matrix_product(g, a, b), node.operand(6), node.operand(7), 0);
    }
    const Operand total = exact_product(g, node.x(), node.operand(3), node.operand(2), node.operand(5));
    Operand a_scale = node.operand(1);
    if (g.has_shape(a_scale, {1})) a_scale = g.reshape(a_scale, {});
    if (g.rank(a_scale) == 1) a_scale = g.add_axes(a_scale, 1);
    const Operand scale = g.op("mul", {a_scale, node.operand(4)});
    return requantized(g, node, total, scale, node.operand(6), node.operand(7));
}

Operand filter_less_zero(OpWriter& g, const Operand& w, Operand zero) {
    if (zero && g.rank(zero) == 1 && !g.has_shape(zero, {1})) zero = g.add_axes(zero, g.rank(w) - 1);
    return less_zero(g, w, zero, false);
}

/// i32, exact: the channels in parts that single precision holds.
Operand exact_convolution(OpWriter& g, const Node& node, const Operand& image, const Operand& filter,
                          const Operand& x_zero, const Operand& w_zero) {
    invalid_if(g.rank(filter) < 2,
               "the filter (input 1) has {} dimensions and the input {}; both need 3 or more", g.rank(filter),
               g.rank(image));
    const Operand x = less_zero(g, image, x_zero, false), w = filter_less_zero(g, filter, w_zero);
    kernel_of(g, node, w, g.rank(x));
    const std::vector<std::int64_t> shape = g.fixed_shape(w), kernel(shape.begin() + 2, shape.end());
    const std::int64_t taps = product_of(Shape(kernel.begin(), kernel.end())).size(), inner = shape[1];
    invalid_if(taps < 1, "the filter's extents are [{}]; each must be at least 1", fmt::join(kernel, ", "));
    refuse_if(taps > kExactTerms,
              "the filter has [{}] = {} elements for each channel; {} at most add up exactly",
              fmt::join(kernel, ", "), taps, kExactTerms);
    const std::int64_t each = std::max<std::int64_t>(kExactTerms / taps, 1),
                       groups = node.integer("group", 1);
    if (inner <= each) return g.cast(convolution(g, node, x, w, nullptr), ElementType::i32);
    Shape whole = g.shape(x), split = whole;
    split[1] = groups;
    split.insert(split.begin() + 2, inner);
    const Operand parts = g.reshape(x, split);
    Operand total;
    for (std::int64_t start = 0; start < inner; start += each) {
        const std::int64_t count = std::min(each, inner - start);
        whole[1] = Dim(groups) * Dim(count);
        const Operand part = g.reshape(g.cut(parts, 2, start, count), whole);
        const Operand y =
            g.cast(convolution(g, node, part, g.cut(w, 1, start, count), nullptr), ElementType::i32);
        total = total ? g.op("add", {total, y}) : y;
    }
    return total;
}

Operand conv_integer(OpWriter& g, const Node& node) {
    return exact_convolution(g, node, node.x(), node.operand(1), node.optional(2), node.optional(3));
}

// --- of ONNX Runtime

/// By ratios of the scales, as ONNX Runtime has it: what lies between two whole numbers is rounded alike.
Operand qlinear_binary(OpWriter& g, const Node& node) {
    const Operand a = node.operand(0), b = node.operand(3), nothing = known(0, a->type);
    const auto scale = [&](std::size_t i) { return g.reshape(node.operand(i), {}); };
    const auto zero = [&](std::size_t i) {
        const Operand given = node.optional(i);
        return g.reshape(g.cast(given ? given : nothing, ElementType::f32), {});
    };
    const Operand a_scale = scale(1), b_scale = scale(4), y_scale = scale(6),
                  one = known(1.0, ElementType::f32);
    Operand y;
    if (node.op == "QLinearAdd" && are_known(node, {1, 2, 4, 5, 6, 7}) && g.has_shape(b, g.shape(a))) {
        y = g.op("add", {dequantized(g, node, a, a_scale, node.optional(2), 0),
                         dequantized(g, node, b, b_scale, node.optional(5), 0)});
        const Operand y_zero = node.optional(7);
        return quantized(g, node, y, y_scale, y_zero ? y_zero : nothing, 0);
    }
    if (node.op == "QLinearAdd") {
        const Operand a_ratio = g.op("div", {a_scale, y_scale}), b_ratio = g.op("div", {b_scale, y_scale});
        const Operand shift = g.op("add", {g.op("mul", {a_ratio, zero(2)}), g.op("mul", {b_ratio, zero(5)})});
        const Operand part =
            g.op("add", {g.op("dequantize_linear", {b, b_ratio}), g.op("sub", {zero(7), shift})});
        y = g.op("add", {g.op("dequantize_linear", {a, a_ratio}), part});
    } else {
        const Operand ratio = g.op("div", {g.op("mul", {a_scale, b_scale}), y_scale});
        const auto cleared = [&](const Operand& x, std::size_t i) {
            const Operand given = node.optional(i);
            return dequantized(g, node, x, one, given ? given : nothing, 0);
        };
        const Operand product = g.op("mul", {cleared(a, 2), cleared(b, 5)});
        y = g.op("add", {g.op("mul", {product, ratio}), zero(7)});
    }
    return quantized(g, node, y, one, nothing, 0);
}

}  // namespace

bool are_known(const Node& node, std::initializer_list<std::size_t> inputs) {
    return std::ranges::all_of(inputs, [&](std::size_t i) {
        const Operand x = node.optional(i);
        return !x || (x->has_numbers() && !is_carried(x->type));
    });
}

Operand blocks_of_places(std::int64_t extent, std::int64_t block) {
    OpWriter::check_extent(extent);
    std::vector<std::int64_t> blocks(static_cast<std::size_t>(extent));
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::int64_t>(i) / block;
    return known(blocks);
}

Operand quantized(OpWriter& g, const Node& node, const Operand& x, const Operand& scale, const Operand& zero,
                  int axis) {
    ElementType type = zero ? zero->type : ElementType::u8;
    const std::int64_t wanted = node.integer("output_dtype", 0);
    if (!zero && wanted != 0) type = type_named(wanted, "output_dtype");
    if (is_carried(type)) return quantized_by_parts(g, node, x, scale, zero, axis, type);
    const Operand divisor = scales_beside(g, node, x, g.cast(scale, x->type), axis);
    const Operand shift = zero ? scales_beside(g, node, x, zero, axis) : g.filled(0, type, g.shape(divisor));
    return g.op("quantize_linear", {x, divisor, shift});
}

Operand dequantized(OpWriter& g, const Node& node, const Operand& x, const Operand& scale,
                    const Operand& zero, int axis) {
    if (is_carried(x->type) || is_carried(scale->type)) {
        Operand y = g.cast(x, ElementType::f32);
        if (!is_zero_point_0(zero)) y = g.op("sub", {y, for_each_element(g, node, x, zero, axis)});
        const ElementType wide = is_carried(scale->type) ? ElementType::f32 : scale->type;
        return g.cast(g.op("mul", {y, for_each_element(g, node, x, scale, axis)}), wide);
    }
    const Operand factor = scales_beside(g, node, x, scale, axis);
    return g.op("dequantize_linear", {x, factor, zero ? scales_beside(g, node, x, zero, axis) : nullptr});
}

/// The range is widened to hold 0. Where all numbers are 0, the scale is 1.
DynamicallyQuantized dynamically_quantized(OpWriter& g, const Operand& x) {
    const std::vector<Operand> parts = g.ops("dynamic_quantize_linear", {g.cast(x, ElementType::f32)});
    return {parts[0], parts[1], parts[2]};
}

/// Whether a matrix's zero points are known: none, one, or one for each column.
bool has_zero_points_of_columns(const Operand& b, const Operand& zero) {
    if (!zero) return true;
    if (!zero->has_numbers()) return false;
    const std::int64_t count = zero->known->count();
    return count == 1 || (zero->known->shape.back() == count && count == b->known->shape[1]);
}

/// A known matrix of bytes less its zero points, in i8 where that holds it, else in i16.
Operand cleared_matrix(OpWriter& g, const Operand& b, const Operand& b_zero) {
    if (b->type == ElementType::i8 && is_zero_point_0(b_zero)) return b;
    const std::int64_t count = b->known->count(), columns = b->known->shape[1];
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(b->known->data->bytes.data());
    std::vector<std::int16_t> zeros(static_cast<std::size_t>(columns), 0), cleared;
    for (std::size_t i = 0; b_zero && i < zeros.size(); ++i) {
        const bool is_one = b_zero->known->count() == 1;
        zeros[i] = static_cast<std::int16_t>(b_zero->integer(is_one ? 0 : static_cast<std::int64_t>(i)));
    }
    cleared.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
        const int number = b->type == ElementType::i8 ? static_cast<std::int8_t>(bytes[i]) : bytes[i];
        cleared.push_back(static_cast<std::int16_t>(number - zeros[static_cast<std::size_t>(i % columns)]));
    }
    const bool is_narrow =
        std::ranges::all_of(cleared, [](std::int16_t number) { return number >= -128 && number <= 127; });
    const std::size_t size = cleared.size() * (is_narrow ? 1 : 2);
    g.budget().constant(size);
    auto buffer = value_or_refuse(AlignedBuffer::allocate(size, "a matrix less its zero points"));
    if (is_narrow)
        std::ranges::copy(cleared, reinterpret_cast<std::int8_t*>(buffer.data()));
    else
        std::ranges::copy(cleared, reinterpret_cast<std::int16_t*>(buffer.data()));
    const Operand made =
        known({.shape = b->known->shape, .data = own_constant(std::move(buffer)), .items = {}},
              is_narrow ? ElementType::i8 : ElementType::i16);
    made->is_counted = true;
    return made;
}

/// By the catalog's op: rows of bytes with one zero point times a known matrix.
Operand product_of_bytes(OpWriter& g, const Operand& a, const Operand& b, const Operand& a_zero,
                         const Operand& b_zero) {
    const auto is_byte = [](const Operand& x) {
        return x->type == ElementType::u8 || x->type == ElementType::i8;
    };
    const bool has_one_zero = !a_zero || g.rank(a_zero) == 0 || g.has_shape(a_zero, {1});
    if (g.rank(a) < 2 || g.rank(b) != 2 || !b->has_numbers() || !has_one_zero || !is_byte(a) || !is_byte(b) ||
        !has_zero_points_of_columns(b, b_zero))
        return nullptr;
    const Operand matrix = cleared_matrix(g, b, b_zero);
    return g.op("matmul_integer", {a, matrix, a_zero ? g.reshape(a_zero, {}) : nullptr});
}

/// The inner dimension in parts that single precision holds, where the catalog has no op.
Operand exact_product(OpWriter& g, const Operand& a, const Operand& b, const Operand& a_zero,
                      const Operand& b_zero) {
    const int a_rank = g.rank(a), b_rank = g.rank(b);
    invalid_if(a_rank == 0 || b_rank == 0, "the operands have {} and {} dimensions; 1 is the least", a_rank,
               b_rank);
    if (Operand y = product_of_bytes(g, a, b, a_zero, b_zero)) return y;
    const Operand left = less_zero(g, a, a_zero, true), right = less_zero(g, b, b_zero, false);
    const Dim inner = g.shape(left).back();
    if (inner.is_symbolic()) {
        const Operand y = matrix_product(g, g.cast(left, ElementType::f64), g.cast(right, ElementType::f64));
        return g.cast(y, ElementType::i32);
    }
    Operand total;
    for (std::int64_t start = 0; start < inner.size(); start += kExactTerms) {
        const std::int64_t count = std::min(kExactTerms, inner.size() - start);
        const Operand y = matrix_product(g, g.cut(left, g.rank(left) - 1, start, count),
                                         g.cut(right, std::max(g.rank(right) - 2, 0), start, count));
        const Operand part = g.cast(y, ElementType::i32);
        total = total ? g.op("add", {total, part}) : part;
    }
    invalid_if(!total, "the extent that is summed over is 0");
    return total;
}

Operand qlinear_conv(OpWriter& g, const Node& node) {
    const Operand x = node.x(), bias = node.optional(8);
    if (g.rank(x) == 4 && are_known(node, {1, 2, 3, 4, 5, 6, 7, 8})) {
        const Operand unit = g.op("mul", {g.reshape(node.operand(1), {}), node.operand(4)});
        const Operand image = dequantized(g, node, x, node.operand(1), node.operand(2), 1),
                      filter = dequantized(g, node, node.operand(3), node.operand(4), node.operand(5), 0);
        const Operand y = convolution(g, node, image, filter,
                                      bias ? dequantized(g, node, bias, unit, nullptr, 0) : nullptr);
        return quantized(g, node, y, node.operand(6), node.operand(7), 1);
    }
    Operand total = exact_convolution(g, node, x, node.operand(3), node.operand(2), node.operand(5));
    const int behind = g.rank(x) - 2;
    if (bias) total = g.op("add", {total, g.add_axes(bias, behind)});
    Operand w_scale = node.operand(4);
    const bool is_list = g.rank(w_scale) == 1 && !g.has_shape(w_scale, {1});
    w_scale = is_list ? g.add_axes(w_scale, behind) : g.reshape(w_scale, {});
    const Operand scale = g.op("mul", {g.reshape(node.operand(1), {}), w_scale});
    return requantized(g, node, total, scale, node.operand(6), node.operand(7));
}

std::span<const Operator> quantization_operators() {
    static const Operator kOperators[] = {
        {"ConvInteger", 10, conv_integer,
         "2..4 -> 1, auto_pad string, dilations ints, group int, kernel_shape ints, pads ints, strides ints"},
        {"DequantizeLinear", 10, dequantize_linear,
         "2..3 -> 1; 13: 2..3 -> 1, axis int; 21: 2..3 -> 1, axis int, block_size int; 23: 2..3 -> 1, axis "
         "int, block_size int, output_dtype int"},
        {"DequantizeLinear", 1, dequantize_linear, "2..3 -> 1, axis int", kMicrosoft},
        {"DynamicQuantizeLinear", 11, dynamic_quantize_linear, "1 -> 3"},
        {"MatMulInteger", 10, matmul_integer, "2..4 -> 1"},
        {"QLinearAdd", 1, qlinear_binary, "7..8 -> 1", kMicrosoft},
        {"QLinearConv", 10, qlinear_conv,
         "8..9 -> 1, auto_pad string, dilations ints, group int, kernel_shape ints, pads ints, strides ints"},
        {"QLinearMatMul", 10, qlinear_matmul, "8 -> 1"},
        {"QLinearMul", 1, qlinear_binary, "7..8 -> 1", kMicrosoft},
        {"QuantizeLinear", 10, quantize_linear,
         "2..3 -> 1; 13: 2..3 -> 1, axis int; 19: 2..3 -> 1, axis int, saturate int; 21: 2..3 -> 1, axis "
         "int, block_size int, output_dtype int, saturate int; 23: 2..3 -> 1, axis int, block_size int, "
         "output_dtype int, precision int, saturate int"},
        {"QuantizeLinear", 1, quantize_linear, "2..3 -> 1, axis int", kMicrosoft},
    };
    return kOperators;
}

}  // namespace headrace::onnx
