#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "ir/constant.h"
#include "ops/catalog.h"
#include "passes/eliminate_dead_code.h"
#include "passes/evaluate.h"
#include "passes/fused_matmul.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

/// A constant matrix (whole - zero_point) · scale, with a scale for each block of elements.
struct LinearMatrix {
    const Value* whole = nullptr;
    const Value* scale = nullptr;
    const Value* zero_point = nullptr;  ///< null: zeros
    bool transposed = false;            ///< the product reads the transpose of the matrix
};

constexpr DTypeSet kWhole{DType::i4, DType::u4, DType::i8, DType::u8};

bool is_constant(const Graph& graph, ValueId id) { return graph.value(id).kind == ValueKind::constant; }

std::optional<LinearMatrix> linear_matrix(const Graph& graph, ValueId b) {
    LinearMatrix m;
    if (const Node* transpose = producer(graph, b, "transpose")) {
        if (permutation_of(graph, *transpose) != std::vector<std::int64_t>{1, 0}) return std::nullopt;
        b = transpose->inputs[0];
        m.transposed = true;
    }
    const Node* dequantize = producer(graph, b, "dequantize_linear");
    if (!dequantize || graph.value(b).type.dtype != DType::f32 || graph.value(b).type.rank() != 2)
        return std::nullopt;
    for (ValueId id : dequantize->inputs)
        if (id != kNoValue && !is_constant(graph, id)) return std::nullopt;
    m.whole = &graph.value(dequantize->inputs[0]);
    m.scale = &graph.value(dequantize->inputs[1]);
    if (dequantize->inputs.size() > 2 && dequantize->inputs[2] != kNoValue)
        m.zero_point = &graph.value(dequantize->inputs[2]);
    if (!kWhole.has(m.whole->type.dtype)) return std::nullopt;
    return m;
}

int element(const Value& v, std::int64_t i) {
    const auto* bytes = v.constant->bytes.data();
    if (bits_of(v.type.dtype) == 8) {
        const auto byte = std::to_integer<int>(bytes[i]);
        return v.type.dtype == DType::i8 && byte > 127 ? byte - 256 : byte;
    }
    const int nibble = std::to_integer<int>(bytes[i / 2] >> (i % 2 * 4)) & 15;
    return v.type.dtype == DType::i4 && nibble > 7 ? nibble - 16 : nibble;
}

/// Reads a matrix as rows of the product's columns: row n, inner element k.
class BlockReader {
public:
    BlockReader(const LinearMatrix& m, bool inner_first) : m_(m), inner_first_(inner_first) {
        const Shape& shape = m.whole->type.shape;
        columns_ = shape[1].size();
        rows_ = shape[!inner_first ? 0 : 1].size();
        inner_ = shape[inner_first ? 0 : 1].size();
        const Shape& scales = m.scale->type.shape;
        const int rank = static_cast<int>(scales.size());
        const std::int64_t down = rank > 1 ? scales[0].size() : 1,
                           across = rank > 0 ? scales.back().size() : 1;
        row_block_ = shape[0].size() / down;
        column_block_ = columns_ / across;
        scale_columns_ = across;
    }

    std::int64_t rows() const { return rows_; }
    std::int64_t inner() const { return inner_; }
    /// Whether so many inner elements, which divide a block of 32, have one scale.
    bool has_one_scale_per(std::int64_t elements) const {
        return inner_ % kBlockElements == 0 && (inner_first_ ? row_block_ : column_block_) % elements == 0;
    }
    /// A row's codes from element k on.
    void codes(std::int64_t row, std::int64_t k, std::span<int> to) const {
        const std::int64_t first = at(row, k), step = inner_first_ ? columns_ : 1;
        const DType type = m_.whole->type.dtype;
        if (bits_of(type) != 8) {
            for (std::int64_t i = 0; int& code : to) code = element(*m_.whole, first + step * i++);
            return;
        }
        const std::byte* from = m_.whole->constant->bytes.data() + first;
        const int sign = type == DType::i8 ? 128 : 0;
        for (std::int64_t i = 0; int& code : to)
            code = (std::to_integer<int>(from[step * i++]) ^ sign) - sign;
    }
    std::int64_t scale_index(std::int64_t row, std::int64_t k) const {
        const std::int64_t i = at(row, k);
        return i / columns_ / row_block_ * scale_columns_ + i % columns_ / column_block_;
    }
    float scale(std::int64_t index) const {
        float value;  // f32, as the matrix that it makes; memory that a caller lent may lie anywhere
        std::memcpy(&value,
                    m_.scale->constant->bytes.data() + sizeof(value) * static_cast<std::size_t>(index),
                    sizeof(value));
        return value;
    }
    int zero_point(std::int64_t index) const { return m_.zero_point ? element(*m_.zero_point, index) : 0; }
    /// The scale that a row has in all its blocks.
    std::optional<float> scale_of_row(std::int64_t row) const {
        const float first = scale(scale_index(row, 0));
        for (std::int64_t k = 0; k < inner_; k += kBlockElements)
            if (scale(scale_index(row, k)) != first) return std::nullopt;
        return first;
    }

private:
    std::int64_t at(std::int64_t row, std::int64_t k) const {
        return inner_first_ ? k * columns_ + row : row * columns_ + k;
    }

