#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "ir/constant.h"
#include "passes/fused_matmul.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

/// The matrix [k, n] or, if transposed, [n, k] as n rows of blocks along k.
Result<std::shared_ptr<const Constant>> to_blocks(const Value& matrix, bool transposed, BlockFormat format) {
    const auto sizes = matrix.type.sizes();
    const std::int64_t n = sizes[!transposed], k = sizes[transposed];
    const TensorType type{DType::f32, {n, k}, format};
    HR_ASSIGN(auto buffer, AlignedBuffer::allocate(type.bytes(), "quantised weights"));
    const std::size_t row_bytes = type.bytes() / static_cast<std::size_t>(n);
    std::vector<float> row(static_cast<std::size_t>(k));
    HR_ASSIGN(const AlignedBytes plain, AlignedBytes::of(*matrix.constant));
    visit_dtype(matrix.type.dtype, [&]<class T>() {
        const auto* from = reinterpret_cast<const T*>(plain.data());
        for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t j = 0; j < k; ++j)
                row[j] = static_cast<float>(transposed ? from[i * k + j] : from[j * n + i]);
            quantize(format, row.data(), k, buffer.data() + static_cast<std::size_t>(i) * row_bytes);
        }
    });
    return own_constant(std::move(buffer));
}

bool is_eligible(const Value& b, bool transposed, const PassContext& context) {
    constexpr DTypeSet kStored{DType::f32, DType::f16, DType::bf16};
    return b.kind == ValueKind::constant && kStored.has(b.type.dtype) &&
           b.type.format == BlockFormat::plain && b.type.shape[transposed].size() % kBlockElements == 0 &&
           b.type.elements() > 0 && b.type.bytes() >= context.least_quantized_bytes;
}

/// Whether blocks keep what the matrix says. Their scale is a half: beyond its range there are no finite
/// results, far below its normal numbers nothing but its own rounding is left. NaN would become some number.
bool has_range_of_blocks(const Value& matrix, BlockFormat format) {
    constexpr float kLargestScale = 65504, kSmallestScale = 0x1p-17f;
    const float levels = format == BlockFormat::q4_0 ? 8 : 127;
    float largest = 0;
    visit_dtype(matrix.type.dtype, [&]<class T>() {
        const std::byte* elements = matrix.constant->bytes.data();  // at any place
        for (std::int64_t i = 0; i < matrix.type.elements(); ++i) {
            T element;
            std::memcpy(&element, elements + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
            const float size = std::abs(static_cast<float>(element));
            largest = std::isnan(size) ? std::numeric_limits<float>::infinity() : std::max(largest, size);
        }
    });
    const float scale = largest / levels;
    return largest == 0 || (scale >= kSmallestScale && scale <= kLargestScale);
}

/// Tables whose rows are gathered and multiplied, embeddings that are the last layer as well, are stored
/// once.
void share_with_gathers(Graph& graph, const std::map<std::pair<ValueId, bool>, ValueId>& made) {
    for (Node& node : graph.nodes) {
        if (!is(node, "gather") || attr<std::int64_t>(node, "axis") != 0) continue;
        const ValueId table = node.inputs[0];
        const auto blocks = made.find({table, true});
        if (blocks != made.end() && graph.value(table).type.dtype == DType::f32)
            node.inputs[0] = blocks->second;
    }
}

/// Stores the constant matrices of products with f32 in PassContext::weights, where their inner extent is a
/// multiple of 32 and they are large enough; nodes that gather rows of such a matrix read the blocks, too.
/// Results change within the format's rounding, and that of the other operand where
/// PassContext::round_activations allows it.
Result<Counts> quantize_weights(Graph& graph, const PassContext& context) {
    std::int64_t before = 0, after = 0;
    std::map<std::pair<ValueId, bool>, ValueId> made;  // by matrix and direction
    for (std::size_t i = 0; i < graph.nodes.size() && context.weights != BlockFormat::plain; ++i) {
        auto product = fused_matmul(graph, graph.nodes[i]);
        // Blocks stand for f32, with which nothing else is multiplied.
        if (!product || graph.value(product->a).type.dtype != DType::f32 ||
            !is_eligible(graph.value(product->b), product->transpose_b, context) ||
            !has_range_of_blocks(graph.value(product->b), context.weights))
            continue;
        const auto [it, fresh] = made.try_emplace({product->b, product->transpose_b}, kNoValue);
        if (fresh) {
            const Value matrix = graph.value(product->b);
            HR_ASSIGN(auto blocks, to_blocks(matrix, product->transpose_b, context.weights));
            before += static_cast<std::int64_t>(matrix.constant->bytes.size());
            after += static_cast<std::int64_t>(blocks->bytes.size());
            Shape shape = matrix.type.shape;
            if (!product->transpose_b) std::swap(shape[0], shape[1]);
            it->second = static_cast<ValueId>(graph.values.size());
            graph.values.push_back({.kind = ValueKind::constant,
                                    .type = {DType::f32, std::move(shape), context.weights},
                                    .name = matrix.name,
                                    .constant = std::move(blocks)});
        }
        product->b = it->second;
        product->transpose_b = true;
        product->round_a = context.round_activations;
        product->round_to_bf16 = false;
        HR_ASSIGN(Node node, make_fused(graph, *product, graph.nodes[i].outputs, graph.nodes[i].label));
        graph.nodes[i] = std::move(node);
    }
    share_with_gathers(graph, made);
    graph.compact(std::vector<bool>(graph.nodes.size(), true));
    return Counts{{"matrices", static_cast<std::int64_t>(made.size())},
                  {"bytes_before", before},
                  {"bytes_after", after}};
}

}  // namespace

Pass quantize_weights_pass() {
    // Layouts may put other matrices in the place of constants.
    return {.name = "quantize_weights",
            .summary = "stores constant matrices of products in blocks, when asked to",
            .run = &quantize_weights,
            .after = {"fuse_matmul_epilogue", "choose_layouts"}};
}

}  // namespace headrace
