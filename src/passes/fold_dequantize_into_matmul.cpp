#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/file_pages.h"
#include "ir/constant.h"
#include "ops/catalog.h"
#include "passes/eliminate_dead_code.h"
#include "passes/evaluate.h"
#include "passes/exact_blocks.h"
#include "passes/fused_matmul.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

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

/// How scales are stored.
enum class Scales { in_f16, of_rows, in_f32, of_halves };

/// The matrix as a constant in the smallest format that says it exactly; no constant where none does.
Result<Value> block_constant(const LinearMatrix& m, const BlockReader& matrix, Scales scales,
                             const BlockWork& work) {
    Value made{.kind = ValueKind::constant, .name = m.whole->name};
    const DType type = m.whole->type.dtype;
    using enum BlockFormat;
    const bool is_f32 = scales == Scales::in_f32, has_scales = scales != Scales::of_rows;
    std::vector<BlockFormat> formats{is_f32 ? q8_0_f32 : q8_0};
    if (bits_of(type) == 4) formats = is_f32 ? std::vector{q4_0_f32, q4_1_f32} : std::vector{q4_0, q4_1};
    if (scales == Scales::of_halves) formats = {bits_of(type) == 4 ? q4_16_f32 : q8_16_f32};
    for (BlockFormat format : formats) {
        const BlockForm form{format, type == DType::i4 ? -8 : 0, has_scales};
        HR_ASSIGN(made.constant, exact_blocks(matrix, form, work));
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

Result<Blocks> blocks_of(Graph& graph, const LinearMatrix& m, bool transpose_b, const PassContext& context,
                         const FilePages& pages) {
    const bool may_be_ours = context.runs_on_cpu && context.uses_packed_kernels;
    const BlockWork work{pages, context.threads};
    const BlockReader matrix(m, transpose_b == m.transposed);
    Blocks blocks;
    const bool is_whole = matrix.has_one_scale_per(kBlockElements);
    if (!is_whole && !(may_be_ours && matrix.has_one_scale_per(kBlockElements / 2))) return blocks;
    const auto add = [&](Value value) {
        graph.values.push_back(std::move(value));
        return static_cast<ValueId>(graph.values.size() - 1);
    };
    HR_ASSIGN(Value made, block_constant(m, matrix, is_whole ? Scales::in_f16 : Scales::of_halves, work));
    std::optional<Value> scales;
    if (!made.constant && is_whole) {
        HR_ASSIGN(scales, scales_of_rows(matrix));
        if (scales) {
            HR_ASSIGN(made, block_constant(m, matrix, Scales::of_rows, work));
        } else if (may_be_ours) {
            HR_ASSIGN(made, block_constant(m, matrix, Scales::in_f32, work));
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
            HR_ASSIGN(it->second, blocks_of(graph, *matrix, product->transpose_b, context, pages));
            matrices += it->second.matrix != kNoValue;
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