    LinearMatrix m_;
    bool inner_first_;
    std::int64_t columns_, rows_, inner_, row_block_, column_block_, scale_columns_;
};

bool fits_half(float value) { return std::isfinite(value) && half_to_float(float_to_half(value)) == value; }

/// Stores what the type holds: in f16 exactly, else false.
bool store(float value, bool is_half, std::byte* to) {
    if (is_half ? !fits_half(value) : !std::isfinite(value)) return false;
    is_half ? store_half(value, to) : static_cast<void>(std::memcpy(to, &value, sizeof(value)));
    return true;
}

/// Two blocks of 16 as one, exactly, or false where the format cannot say it.
bool write_pair(const BlockReader& matrix, std::int64_t row, std::int64_t k, BlockFormat format, int lowest,
                std::byte* to) {
    constexpr int kHalf = kBlockElements / 2;
    int codes[2][kHalf], zeros[2];
    for (int half = 0; half < 2; ++half, k += kHalf) {
        const std::int64_t index = matrix.scale_index(row, k);
        if (!store(matrix.scale(index), false, to + half * 4)) return false;
        zeros[half] = matrix.zero_point(index);
        matrix.codes(row, k, codes[half]);
    }
    to += 8;
    if (format == BlockFormat::q8_16_f32) {
        for (int half = 0; half < 2; ++half)
            for (int code : codes[half]) {
                if (code - zeros[half] < -128 || code - zeros[half] > 127) return false;
                *to++ = static_cast<std::byte>(code - zeros[half]);
            }
        return true;
    }
    const auto pair = [&](int low, int high) {
        return static_cast<std::byte>((low - lowest) | (high - lowest) << 4);
    };
    *to++ = pair(zeros[0], zeros[1]);
    for (int i = 0; i < kHalf; ++i) *to++ = pair(codes[0][i], codes[1][i]);
    return true;
}

/// One block, exactly, or false where the format cannot say it. Scales may be left to what follows the
/// product.
bool write_block(const BlockReader& matrix, std::int64_t row, std::int64_t k, BlockFormat format, int lowest,
                 bool has_scales, std::byte* to) {
    if (has_blocks_of_16(format)) return write_pair(matrix, row, k, format, lowest, to);
    const std::int64_t index = matrix.scale_index(row, k);
    const float scale = has_scales ? matrix.scale(index) : 1;
    const int zero = matrix.zero_point(index);
    const bool is_half = is_of_ggml(format);
    if (!store(scale, is_half, to)) return false;
    to += is_half ? 2 : 4;
    int codes[kBlockElements];
    matrix.codes(row, k, codes);
    for (int& code : codes) code -= zero;
    const auto [least, most] = std::minmax_element(codes, codes + kBlockElements);
    if (format == BlockFormat::q8_0 || format == BlockFormat::q8_0_f32) {
        if (*least < -128 || *most > 127) return false;
        for (int i = 0; i < kBlockElements; ++i) to[i] = static_cast<std::byte>(codes[i]);
        return true;
    }
    int shift = 8;
    if (format == BlockFormat::q4_0 || format == BlockFormat::q4_0_f32) {
        if (*least < -8 || *most > 7) return false;
    } else {  // value = scale · stored + minimum, where the stored codes are the given ones from 0 on
        shift = zero - lowest;
        if (!store(-scale * static_cast<float>(shift), is_half, to)) return false;
        to += is_half ? 2 : 4;
    }
    for (int i = 0; i < kBlockElements / 2; ++i)
        to[i] = static_cast<std::byte>((codes[i] + shift) | (codes[i + kBlockElements / 2] + shift) << 4);
    return true;
}

