#include "backends/mlx/ops/table.h"

#include <array>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "backends/mlx/ops/families.h"
#include "ggml-impl.h"

namespace headrace::mlx {
namespace {

using Table = std::array<const OpRow*, GGML_OP_COUNT>;

Table make_table() {
    Table table{};
    for (const auto family : {binary_ops, unary_ops, glu_ops, reduction_ops, normalization_ops, softmax_ops,
                              matmul_ops, copy_ops, row_ops, shape_ops, rope_ops, attention_ops,
                              convolution_ops, image_ops, recurrent_ops, hyper_connection_ops})
        for (const OpRow& row : family()) table[row.op] = &row;
    return table;
}

/// Calls visit(name) for each name of a list with commas, until it returns true.
template <class Visit>
bool any_name(std::string_view names, Visit&& visit) {
    while (!names.empty()) {
        const std::size_t comma = std::min(names.find(','), names.size());
        if (visit(names.substr(0, comma))) return true;
        names.remove_prefix(std::min(comma + 1, names.size()));
    }
    return false;
}

bool is_an_op(std::string_view name) {
    for (int op = 0; op < GGML_OP_COUNT; ++op)
        if (name == ggml_op_name(static_cast<ggml_op>(op))) return true;
    return false;
}

void warn_of_names_without_op(const char* listed) {
    any_name(listed, [](std::string_view name) {
        if (!is_an_op(name))
            GGML_LOG_WARN("ggml-mlx: GGML_MLX_DENY names '%.*s', which is no op of ggml, as MUL_MAT is one\n",
                          static_cast<int>(name.size()), name.data());
        return false;
    });
}

/// GGML_MLX_DENY=ROPE,SOFT_MAX leaves these ops to other devices: to look for a fault, and to test splits.
bool is_denied(const ggml_tensor* t) {
    const char* const listed = std::getenv("GGML_MLX_DENY");
    if (!listed) return false;
    static std::once_flag looked_at;
    std::call_once(looked_at, warn_of_names_without_op, listed);
    return any_name(listed, [&](std::string_view name) { return name == ggml_op_name(t->op); });
}

}  // namespace

const OpRow* find_op(const ggml_tensor* t) {
    static const Table table = make_table();
    return table[t->op];
}

bool supports(const ggml_tensor* t) {
    if (is_view_op(t->op)) return true;
    const OpRow* row = find_op(t);
    if (!row || !fits_mlx(t) || is_denied(t)) return false;
    for (const ggml_tensor* source : t->src)
        if (source && !fits_mlx(source)) return false;
    return row->supports(t);
}

}  // namespace headrace::mlx
