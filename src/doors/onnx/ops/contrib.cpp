#include <array>

#include "doors/onnx/ops/elementwise.h"
#include "doors/onnx/ops/few_bits.h"
#include "doors/onnx/ops/linear_algebra.h"
#include "doors/onnx/ops/normalization.h"
#include "doors/onnx/ops/onnx_node.h"

/// Operators of ONNX Runtime's own domain that exported transformers have.
namespace headrace::onnx {
namespace {

Operand gelu_with_bias(OpWriter& g, const Node& node) {
    const Operand x = node.x(), bias = node.optional(1);
    return g.op(node.op == "FastGelu" ? "gelu_tanh" : "gelu", {bias ? g.op("add", {x, bias}) : x});
}

Operand quick_gelu(OpWriter& g, const Node& node) {
    return scaled_silu(g, node.x(), node.real("alpha", 1.702));
}

Results contrib_gelu(OpWriter& g, const Node& node) {
    return read_onnx(g, onnx_node(node, "Gelu", 20, node.inputs));
}

Results contrib_simplified_norm(OpWriter& g, const Node& node) {
    return read_onnx(g, onnx_node(node, "SimplifiedLayerNormalization", 1, node.inputs));
}

/// Normalizes input + skip + bias; that sum is the fourth output.
Results skip_layer_normalization(OpWriter& g, const Node& node) {
    if (node.wants(1) || node.wants(2))
        throw Refused("outputs 1 and 2 are wanted, mean and inverse deviation, which are not given out",
                      "Export the model for inference, without these outputs");
    const bool is_simple = node.op == "SkipSimplifiedLayerNormalization";
    Operand total = g.op("add", {node.x(), node.operand(1)});
    const Operand bias = node.optional(is_simple ? 3 : 4), scale = node.operand(2);
    if (bias) total = g.op("add", {total, bias});
    invalid_if(g.rank(total) == 0, "the input is a scalar, which has no last axis");
    const int axis = g.rank(total) - 1;
    const double epsilon = node.real("epsilon", 1e-12);
    const Operand y = is_simple ? rms_norm(g, total, scale, axis, epsilon)
                                : layer_norm(g, total, scale, node.optional(3), axis, epsilon);
    return {y, nullptr, nullptr, total};
}

// --- matrices in blocks of a few bits

/// [n, k] in blocks of elements, which lie in bytes, the low bits first.
struct PackedMatrix {
    std::int64_t n, k, bits, block, blocks;