Result<std::shared_ptr<const Constant>> exact_blocks(const BlockReader& matrix, BlockFormat format,
                                                     int lowest, bool has_scales) {
    const TensorType type{DType::f32, {matrix.rows(), matrix.inner()}, format};
    HR_ASSIGN(auto buffer, AlignedBuffer::allocate(type.bytes(), "block weights"));
    // Rows of the product's columns lie side by side in most files: as many as share a line of the cache.
    constexpr std::int64_t kRowsAtOnce = 64;
    const std::size_t block = block_bytes(format);
    const std::int64_t blocks = matrix.inner() / kBlockElements;
    for (std::int64_t first = 0; first < matrix.rows(); first += kRowsAtOnce)
        for (std::int64_t at = 0; at < blocks; ++at)
            for (std::int64_t row = first; row < std::min(first + kRowsAtOnce, matrix.rows()); ++row) {
                std::byte* to = buffer.data() + static_cast<std::size_t>(row * blocks + at) * block;
                if (!write_block(matrix, row, at * kBlockElements, format, lowest, has_scales, to))
                    return std::shared_ptr<const Constant>();
            }
    return own_constant(std::move(buffer));
}

/// How scales are stored.
enum class Scales { in_f16, of_rows, in_f32, of_halves };

/// The matrix as a constant in the smallest format that says it exactly; no constant where none does.
Result<Value> block_constant(const LinearMatrix& m, const BlockReader& matrix, Scales scales) {
    Value made{.kind = ValueKind::constant, .name = m.whole->name};
    const DType type = m.whole->type.dtype;
    using enum BlockFormat;
    const bool is_f32 = scales == Scales::in_f32, has_scales = scales != Scales::of_rows;
    std::vector<BlockFormat> formats{is_f32 ? q8_0_f32 : q8_0};
    if (bits_of(type) == 4) formats = is_f32 ? std::vector{q4_0_f32, q4_1_f32} : std::vector{q4_0, q4_1};
    if (scales == Scales::of_halves) formats = {bits_of(type) == 4 ? q4_16_f32 : q8_16_f32};
    for (BlockFormat format : formats) {
        HR_ASSIGN(made.constant, exact_blocks(matrix, format, type == DType::i4 ? -8 : 0, has_scales));
        made.type = {DType::f32, {matrix.rows(), matrix.inner()}, format};
        if (made.constant) break;
    }
    return made;
}

/// The scale of each row, where each has one.
Result<std::optional<Value>> scales_of_rows(const BlockReader& matrix) {
    const TensorType type{DType::f32, {matrix.rows()}};
    HR_ASSIGN(auto buffer, AlignedBuffer::allocate(type.bytes(), "scales"));
    auto* scales = reinterpret_cast<float*>(buffer.data());
    for (std::int64_t row = 0; row < matrix.rows(); ++row) {
        const auto scale = matrix.scale_of_row(row);
        if (!scale) return std::optional<Value>();
        scales[row] = *scale;
    }
    return std::optional<Value>(
        Value{.kind = ValueKind::constant, .type = type, .constant = own_constant(std::move(buffer))});
}

/// What a product reads in place of a matrix of small integers; kNoValue where no blocks say it.
struct Blocks {
    ValueId matrix = kNoValue;
    ValueId scales = kNoValue;  ///< what the product's columns are multiplied by; else the blocks have them
};

Result<Blocks> blocks_of(Graph& graph, const LinearMatrix& m, bool transpose_b, bool may_be_ours) {
    const BlockReader matrix(m, transpose_b == m.transposed);
    Blocks blocks;
    const bool is_whole = matrix.has_one_scale_per(kBlockElements);
    if (!is_whole && !(may_be_ours && matrix.has_one_scale_per(kBlockElements / 2))) return blocks;
    const auto add = [&](Value value) {
        graph.values.push_back(std::move(value));
        return static_cast<ValueId>(graph.values.size() - 1);
    };
    HR_ASSIGN(Value made, block_constant(m, matrix, is_whole ? Scales::in_f16 : Scales::of_halves));
    std::optional<Value> scales;
    if (!made.constant && is_whole) {
        HR_ASSIGN(scales, scales_of_rows(matrix));
        if (scales) {
            HR_ASSIGN(made, block_constant(m, matrix, Scales::of_rows));
        } else if (may_be_ours) {
            HR_ASSIGN(made, block_constant(m, matrix, Scales::in_f32));
        }
    }
    if (!made.constant) return blocks;
    if (scales) blocks.scales = add(std::move(*scales));
    blocks.matrix = add(std::move(made));
    return blocks;
}

