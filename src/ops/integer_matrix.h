/// Constant matrices of integers as products of bytes read them.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/int8/byte_quads.h"
#include "kernels/int8/int8_conv2d.h"
#include "kernels/int8/int8_matmul.h"
#include "ops/infer.h"
#include "ops/product.h"
#include "ops/quantized.h"

namespace headrace::ops {

inline constexpr OperandRule kByteRows{.name = "a", .dtypes = kBytes, .min_rank = 2};
inline constexpr OperandRule kIntegerMatrix{
    .name = "b", .dtypes = {DType::i8, DType::i16}, .min_rank = 2, .max_rank = 2};

/// The shape of a [..., k] times the matrix b [k, n], or [n, k] if transposed.
inline Result<Shape> product_shape(const Operands& in, bool transposed) {
    const Shape &a = in[0].shape, &b = in[1].shape;
    if (!same_extent(in, a.back(), b[transposed]))
        return invalid("Incompatible shapes for matmul: {} and {}{}, whose inner extents {} and {} differ",
                       str(a), str(b), transposed ? " transposed" : "", a.back().str(), b[transposed].str());
    Shape out = a;
    out.back() = b[!transposed];
    return out;
}

/// b as the kernel packs it: its columns one after the other.
struct IntegerMatrix {
    std::size_t k, n;
    bool transposed;

    IntegerMatrix(Sizes b, bool is_transposed)
        : k(static_cast<std::size_t>(b[is_transposed])),
          n(static_cast<std::size_t>(b[!is_transposed])),
          transposed(is_transposed) {}

    static bool applies(const Operands& in, std::span<const bool> is_constant, bool transposed) {
        const auto sizes = in[1].sizes();
        const IntegerMatrix b(sizes, transposed);
        return is_constant[1] && b.k > 0 && b.n > 0 && kernels::have_room(b.k);
    }
    static std::size_t packed_bytes(const Operands& in, bool transposed) {
        const auto sizes = in[1].sizes();
        const IntegerMatrix b(sizes, transposed);
        return kernels::packed_pairs_bytes(b.n, 1, b.k, size_of(in[1].dtype));
    }
    static void pack(const ConstView& b, bool transposed, std::byte* packed) {
        visit_weights(b, [&]<class T>() { IntegerMatrix(b.shape, transposed).pack_as<T>(b, packed); });
    }
    /// The same for products of bytes by quads.
    static bool quads_apply(const Operands& in, std::span<const bool> is_constant, bool transposed) {
        return in[1].dtype == DType::i8 && applies(in, is_constant, transposed) && kernels::has_byte_quads();
    }
    static std::size_t packed_quads_bytes(const Operands& in, bool transposed) {
        const auto sizes = in[1].sizes();
        const IntegerMatrix b(sizes, transposed);
        return kernels::packed_quads_bytes(b.n, 1, b.k);
    }
    static void pack_quads(const ConstView& b, bool transposed, std::byte* packed) {
        const IntegerMatrix matrix(b.shape, transposed);
        if (transposed) return kernels::pack_quads(b.as<std::int8_t>(), matrix.n, 1, matrix.k, packed);
        kernels::pack_quads(matrix.columns<std::int8_t>(b).data(), matrix.n, 1, matrix.k, packed);
    }
    static std::size_t size_of(DType type) { return type == DType::i8 ? 1 : 2; }

    template <class T>
    void pack_as(const ConstView& b, std::byte* packed) const {
        if (transposed) return kernels::pack_pairs<T>(b.as<T>(), n, 1, k, packed);
        kernels::pack_pairs<T>(columns<T>(b).data(), n, 1, k, packed);
    }
    /// The columns of [k, n], one after another.
    template <class T>
    std::vector<T> columns(const ConstView& b) const {
        std::vector<T> list(n * k);
        for (std::size_t i = 0; i < k; ++i)
            for (std::size_t j = 0; j < n; ++j) list[j * k + i] = b.as<T>()[i * n + j];
        return list;
    }
};

/// The operands of a product of bytes, but for what becomes of the sums.
inline kernels::Int8MatMulArgs byte_product_args(const TensorArgs& args, bool transposed,
                                                 std::int32_t a_zero) {
    const IntegerMatrix b(args.in[1].shape, transposed);
    return {.m = static_cast<std::size_t>(args.in[0].elements()) / b.k,
            .n = b.n,
            .k = b.k,
            .a = bytes_of(args.in[0]),
            .a_zero = a_zero,
            .is_wide = args.in[1].dtype == DType::i16,
            .result = {}};
}

/// Hands store(place, column, sum) each exact sum of this thread's share.
template <class Store>
void reference_sums(const TensorArgs& args, bool transposed, std::int32_t a_zero, Store&& store) {
    const std::vector<double> a = cleared(args.in[0], a_zero), b = cleared(args.in[1], 0);
    const Product p = dense_product(args.in[0].shape, args.in[1].shape, transposed);
    reference_product(a.data(), b.data(), p, args.share,
                      [&](std::int64_t row, std::int64_t column, std::int64_t count, const double* sums) {
                          for (std::int64_t i = 0; i < count; ++i)
                              store(row * p.n + column + i, column + i, sums[i]);
                      });
}

/// As 32 bits hold it, which wrap.
inline std::int32_t wrapped(double sum) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(sum)));
}

}  // namespace headrace::ops