    std::int64_t row_bytes() const { return blocks * block * bits / 8; }
};

PackedMatrix packed_matrix_of(const Node& node) {
    PackedMatrix m{node.integer("N", 0), node.integer("K", 0), node.integer("bits", 4),
                   node.integer("block_size", 0), 0};
    check_bits(m.bits, "bits");
    invalid_if(std::min({m.n, m.k, m.block}) < 1, "N is {}, K {} and block_size {}; each must be at least 1",
               m.n, m.k, m.block);
    m.blocks = divided_up(m.k, m.block).size();
    const Dim row = Dim(m.blocks) * Dim(m.block) * Dim(m.bits), all = row * Dim(m.n);
    invalid_if(row.size() % 8 != 0, "a row has {} blocks of {} elements of {} bits, which are no whole bytes",
               m.blocks, m.block, m.bits);
    const std::int64_t given = node.known_operand(1, "the weights")->known->count();
    invalid_if(given != all.size() / 8,
               "the weights (input 1) are {} bytes; N, K, bits and block_size need {}", given,
               all.size() / 8);
    return m;
}

/// An input of so many numbers, all known.
Operand known_numbers(const Node& node, std::size_t index, std::string_view what, std::int64_t count) {
    Operand x = node.known_operand(index, what);
    invalid_if(!x->has_numbers() || x->known->count() < count, "{} (input {}) has {} numbers of {}", what,
               index, x->known->count(), count);
    return x;
}

/// [n, row_bytes]
Operand packed_numbers_of(const Node& node, const PackedMatrix& m) {
    const Operand packed = known_numbers(node, 1, "the weights", m.n * m.row_bytes());
    invalid_if(packed->type != ElementType::u8, "the weights (input 1) are {}, not u8",
               name_of(packed->type));
    return packed;
}

/// [n, blocks]
std::vector<float> scales_of(const Node& node, const PackedMatrix& m) {
    const Operand given = known_numbers(node, 2, "the scales", m.n * m.blocks);
    std::vector<float> scales;
    for (std::int64_t i = 0; i < m.n * m.blocks; ++i) scales.push_back(static_cast<float>(given->real(i)));
    return scales;
}

/// Each block's, [n, blocks]: half of the range, or whole numbers in bytes, or real ones.
std::vector<float> zero_points_of(const Node& node, const PackedMatrix& m) {
    std::vector<float> zeros(static_cast<std::size_t>(m.n * m.blocks), static_cast<float>(1 << (m.bits - 1)));
    if (!node.optional(3)) return zeros;
    const bool is_packed = node.operand(3)->type == ElementType::u8;
    const std::int64_t row_bytes = (m.blocks * m.bits + 7) / 8;
    const Operand given = known_numbers(node, 3, "the zero points", m.n * (is_packed ? row_bytes : m.blocks));
    const std::int64_t stride = given->known->count() / m.n;
    for (std::int64_t i = 0; i < m.n * m.blocks; ++i) {
        float& zero = zeros[static_cast<std::size_t>(i)];
        if (!is_packed) {
            zero = static_cast<float>(given->real(i));
            continue;
        }
        const std::byte* row = given->known->data->bytes.data() + i / m.blocks * stride;
        zero = static_cast<float>(bits_at(row, i % m.blocks, m.bits));
    }
    return zeros;
}

/// The block of each of the matrix's k columns; g_idx has them in the order of their activations.
std::vector<std::int64_t> blocks_of_columns(const Node& node, const PackedMatrix& m) {
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < m.k; ++i) places.push_back(i / m.block);
    if (!node.optional(4)) return places;
    const Operand given = node.known_operand(4, "g_idx");
    const std::int64_t count = given->has_numbers() ? given->known->count() : 0;
    bool fits = count >= m.k;
    for (std::int64_t i = 0; fits && i < m.k; ++i) {
        const std::int64_t place = places[static_cast<std::size_t>(i)] = given->integer(i);
        fits = place >= 0 && place < m.blocks;
    }
    invalid_if(!fits, "g_idx (input 4) has {} places of {} blocks for {} rows", count, m.blocks, m.k);
    return places;
}

/// The transposed matrix, [k, n], f32.
Operand unpacked_matrix(OpWriter& g, const Node& node) {
    const PackedMatrix m = packed_matrix_of(node);
    const Operand packed = packed_numbers_of(node, m);
    const std::vector<float> scales = scales_of(node, m);
    const std::vector<float> zeros = zero_points_of(node, m);
    const std::vector<std::int64_t> places = blocks_of_columns(node, m);
    const std::size_t bytes = static_cast<std::size_t>(m.n) * static_cast<std::size_t>(m.k) * sizeof(float);
    g.budget().constant(bytes);
    auto buffer = value_or_refuse(AlignedBuffer::allocate(bytes, "a matrix of few bits"));
    auto* out = reinterpret_cast<float*>(buffer.data());
    for (std::int64_t row = 0; row < m.n; ++row) {
        const std::byte* from = packed->known->data->bytes.data() + row * m.row_bytes();
        for (std::int64_t i = 0; i < m.k; ++i) {
            const auto block = static_cast<std::size_t>(row * m.blocks + places[static_cast<std::size_t>(i)]);
            out[i * m.n + row] =
                (static_cast<float>(bits_at(from, i, m.bits)) - zeros[block]) * scales[block];
        }
    }
    return known(Elements{.shape = {m.k, m.n}, .data = own_constant(std::move(buffer)), .items = {}},
                 ElementType::f32);
}

// --- that stay in blocks

/// Whether the matrix stays in blocks: of 16 elements or multiples, all whole, with zero points among the
/// codes.
bool stays_in_blocks(const Node& node, const PackedMatrix& m) {
    const auto is_code = [&](float zero) {
        return zero == std::floor(zero) && zero >= 0 && zero < static_cast<float>(1 << m.bits);
    };
    return m.block % (kBlockElements / 2) == 0 && m.k % kBlockElements == 0 && m.k == m.blocks * m.block &&
           !node.optional(4) && std::ranges::all_of(zero_points_of(node, m), is_code);
}

/// A product with the matrix by scales in f32 and its codes, which passes leave in blocks.
Operand product_of_blocks(OpWriter& g, const Node& node, const PackedMatrix& m) {
    const Operand packed = packed_numbers_of(node, m);
    const std::vector<float> scales = scales_of(node, m);
    std::vector<std::uint8_t> zeros;
    for (const float zero : zero_points_of(node, m)) zeros.push_back(static_cast<std::uint8_t>(zero));
    const Operand matrix =
        g.op("dequantize_linear", {codes_of_rows(g, packed, own_order(m.n), m.k, m.bits),
                                   known_elements<float>({m.n, m.blocks}, scales, ElementType::f32),
                                   known_codes(m.n, m.blocks, m.bits, zeros)});
    Operand x = g.cast(node.x(), ElementType::f32);
    const bool is_list = g.rank(x) == 1;
    if (is_list) x = g.reshape(x, {1, m.k});
    const Operand bias = node.optional(5);
    Operand y = g.op("fused_matmul", {x, matrix, bias ? g.cast(bias, ElementType::f32) : nullptr},
                     {{"transpose_b", true}, {"round_a", node.integer("accuracy_level", 0) == 4}});
    if (is_list) y = g.reshape(y, {m.n});
    return g.cast(y, node.x()->type);
}

/// x times the transpose of a matrix [n, k] in blocks of 2, 4 or 8 bits with scales and zero points.
Operand matmul_n_bits(OpWriter& g, const Node& node) {
    const PackedMatrix m = packed_matrix_of(node);
    if (stays_in_blocks(node, m)) return product_of_blocks(g, node, m);
    const Operand matrix = g.cast(unpacked_matrix(g, node), node.x()->type), bias = node.optional(5);
    const Operand y = matrix_product(g, node.x(), matrix);
    return bias ? g.op("add", {y, bias}) : y;
}

// --- four bits that stand for real numbers

/// FP4's and NF4's numbers, of a block whose largest is 1.
constexpr std::array<std::array<float, 16>, 2> kBnb4Numbers{
    {{0.0F, 1.0F / 192, 2.0F / 3, 1.0F, 1.0F / 3, 1.0F / 2, 1.0F / 6, 1.0F / 4, -0.0F, -1.0F / 192, -2.0F / 3,
      -1.0F, -1.0F / 3, -1.0F / 2, -1.0F / 6, -1.0F / 4},
     {-1.0F, -0.6961928009986877F, -0.5250730514526367F, -0.39491748809814453F, -0.28444138169288635F,
      -0.18477343022823334F, -0.09105003625154495F, 0.0F, 0.07958029955625534F, 0.16093020141124725F,
      0.24611230194568634F, 0.33791524171829224F, 0.44070982933044434F, 0.5626170039176941F,
      0.7229568362236023F, 1.0F}}};

/// x times the transpose of a matrix [N, K] whose blocks, over rows' ends, have their largest number beside
/// them; the high bits of a byte come first.
Operand matmul_bnb4(OpWriter& g, const Node& node) {
    const std::int64_t n = node.integer("N"), k = node.integer("K"), block = node.integer("block_size"),
                       kind = node.integer("quant_type");
    refuse_if(!node.flag("transB", true), "transB is 0; only 1 is read");
    invalid_if(std::min({n, k, block}) < 1, "N is {}, K {} and block_size {}; each must be at least 1", n, k,
               block);
    invalid_if(kind != 0 && kind != 1, "quant_type is {}; it is 0 (FP4) or 1 (NF4)", kind);
    const Dim all = Dim(n) * Dim(k);
    const std::int64_t count = all.size();
    const Operand packed = known_numbers(node, 1, "the weights", (count + 1) / 2),
                  largest = known_numbers(node, 2, "absmax", divided_up(count, block).size());
    invalid_if(packed->type != ElementType::u8, "the weights (input 1) are {}, not u8",
               name_of(packed->type));
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
    g.budget().constant(bytes);
    auto buffer = value_or_refuse(AlignedBuffer::allocate(bytes, "a matrix of few bits"));
    auto* out = reinterpret_cast<float*>(buffer.data());
    const std::byte* from = packed->known->data->bytes.data();
    const auto& numbers = kBnb4Numbers[static_cast<std::size_t>(kind)];
    for (std::int64_t i = 0; i < count; ++i) {
        const int code = std::to_integer<int>(from[i / 2]) >> (i % 2 == 0 ? 4 : 0) & 15;
        out[i] = numbers[static_cast<std::size_t>(code)] * static_cast<float>(largest->real(i / block));
    }
    const Operand matrix = known(
        Elements{.shape = {n, k}, .data = own_constant(std::move(buffer)), .items = {}}, ElementType::f32);
    return matrix_product(g, node.x(), g.transpose(g.cast(matrix, node.x()->type), {1, 0}));
}

}  // namespace

