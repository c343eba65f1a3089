#include "backends/mlx/ops/families.h"

namespace headrace::mlx {
namespace {

bool float_in_and_out(const ggml_tensor* t) { return is_float(t->type) && is_float(t->src[0]->type); }
bool takes_f32(const ggml_tensor* t) { return t->src[0]->type == GGML_TYPE_F32; }
bool is_summable(const ggml_tensor* t) {
    const ggml_type type = t->src[0]->type;
    return (is_float(type) && is_float(t->type)) || (type == GGML_TYPE_I32 && t->type == GGML_TYPE_I32);
}
/// ggml's CPU takes the columns of a transposed tensor for rows here; to differ from it would help nobody.
bool has_rows_to_sum(const ggml_tensor* t) {
    return is_summable(t) && t->src[0]->nb[0] == ggml_type_size(t->src[0]->type);
}
bool compares_i32(const ggml_tensor* t) {
    return t->src[0]->type == GGML_TYPE_I32 && t->src[1]->type == GGML_TYPE_I32;
}

/// ggml's rows are MLX's last axis.
constexpr int kColumns = 3;

/// Integers stay integers.
array operand(Builder& b, const ggml_tensor* t) { return is_float(t->type) ? b.f32(t) : b.get(t); }

/// Row by row: a single running sum in f32 loses more than ggml's, which is in f64.
void translate_sum(Builder& b, const ggml_tensor* t) {
    b.define(t, mx::sum(mx::sum(mx::contiguous(operand(b, t->src[0])), kColumns)));
}
void translate_sum_rows(Builder& b, const ggml_tensor* t) {
    b.define(t, mx::sum(operand(b, t->src[0]), kColumns, true));
}
void translate_mean(Builder& b, const ggml_tensor* t) {
    b.define(t, mx::mean(b.f32(t->src[0]), kColumns, true));
}
void translate_cumsum(Builder& b, const ggml_tensor* t) {
    b.define(t, mx::cumsum(b.f32(t->src[0]), kColumns, false, true));
}
void translate_argmax(Builder& b, const ggml_tensor* t) {
    b.define(t, mx::argmax(b.get(t->src[0]), kColumns, false));
}
void translate_count_equal(Builder& b, const ggml_tensor* t) {
    b.define(t, mx::sum(mx::astype(mx::equal(b.get(t->src[0]), b.get(t->src[1])), mx::int64)));
}
void translate_argsort(Builder& b, const ggml_tensor* t) {
    const array x = b.get(t->src[0]);
    const bool descending = int_param(t, 0) == GGML_SORT_ORDER_DESC;
    b.define(t, mx::argsort(descending ? mx::negative(x) : x, kColumns));
}
/// The largest ones' places, in no particular order.
void translate_top_k(Builder& b, const ggml_tensor* t) {
    const int count = static_cast<int>(t->ne[0]);
    const array order = mx::argsort(mx::negative(b.get(t->src[0])), kColumns);
    b.define(t, mx::slice(order, {0, 0, 0, 0}, {order.shape(0), order.shape(1), order.shape(2), count}));
}

constexpr OpRow kRows[] = {
    {GGML_OP_SUM, has_rows_to_sum, translate_sum},
    {GGML_OP_SUM_ROWS, is_summable, translate_sum_rows},
    {GGML_OP_MEAN, float_in_and_out, translate_mean},
    {GGML_OP_CUMSUM, float_in_and_out, translate_cumsum},
    {GGML_OP_ARGMAX, takes_f32, translate_argmax},
    {GGML_OP_COUNT_EQUAL, compares_i32, translate_count_equal},
    {GGML_OP_ARGSORT, takes_f32, translate_argsort},
    {GGML_OP_TOP_K, takes_f32, translate_top_k},
};

}  // namespace

std::span<const OpRow> reduction_ops() { return kRows; }

}  // namespace headrace::mlx
