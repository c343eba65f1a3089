#include "emit/emit.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ggml.h"

namespace headrace {
namespace {

using Ne = std::array<std::int64_t, 4>;

Ne reversed(Emit::Extents extents) {
    Ne ne{1, 1, 1, 1};
    for (std::size_t i = 0; i < extents.size(); ++i) ne[i] = extents[extents.size() - 1 - i];
    return ne;
}

ggml_type type_of(DType t) {
    switch (t) {
        case DType::f32: return GGML_TYPE_F32;
        case DType::f16: return GGML_TYPE_F16;
        case DType::bf16: return GGML_TYPE_BF16;
        case DType::f64: return GGML_TYPE_F64;
        case DType::i16: return GGML_TYPE_I16;
        case DType::i32: return GGML_TYPE_I32;
        case DType::i64: return GGML_TYPE_I64;
        default: return GGML_TYPE_I8;
    }
}

struct Layout {
    ggml_type type;
    Ne ne;
};

ggml_type type_of(BlockFormat format) {
    switch (format) {
        case BlockFormat::q8_0: return GGML_TYPE_Q8_0;
        case BlockFormat::q4_0: return GGML_TYPE_Q4_0;
        case BlockFormat::q4_1: return GGML_TYPE_Q4_1;
        case BlockFormat::q5_0: return GGML_TYPE_Q5_0;
        case BlockFormat::q5_1: return GGML_TYPE_Q5_1;
        case BlockFormat::q4_k: return GGML_TYPE_Q4_K;
        case BlockFormat::q5_k: return GGML_TYPE_Q5_K;
        default: return GGML_TYPE_Q6_K;
    }
}

/// A constant in blocks is as wide as its rows, whatever its rank.
Layout layout_of_blocks(const TensorType& t) {
    const std::int64_t width = t.shape.back().size();
    // To ggml, what it has no type for is bytes, which only our kernels read.
    if (!is_of_ggml(t.format)) return {GGML_TYPE_I8, {static_cast<std::int64_t>(t.bytes()), 1, 1, 1}};
    return {type_of(t.format), {width, width ? t.elements() / width : 0, 1, 1}};
}

Layout layout_of(const TensorType& t) {
    if (t.format != BlockFormat::plain) return layout_of_blocks(t);
    if (!Emit::has_type(t.dtype)) return {GGML_TYPE_I8, {static_cast<std::int64_t>(t.bytes()), 1, 1, 1}};
    if (t.rank() > 4) return {type_of(t.dtype), {t.elements(), 1, 1, 1}};
    const auto sizes = t.sizes();
    return {type_of(t.dtype), reversed(sizes)};
}

}  // namespace

bool Emit::has_type(DType t) { return t == DType::i8 || type_of(t) != GGML_TYPE_I8; }

Emit::Tensor Emit::leaf(const TensorType& type) {
    const Layout l = layout_of(type);
    return ggml_new_tensor(ctx_, l.type, 4, l.ne.data());
}

Emit::Tensor Emit::typed_view(Tensor blob, const TensorType& type, std::size_t offset) {
    const Layout l = layout_of(type);
    Tensor view = ggml_view_1d(ctx_, blob, static_cast<std::int64_t>(type.bytes()), offset);
    view->type = l.type;
    std::size_t stride = ggml_type_size(l.type);
    for (int i = 0; i < 4; ++i) {
        view->ne[i] = l.ne[i];
        view->nb[i] = stride;
        stride *= static_cast<std::size_t>(l.ne[i]);
    }
    return view;
}

Emit::Tensor Emit::reshape(Tensor x, Extents extents) {
    const Ne ne = reversed(extents);
    return ggml_reshape_4d(ctx_, x, ne[0], ne[1], ne[2], ne[3]);
}

Emit::Tensor Emit::shaped(Tensor x, const TensorType& type) {
    const Ne ne = layout_of(type).ne;
    return ggml_reshape_4d(ctx_, x, ne[0], ne[1], ne[2], ne[3]);
}

Emit::Tensor Emit::reshape_like(Tensor x, Tensor model) { return ggml_reshape(ctx_, x, model); }
std::int64_t Emit::elements(Tensor x) { return ggml_nelements(x); }
std::int64_t Emit::extent(Tensor x, int from_last) { return x->ne[from_last]; }
Emit::Tensor Emit::flatten(Tensor x) { return ggml_reshape_1d(ctx_, x, ggml_nelements(x)); }

Emit::Tensor Emit::permute(Tensor x, std::span<const int> permutation) {
    // Output axis i takes input axis permutation[i]; ggml_permute says where each input axis goes, innermost
    // first.
    const int rank = static_cast<int>(permutation.size());
    int target[4] = {0, 1, 2, 3};
    for (int i = 0; i < rank; ++i) target[rank - 1 - permutation[i]] = rank - 1 - i;
    return ggml_permute(ctx_, x, target[0], target[1], target[2], target[3]);
}

Emit::Tensor Emit::contiguous(Tensor x) {
    if (!ggml_is_contiguous(x)) return ggml_cont(ctx_, x);
    // To ggml a permuted tensor with extents of 1 may be contiguous and yet transposed, which its ops assert
    // against.
    std::size_t stride = ggml_type_size(x->type);
    for (int i = 0; i < 4; stride *= static_cast<std::size_t>(x->ne[i++]))
        if (x->nb[i] != stride) return ggml_reshape_4d(ctx_, x, x->ne[0], x->ne[1], x->ne[2], x->ne[3]);
    return x;
}

Emit::Tensor Emit::copy(Tensor x) { return ggml_cont(ctx_, x); }

Emit::Tensor Emit::slice(Tensor x, Extents starts, Extents sizes) {
    const Ne ne = reversed(sizes);
    std::size_t offset = 0;
    for (std::size_t i = 0; i < starts.size(); ++i) offset += starts[i] * x->nb[starts.size() - 1 - i];
    return ggml_view_4d(ctx_, x, ne[0], ne[1], ne[2], ne[3], x->nb[1], x->nb[2], x->nb[3], offset);
}

Emit::Tensor Emit::cast(Tensor x, DType to) { return ggml_cast(ctx_, x, type_of(to)); }

Emit::Tensor Emit::repeat(Tensor x, Extents extents) {
    const Ne ne = reversed(extents);
    return ggml_repeat_4d(ctx_, x, ne[0], ne[1], ne[2], ne[3]);
}

Emit::Tensor Emit::concat(Tensor a, Tensor b, int axis, int rank) {
    return ggml_concat(ctx_, a, b, rank - 1 - axis);
}

Emit::Tensor Emit::pad_zero(Tensor x, Extents before, Extents after) {
    Ne l{0, 0, 0, 0}, r{0, 0, 0, 0};
    for (std::size_t i = 0; i < before.size(); ++i) {
        l[i] = before[before.size() - 1 - i];
        r[i] = after[after.size() - 1 - i];
    }
    return ggml_pad_ext(ctx_, x, static_cast<int>(l[0]), static_cast<int>(r[0]), static_cast<int>(l[1]),
                        static_cast<int>(r[1]), static_cast<int>(l[2]), static_cast<int>(r[2]),
                        static_cast<int>(l[3]), static_cast<int>(r[3]));
}

Emit::Tensor Emit::resize_linear(Tensor x, Extents extents, bool by_corners) {
    const Ne ne = reversed(extents);
    const unsigned mode =
        GGML_SCALE_MODE_BILINEAR | (by_corners ? unsigned{GGML_SCALE_FLAG_ALIGN_CORNERS} : 0u);
    return ggml_interpolate(ctx_, x, ne[0], ne[1], ne[2], ne[3], mode);
}

Emit::Tensor Emit::fill(Tensor like, float value) { return ggml_fill(ctx_, like, value); }
Emit::Tensor Emit::positions(std::int64_t count) {
    return ggml_arange(ctx_, 0, static_cast<float>(count), 1);
}
Emit::Tensor Emit::triangle(Tensor x, bool upper) {
    return ggml_tri(ctx_, x, upper ? GGML_TRI_TYPE_UPPER_DIAG : GGML_TRI_TYPE_LOWER_DIAG);
}

Emit::Tensor Emit::unary(Unary f, Tensor x) {
    switch (f) {
        case Unary::abs: return ggml_abs(ctx_, x);
        case Unary::neg: return ggml_neg(ctx_, x);
        case Unary::exp: return ggml_exp(ctx_, x);
        case Unary::log: return ggml_log(ctx_, x);
        case Unary::sqrt: return ggml_sqrt(ctx_, x);
        case Unary::square: return ggml_sqr(ctx_, x);
        case Unary::sin: return ggml_sin(ctx_, x);
        case Unary::cos: return ggml_cos(ctx_, x);
        case Unary::tanh: return ggml_tanh(ctx_, x);
        case Unary::sigmoid: return ggml_sigmoid(ctx_, x);
        case Unary::relu: return ggml_relu(ctx_, x);
        case Unary::gelu_erf: return ggml_gelu_erf(ctx_, x);
        case Unary::silu: return ggml_silu(ctx_, x);
        case Unary::floor: return ggml_floor(ctx_, x);
        case Unary::ceil: return ggml_ceil(ctx_, x);
        case Unary::hard_swish: return ggml_hardswish(ctx_, x);
        case Unary::sign: return ggml_sgn(ctx_, x);
        case Unary::step: return ggml_step(ctx_, x);
    }
    return nullptr;
}

Emit::Tensor Emit::binary(Binary f, Tensor a, Tensor b) {
    switch (f) {
        case Binary::add: return ggml_add(ctx_, a, b);
        case Binary::sub: return ggml_sub(ctx_, a, b);
        case Binary::mul: return ggml_mul(ctx_, a, b);
        case Binary::div: return ggml_div(ctx_, a, b);
    }
    return nullptr;
}

Emit::Tensor Emit::scale(Tensor x, float factor, float offset) {
    return ggml_scale_bias(ctx_, x, factor, offset);
}

// ggml_clamp writes into its operand; a copy first keeps the value for other readers.
Emit::Tensor Emit::clamp(Tensor x, float low, float high) {
    return ggml_clamp(ctx_, ggml_dup(ctx_, x), low, high);
}

Emit::Tensor Emit::leaky_relu(Tensor x, float slope) { return ggml_leaky_relu(ctx_, x, slope, false); }

/// Only f32 weights may be rounded for a device; blocks and half floats are multiplied as they are.
ProductForm Emit::product_form(Tensor a, Tensor b) const {
    return b->type == GGML_TYPE_F32 ? products_.of(a->ne[1], a->ne[2] * a->ne[3] > 1) : ProductForm::mat_mul;
}

Emit::Tensor Emit::mat_mul_transposed(Tensor a, Tensor b) {
    const ProductForm form = product_form(a, b);
    if (form != ProductForm::mat_mul) return exact_product(form, a, contiguous(ggml_transpose(ctx_, b)));
    Tensor product = ggml_mul_mat(ctx_, b, a);
    ggml_prec_set_acc(product, GGML_PREC_F32);
    return product;
}

Emit::Tensor Emit::mat_mul(Tensor a, Tensor b) {
    const ProductForm form = product_form(a, b);
    if (form != ProductForm::mat_mul) return exact_product(form, a, b);
    return mat_mul_transposed(a, contiguous(ggml_transpose(ctx_, b)));
}

/// b is contiguous and has the inner extent first.
Emit::Tensor Emit::exact_product(ProductForm form, Tensor a, Tensor b) {
    a = contiguous(a);
    const std::int64_t m = a->ne[1], k = a->ne[0], n = b->ne[0];
    if (form == ProductForm::convolution && ggml_nelements(a) == m * k) {
        // Each row of a is a filter, and b an image of k channels and n pixels.
        Tensor filter = ggml_reshape_4d(ctx_, a, 1, 1, k, m), image = ggml_reshape_4d(ctx_, b, n, 1, k, 1);
        return ggml_reshape_2d(ctx_, ggml_conv_2d_direct(ctx_, filter, image, 1, 1, 0, 0, 1, 1), n, m);
    }
    return ggml_out_prod(ctx_, b, contiguous(ggml_transpose(ctx_, a)));
}

Emit::Tensor Emit::soft_max(Tensor x) { return ggml_soft_max(ctx_, x); }
Emit::Tensor Emit::causal_mask(Tensor x) { return ggml_diag_mask_inf(ctx_, x, 0); }
Emit::Tensor Emit::rms_norm(Tensor x, float epsilon) { return ggml_rms_norm(ctx_, x, epsilon); }
Emit::Tensor Emit::norm(Tensor x, float epsilon) {
    // ggml's own takes the variance for the mean of squares less the square of the mean on some devices: it
    // is noise there, and below 0 at times, where the mean is large.
    return ggml_rms_norm(ctx_, ggml_sub(ctx_, x, ggml_mean(ctx_, x)), epsilon);
}
Emit::Tensor Emit::sum_rows(Tensor x) { return ggml_sum_rows(ctx_, x); }
Emit::Tensor Emit::mean_rows(Tensor x) { return ggml_mean(ctx_, x); }
Emit::Tensor Emit::get_rows(Tensor table, Tensor indices) { return ggml_get_rows(ctx_, table, indices); }

Emit::Tensor Emit::conv_2d(Tensor x, Tensor filter, Extents strides, Extents padding, Extents dilations,
                           bool depthwise) {
    const auto at = [](Extents e, int i) { return static_cast<int>(e[i]); };
    const auto f = depthwise ? ggml_conv_2d_dw_direct : ggml_conv_2d_direct;
    return f(ctx_, filter, x, at(strides, 1), at(strides, 0), at(padding, 1), at(padding, 0),
             at(dilations, 1), at(dilations, 0));
}

Emit::Tensor Emit::pool_2d(Tensor x, bool is_max, Extents window, Extents strides, Extents padding) {
    const auto at = [](Extents e, int i) { return static_cast<int>(e[i]); };
    return ggml_pool_2d(ctx_, x, is_max ? GGML_OP_POOL_MAX : GGML_OP_POOL_AVG, at(window, 1), at(window, 0),
                        at(strides, 1), at(strides, 0), static_cast<float>(padding[1]),
                        static_cast<float>(padding[0]));
}

Emit::Tensor Emit::windows(Tensor planes, Extents window, Extents strides, Extents padding,
                           Extents dilations) {
    const auto at = [](Extents e, int i) { return static_cast<int>(e[i]); };
    // Only the extents of the first operand are read.
    Tensor shape = ggml_reshape_2d(ctx_, positions(window[0] * window[1]), window[1], window[0]);
    Tensor images = ggml_reshape_4d(ctx_, planes, planes->ne[0], planes->ne[1], 1, planes->ne[2]);
    return ggml_im2col(ctx_, shape, images, at(strides, 1), at(strides, 0), at(padding, 1), at(padding, 0),
                       at(dilations, 1), at(dilations, 0), true, GGML_TYPE_F32);
}

Emit::Tensor Emit::add_into(Tensor dst, Tensor src, std::int64_t offset) {
    // Strides beyond which there is nothing: src is one row.
    const std::size_t all = ggml_nbytes(dst);
    return ggml_acc_inplace(ctx_, dst, flatten(src), all, all, all,
                            static_cast<std::size_t>(offset) * ggml_type_size(dst->type));
}
Emit::Tensor Emit::set_rows(Tensor dst, Tensor rows, Tensor i32_indices) {
    return ggml_set_rows(ctx_, dst, rows, i32_indices);
}
Emit::Tensor Emit::copy_into(Tensor dst, Tensor src) { return ggml_cpy(ctx_, src, dst); }

namespace {

/// ggml's one-dimensional work: elements [begin, end) of thread `ith`.
template <class F>
void for_share(const ggml_tensor* x, int ith, int nth, F&& f) {
    const std::int64_t n = ggml_nelements(x), each = (n + nth - 1) / nth;
    for (std::int64_t i = ith * each; i < std::min(n, (ith + 1) * each); ++i) f(i);
}

void to_truth(ggml_tensor* dst, int ith, int nth, void*) {
    const auto* from = static_cast<const std::uint8_t*>(dst->src[0]->data);
    auto* to = static_cast<float*>(dst->data);
    for_share(dst, ith, nth, [&](std::int64_t i) { to[i] = from[i] ? 1.0f : 0.0f; });
}

void to_bytes(ggml_tensor* dst, int ith, int nth, void*) {
    const auto* from = static_cast<const float*>(dst->src[0]->data);
    auto* to = static_cast<std::uint8_t*>(dst->data);
    for_share(dst, ith, nth, [&](std::int64_t i) { to[i] = from[i] != 0; });
}

/// self: the extent.
template <class T>
void to_indices(ggml_tensor* dst, int ith, int nth, void* self) {
    const auto extent = reinterpret_cast<std::intptr_t>(self);
    const auto* from = static_cast<const std::byte*>(dst->src[0]->data);
    auto* to = static_cast<std::int32_t*>(dst->data);
    for_share(dst, ith, nth, [&](std::int64_t i) {
        T raw;  // a constant may lie anywhere in a file
        std::memcpy(&raw, from + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
        std::int64_t index = raw;
        if (index < 0) index += extent;
        to[i] = static_cast<std::int32_t>(std::clamp<std::int64_t>(index, 0, extent - 1));
    });
}

/// ggml keeps the function first among the parameters.
ggml_custom_op_t function_of(const ggml_tensor* custom) {
    ggml_custom_op_t function = nullptr;
    std::memcpy(&function, custom->op_params, sizeof(function));
    return function;
}

ggml_tensor* converted(ggml_context* ctx, ggml_tensor* x, ggml_type to, std::int64_t elements,
                       ggml_custom_op_t function, std::int64_t parameter = 0) {
    return ggml_custom_4d(ctx, to, elements, 1, 1, 1, &x, 1, function, GGML_N_TASKS_MAX,
                          reinterpret_cast<void*>(static_cast<std::intptr_t>(parameter)));
}

}  // namespace

Emit::Tensor Emit::truth_of_bytes(Tensor bytes) {
    if (bytes->op == GGML_OP_CUSTOM && function_of(bytes) == &to_bytes) return flatten(bytes->src[0]);
    return converted(ctx_, bytes, GGML_TYPE_F32, elements(bytes), &to_truth);
}
Emit::Tensor Emit::bytes_of_truth(Tensor truth) {
    return converted(ctx_, truth, GGML_TYPE_I8, elements(truth), &to_bytes);
}
Emit::Tensor Emit::indices_within(Tensor indices, DType dtype, std::int64_t extent) {
    if (dtype == DType::i64)
        return converted(ctx_, indices, GGML_TYPE_I32, elements(indices), &to_indices<std::int64_t>, extent);
    const std::int64_t count = elements(indices) / static_cast<std::int64_t>(sizeof(std::uint32_t));
    return converted(ctx_, indices, GGML_TYPE_I32, count, &to_indices<std::uint32_t>, extent);
}
bool Emit::is_converted_on_cpu(DType dtype) {
    return DTypeSet{DType::u8, DType::boolean, DType::i64, DType::u32}.has(dtype);
}
bool Emit::is_for_cpu(const ggml_tensor* x) {
    if (x->op != GGML_OP_CUSTOM) return false;
    const ggml_custom_op_t function = function_of(x);
    return function == &to_truth || function == &to_bytes || function == &to_indices<std::int64_t> ||
           function == &to_indices<std::uint32_t>;
}

void quantize_rows(BlockFormat format, const float* from, std::int64_t rows, std::int64_t columns,
                   std::byte* to) {
    if (!is_of_ggml(format)) return quantize(format, from, rows * columns, to);
    ggml_quantize_chunk(type_of(format), from, to, 0, rows, columns, nullptr);
}

}  // namespace headrace