std::span<const Operator> contrib_operators() {
    static const Operator kOperators[] = {
        {"BiasGelu", 1, gelu_with_bias, "2 -> 1", kMicrosoft},
        {"FastGelu", 1, gelu_with_bias, "1..2 -> 1", kMicrosoft},
        {"Gelu", 1, contrib_gelu, "1 -> 1", kMicrosoft},
        {"MatMulBnb4", 1, matmul_bnb4,
         "3 -> 1, K int, N int, block_size int, quant_type int, training_mode int, transB int", kMicrosoft},
        {"MatMulNBits", 1, matmul_n_bits,
         "3..6 -> 1, K int, N int, accuracy_level int, bits int, block_size int, weight_prepacked int",
         kMicrosoft},
        {"QuickGelu", 1, quick_gelu, "1 -> 1, alpha float", kMicrosoft},
        {"SimplifiedLayerNormalization", 1, contrib_simplified_norm,
         "2 -> 1..2, axis int, epsilon float, stash_type int", kMicrosoft},
        {"SkipLayerNormalization", 1, skip_layer_normalization, "3..5 -> 1..4, epsilon float", kMicrosoft},
        {"SkipSimplifiedLayerNormalization", 1, skip_layer_normalization, "3..4 -> 1..4, epsilon float",
         kMicrosoft},
    };
    return kOperators;
}

}  // namespace headrace::onnx
