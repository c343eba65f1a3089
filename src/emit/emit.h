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
    hard_swish,
    sign,  ///< -1, 0 or 1; of NaN any of them
    step   ///< 1 where x > 0, else 0, also of NaN
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

    explicit Emit(ggml_context* ctx, const ProductForms& products = {}) : ctx_(ctx), products_(products) {}
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
                  const TensorType& type);        ///< a contiguous tensor's elements as a value of that type
    Tensor reshape_like(Tensor x, Tensor model);  ///< with another's extents
    Tensor flatten(Tensor x);
    static std::int64_t elements(Tensor x);
    static std::int64_t extent(Tensor x, int from_last);  ///< of a dimension counted from the last
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
    /// Bilinear over the last two dimensions, f32, rank <= 4; with half-pixel centres, or with the outermost
    /// elements on one another, of which there are two or more then.
    Tensor resize_linear(Tensor x, Extents extents, bool by_corners = false);
    Tensor fill(Tensor like, float value);  ///< f32 or f16
    Tensor positions(std::int64_t count);   ///< 0, 1, 2 ... in f32, which has them up to 2^24
    Tensor triangle(Tensor x, bool upper);  ///< of square matrices in f32, with the diagonal

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
    /// table[..., n, width], indices[..., count] within [0, n) -> f32[..., count, width]
    Tensor get_rows(Tensor table, Tensor i32_indices);
    /// f32 NCHW · OIHW; symmetric padding (h, w). depthwise: the filter is [c, 1, kh, kw].
    Tensor conv_2d(Tensor x, Tensor filter, Extents strides, Extents padding, Extents dilations,
                   bool depthwise);
    /// f32 NCHW; windows of (h, w), the largest or the mean, where padding counts as zeros; -infinity alone
    /// gives the smallest finite number as the largest.
    Tensor pool_2d(Tensor x, bool is_max, Extents window, Extents strides, Extents padding);
    /// f32[planes, h, w] -> [planes, rows, columns, window]: the elements of each window, zeros beside the
    /// image, which has as many on both sides.
    Tensor windows(Tensor planes, Extents window, Extents strides, Extents padding, Extents dilations);
    /// dst whose flat elements from `offset` on become their sums with those of src, in place; f32.
    Tensor add_into(Tensor dst, Tensor src, std::int64_t offset);
    /// dst[..., n, width] whose rows at i32_indices[..., count] become f32 rows[..., count, width], in place.
    Tensor set_rows(Tensor dst, Tensor rows, Tensor i32_indices);
    /// Copies src into dst in place and returns dst's new version.
    Tensor copy_into(Tensor dst, Tensor src);

    /// Truth of a byte an element, which no device computes with, as 1 and 0 in f32, and back, both flat. The
    /// CPU converts, wherever the rest of the lowering runs; what was converted to bytes is taken as it was.
    Tensor truth_of_bytes(Tensor bytes);
    Tensor bytes_of_truth(Tensor truth);
    /// Indices of i64 or u32 in i32, flat, as ops read them (ops/indices.h): within [0, extent). Likewise.
    Tensor indices_within(Tensor indices, DType dtype, std::int64_t extent);
    /// What such conversions read stays in the CPU's memory.
    static bool is_converted_on_cpu(DType dtype);
    /// A conversion of those.
    static bool is_for_cpu(const ggml_tensor* x);

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
