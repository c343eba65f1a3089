#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "emit/product_form.h"
#include "ir/tensor_type.h"

struct ggml_tensor;
struct ggml_context;

namespace headrace {

/// ggml's element-wise functions of one operand. Only those that keep WebNN's accuracy are here:
/// ggml's tanh-approximated, table-driven gelu is left out on purpose.
enum class Unary : std::uint8_t {
    abs,
    neg,
    exp,
    log,
    sqrt,
    square,
    sin,
    cos,
    tanh,
    sigmoid,
    relu,
    gelu_erf,
    silu,
    floor,
    ceil,
    hard_swish
};
enum class Binary : std::uint8_t { add, sub, mul, div };

/// Thin facade over ggml's graph-building calls. Shapes are given in logical (row-major) order; this is the
/// only place where they are reversed into ggml's `ne`.
///
/// A value of a dtype that ggml can type and of rank <= 4 is a tensor with its extents; of higher rank, a
/// flat tensor of its elements; of any other dtype (unsigned, bool, 4-bit), a flat i8 tensor of its bytes.
/// Values passed between ops are contiguous; permute() and slice() give views that only contiguous() or
/// another call of the same lowering may read.
///
/// Nothing here checks: ggml aborts on what it cannot do, so every op's `lowerable` must have said yes first.
class Emit {
public:
    using Tensor = ggml_tensor*;
    using Extents = std::span<const std::int64_t>;

    explicit Emit(ggml_context* ctx, const ProductForms& products = {})
        : ctx_(ctx), products_(products) {}
    /// How products are written from now on.
    void use(const ProductForms& products) { products_ = products; }

    /// True when ggml has the dtype as a tensor type of its own.
    static bool has_type(DType t);
    /// True when the value is an ordinary ggml tensor with its own extents.
    static bool is_native(const TensorType& t) { return has_type(t.dtype) && t.rank() <= 4; }
    /// An unallocated tensor for a value (an input, a constant, a state).
    Tensor leaf(const TensorType& type);
    /// A view of `bytes` of a flat i8 tensor, starting at `offset`, with a value's type.
    Tensor typed_view(Tensor blob, const TensorType& type, std::size_t offset);

    Tensor reshape(Tensor x, Extents extents);
    Tensor shaped(Tensor x,
                  const TensorType& type);  ///< a contiguous tensor's elements as a value of that type
    Tensor flatten(Tensor x);
    Tensor permute(Tensor x,
                   std::span<const int> permutation);  ///< numpy.transpose; rank = permutation's size
    Tensor contiguous(Tensor x);
    Tensor copy(Tensor x);  ///< always into memory of its own
    /// x[starts : starts + sizes] of a tensor with `rank = starts.size()` dimensions; a view.
    Tensor slice(Tensor x, Extents starts, Extents sizes);
    Tensor cast(Tensor x, DType to);
    Tensor repeat(Tensor x, Extents extents);  ///< tiles to the extents, rank <= 4
    Tensor concat(Tensor a, Tensor b, int axis, int rank);
    Tensor pad_zero(Tensor x, Extents before, Extents after);  ///< f32, rank <= 4
    /// Bilinear with half-pixel centres over the last two dimensions, f32, rank <= 4.
    Tensor resize_linear(Tensor x, Extents extents);

    Tensor unary(Unary f, Tensor x);
    Tensor binary(Binary f, Tensor a, Tensor b);  ///< b's extents divide a's
    Tensor scale(Tensor x, float factor, float offset);
    Tensor clamp(Tensor x, float low, float high);
    Tensor leaky_relu(Tensor x, float slope);

    /// a[..., m, k] · b[..., n, k]ᵀ -> [..., m, n] in f32; a is f32; b's batch extents divide a's. Both may
    /// be permuted views as long as the last dimension is dense.
    Tensor mat_mul_transposed(Tensor a, Tensor b);
    /// a[..., m, k] · b[..., k, n] likewise, where b is contiguous.
    Tensor mat_mul(Tensor a, Tensor b);
    Tensor soft_max(Tensor x);                 ///< over the last dimension, f32
    Tensor causal_mask(Tensor x);              ///< x[..., i, j] becomes -infinity for j > i, f32
    Tensor rms_norm(Tensor x, float epsilon);  ///< x / sqrt(mean of x² + eps) over the last dimension, f32
    Tensor norm(Tensor x, float epsilon);      ///< (x - mean) / sqrt(var + eps) over the last dimension, f32
    Tensor sum_rows(Tensor x);                 ///< over the last dimension, kept as 1; f32
    Tensor mean_rows(Tensor x);
    Tensor get_rows(Tensor table,
                    Tensor i32_indices);  ///< table[n, width], indices flat -> f32[count, width]
    /// f32 NCHW · OIHW; symmetric padding (h, w). depthwise: the filter is [c, 1, kh, kw].
    Tensor conv_2d(Tensor x, Tensor filter, Extents strides, Extents padding, Extents dilations,
                   bool depthwise);
    /// f32 NCHW; windows of (h, w), the largest or the mean, where padding counts as zeros; -infinity alone
    /// gives the smallest finite number as the largest.
    Tensor pool_2d(Tensor x, bool is_max, Extents window, Extents strides, Extents padding);
    /// dst + src where dst is updated in place; both flat, same size, f32.
    Tensor add_into(Tensor dst, Tensor src);
    /// Copies src into dst in place and returns dst's new version.
    Tensor copy_into(Tensor dst, Tensor src);

    ggml_context* context() const { return ctx_; }

private:
    ProductForm product_form(Tensor a, Tensor b) const;
    Tensor exact_product(ProductForm form, Tensor a, Tensor b);

    ggml_context* ctx_;
    ProductForms products_;
};

/// What ggml's own quantiser of a block format makes of finite numbers; columns in whole blocks.
void quantize_rows(BlockFormat format, const float* from, std::int64_t rows, std::int64_t columns,
                   std::byte* to);

}  // namespace headrace