/// product · scales + bias, in place of one node; product's own result is new.
Result<std::vector<Node>> scaled_product(Graph& graph, FusedMatmul product, ValueId scales,
                                         const Node& node) {
    const ValueId result = node.outputs[0], bias = std::exchange(product.bias, kNoValue);
    const auto next = [&] {
        graph.values.push_back({.type = graph.value(result).type});
        return static_cast<ValueId>(graph.values.size() - 1);
    };
    std::vector<Node> nodes;
    const auto join = [&](OpName op, ValueId x, ValueId row, ValueId y) -> Status {
        const OpDef& def = catalog_op(op);
        Node joined{.op = &def, .attrs = {}, .inputs = {x, row}, .outputs = {y}, .label = node.label};
        HR_ASSIGN(joined.attrs, def.make_attrs({}));
        nodes.push_back(std::move(joined));
        return success();
    };
    const ValueId sums = next(), scaled = bias == kNoValue ? result : next();
    HR_ASSIGN(Node multiply, make_fused(graph, product, {sums}, node.label));
    nodes.push_back(std::move(multiply));
    HR_TRY(join("mul", sums, scales, scaled));
    if (bias != kNoValue) HR_TRY(join("add", scaled, bias, result));
    return nodes;
}

/// The matrix in f32 is several times as large, but a run that makes it again takes far longer than the
/// product.
Status expand(Graph& graph, std::vector<bool>& keep, FusedMatmul& product) {
    if (const Node* transpose = producer(graph, product.b, "transpose")) {
        product.b = transpose->inputs[0];
        product.transpose_b = !product.transpose_b;
    }
    const NodeId at = graph.value(product.b).producer;
    if (at < 0) return success();  // for another product
    keep[static_cast<std::size_t>(at)] = false;
    return make_constant(graph, graph.node(at));
}

/// Lets a product with a constant matrix of small integers and scales (dequantize_linear) read it in ggml's
/// blocks, where they say exactly the same: with the scales, or, where each column of the product has one,
/// with those multiplied to the product; else, where the CPU runs it, in blocks with scales in f32, a half's
/// own ones for blocks of 16. Other such matrices become f32 up to FoldLimits::grown_bytes each.
Result<Counts> fold_dequantize_into_matmul(Graph& graph, const PassContext& context) {
    std::int64_t expanded = 0, matrices = 0;
    double left = context.fold.most_bytes(graph);
    std::set<ValueId> in_f32;
    std::map<std::pair<ValueId, bool>, Blocks> made;
    const FilePages pages;
    std::vector<bool> keep(graph.nodes.size(), true);
    std::vector<std::vector<Node>> instead(graph.nodes.size());
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        auto product = fused_matmul(graph, graph.nodes[i]);
        if (!product) continue;
        const auto matrix = linear_matrix(graph, product->b);
        const bool has_plain_end = product->activation == "none" && product->residual == kNoValue;
        if (!matrix || !has_plain_end) continue;
        const auto [it, fresh] = made.try_emplace({product->b, product->transpose_b});
        if (fresh) {
            const std::shared_ptr<const Constant> plain = matrix->whole->constant;
            HR_ASSIGN(it->second, blocks_of(graph, *matrix, product->transpose_b,
                                            context.runs_on_cpu && context.uses_packed_kernels));
            matrices += it->second.matrix != kNoValue;
            pages.give_back(plain->bytes);
        }
        const auto [blocks, scales] = it->second;
        if (blocks == kNoValue) {
            const std::size_t bytes = graph.value(product->b).type.bytes();
            if (bytes > context.fold.grown_bytes) continue;
            if (!in_f32.contains(product->b)) {
                if (static_cast<double>(bytes) > left) continue;
                left -= static_cast<double>(bytes);
                in_f32.insert(product->b);
            }
            HR_TRY(expand(graph, keep, *product));
            expanded += fresh;
        } else {
            product->b = blocks;
            product->transpose_b = true;
        }
        if (scales != kNoValue) {
            HR_ASSIGN(instead[i], scaled_product(graph, *product, scales, graph.nodes[i]));
        } else {
            HR_ASSIGN(Node node, make_fused(graph, *product, graph.nodes[i].outputs, graph.nodes[i].label));
            instead[i].push_back(std::move(node));
        }
    }
    std::vector<Node> nodes;
    for (std::size_t i = 0; i < instead.size(); ++i) {
        if (!keep[i]) continue;
        if (instead[i].empty()) nodes.push_back(std::move(graph.nodes[i]));
        std::move(instead[i].begin(), instead[i].end(), std::back_inserter(nodes));
    }
    graph.nodes = std::move(nodes);
    graph.compact(std::vector<bool>(graph.nodes.size(), true));
    HR_TRY(eliminate_dead_code(graph, context));  // what made the matrices
    return Counts{{"matrices", matrices}, {"matrices_expanded", expanded}};
}

}  // namespace

Pass fold_dequantize_into_matmul_pass() {
    // Folding converts what is small enough.
    return {.name = "fold_dequantize_into_matmul",
            .summary = "lets products read integer matrices and their scales as ggml's blocks",
            .run = &fold_dequantize_into_matmul,
            .after = {"fold_constants"}};
}

}  // namespace headrace
