/// Linear quantisation: real = (whole - zero_point) * scale.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/int8/quantize_f32.h"
#include "ops/arithmetic.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/quantize.h"
#include "ops/quantized.h"
#include "ops/strided.h"

namespace headrace::ops {
namespace {

constexpr DTypeSet kUnquantized{DType::f32, DType::f16, DType::bf16};
constexpr DTypeSet kQuantized{DType::i4, DType::u4, DType::i8, DType::u8, DType::i16, DType::i32};

/// Every scale serves a block of input elements: aligned from the last dimension, an extent of the scale
/// divides the input's, and the block is their quotient. A missing leading dimension is one block.
Status check_blocks(const Operands& in, const Shape& input, const Shape& scale) {
    if (scale.size() > input.size())
        return invalid("Incompatible shapes: scale {} has more dimensions than input {}", str(scale),
                       str(input));
    const std::size_t shift = input.size() - scale.size();
    for (std::size_t i = 0; i < scale.size(); ++i) {
        const Dim &whole = input[i + shift], &blocks = scale[i];
        if (blocks.is(1)) continue;
        if (!divides(in, blocks, whole))
            return invalid("Incompatible shapes: extent {} of scale {} does not divide extent {} of input {}",
                           blocks.str(), str(scale), whole.str(), str(input));
    }
    return success();
}

Status check_zero_point(const Operands& in, const TensorType& zero_point, const TensorType& scale) {
    if (same_shape(in, zero_point.shape, scale.shape)) return success();
    return invalid("Shape mismatch: zero_point {} must have the shape of scale {}", str(zero_point.shape),
                   str(scale.shape));
}

/// Maps an input position to its scale's: in each dimension, position / block * stride.
class Blocks {
public:
    Blocks(Sizes input, Sizes scale) : sizes_(input.begin(), input.end()) {
        const auto dense = dense_strides(scale);
        const std::size_t shift = input.size() - scale.size();
        for (std::size_t d = 0; d < input.size(); ++d) {
            const bool missing = d < shift;
            blocks_.push_back(missing ? input[d] : input[d] / std::max<std::int64_t>(scale[d - shift], 1));
            strides_.push_back(missing ? 0 : dense[d - shift]);
        }
    }

    /// Calls f(begin, end, s) for the runs of positions that share the scale at position s.
    template <class F>
    void for_each_run(Share::Range range, F&& f) const {
        const std::int64_t inner = sizes_.empty() ? 1 : sizes_.back();
        const std::int64_t block = sizes_.empty() ? 1 : blocks_.back(),
                           stride = sizes_.empty() ? 0 : strides_.back();
        for (std::int64_t i = range.begin; i < range.end;) {
            const std::int64_t row = row_scale(i / inner), column = i % inner;
            const std::int64_t end = std::min(range.end, i - column + (column / block + 1) * block);
            const std::int64_t s = row + column / block * stride;
            f(i, end, s);
            i = end;
        }
    }

private:
    std::int64_t row_scale(std::int64_t row) const {
        std::int64_t position = 0;
        for (int d = static_cast<int>(sizes_.size()) - 2; d >= 0; --d) {
            position += row % sizes_[d] / blocks_[d] * strides_[d];
            row /= sizes_[d];
        }
        return position;
    }

    std::vector<std::int64_t> sizes_, blocks_, strides_;
};

/// Calls f(load) where load(i) is the i-th whole number; as int where that holds differences, too.
template <class F>
void visit_whole(const ConstView& x, F&& f) {
    switch (x.dtype) {
        case DType::i8: return f([p = x.as<std::int8_t>()](std::int64_t i) -> int { return p[i]; });
        case DType::u8: return f([p = x.as<std::uint8_t>()](std::int64_t i) -> int { return p[i]; });
        case DType::i16: return f([p = x.as<std::int16_t>()](std::int64_t i) -> int { return p[i]; });
        case DType::i32:
            return f([p = x.as<std::int32_t>()](std::int64_t i) -> std::int64_t { return p[i]; });
        default: return f([x](std::int64_t i) -> int { return load_nibble(x, i); });
    }
}

template <class F>
void visit_unquantized(DType t, F&& f) {
    switch (t) {
        case DType::f16: return f.template operator()<Half>();
        case DType::bf16: return f.template operator()<BFloat16>();
        default: return f.template operator()<float>();
    }
}

/// 4-bit elements of one byte are stored by one thread, the low nibble first.
void store_whole(const MutView& y, std::int64_t i, std::int64_t value) {
    switch (y.dtype) {
        case DType::i8:
        case DType::u8: y.as<std::int8_t>()[i] = static_cast<std::int8_t>(value); return;
        case DType::i16: y.as<std::int16_t>()[i] = static_cast<std::int16_t>(value); return;
        case DType::i32: y.as<std::int32_t>()[i] = static_cast<std::int32_t>(value); return;
        default: {
            const auto nibble = static_cast<std::byte>(value & 15);
            y.data[i / 2] = i % 2 ? (y.data[i / 2] & std::byte{15}) | nibble << 4 : nibble;
        }
    }
}

Sample quantized_sample(TensorType input, TensorType scale, TensorType zero_point, bool has_zero_point) {
    Sample sample{{{.type = std::move(input), .low = 0, .high = 7},
                   {.type = std::move(scale), .low = 0.5, .high = 2, .constant = true},
                   {.type = std::move(zero_point), .low = 0, .high = 5, .constant = true}},
                  {}};
    sample.operands[2].absent = !has_zero_point;
    return sample;
}

/// Our kernels read bytes with one scale.
bool is_one_scale(const TensorType& real, const TensorType& bytes, const TensorType& scale) {
    return real.dtype == DType::f32 && kBytes.has(bytes.dtype) && scale.dtype == DType::f32 &&
           scale.elements() == 1;
}

std::int32_t zero_of(const TensorArgs& args) { return args.has(2) ? int8_at(args.in[2], 0) : 0; }

struct QuantizeLinear {
    static constexpr std::string_view
        name = "quantize_linear",
        summary = "input / scale, rounded to even, + zero_point, saturated (NaN: the lowest)";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kUnquantized},
        OperandRule{.name = "scale", .dtypes = kUnquantized, .same_dtype_as = 0},
        OperandRule{.name = "zero_point", .dtypes = kQuantized}};
    static constexpr LayoutRule layout = LayoutRule::any;

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        HR_TRY(check_blocks(in, in[0].shape, in[1].shape));
        HR_TRY(check_zero_point(in, in[2], in[1]));
        return Types{{in[2].dtype, in[0].shape}};
    }

    static void reference(const TensorArgs& args, const NoAttrs&) {
        const MutView& y = args.out[0];
        const IntegerRange range = integer_range(y.dtype);
        const auto part = args.share.of(y.elements(), 64);
        const Blocks blocks(args.in[0].shape, args.in[1].shape);
        visit_unquantized(args.in[0].dtype, [&]<class T>() {
            const T *x = args.in[0].as<T>(), *scale = args.in[1].as<T>();
            visit_whole(args.in[2], [&](auto zero_point) {
                blocks.for_each_run(part, [&](std::int64_t begin, std::int64_t end, std::int64_t s) {
                    const auto divisor = static_cast<float>(scale[s]);
                    for (std::int64_t i = begin; i < end; ++i)
                        store_whole(y, i, quantize(static_cast<float>(x[i]) / divisor, zero_point(s), range));
                });
            });
        });
    }

    static bool one_scale_applies(const Operands& in, std::span<const bool>, const void*) {
        return is_one_scale(in[0], in[2], in[1]);
    }
    static void run_one_scale(const TensorArgs& args, const void*) {
        headrace::kernels::quantize_f32(args.in[0].as<float>(), args.in[1].as<float>()[0], zero_of(args),
                                        args.out[0].data, args.out[0].dtype == DType::i8,
                                        static_cast<std::size_t>(args.in[0].elements()), args.share.ith,
                                        args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{.name = "quantize_f32", .applies = &one_scale_applies, .run = &run_one_scale}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return elementwise_cost(in, out, 4);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType real, DType whole, Shape input, Shape scale) {
            return quantized_sample({real, std::move(input)}, {real, scale}, {whole, scale}, true);
        };
        return {sample(DType::f32, DType::u8, {2, 3}, {2, 3}),
                sample(DType::f32, DType::i8, {}, {}),
                sample(DType::f32, DType::u8, {3, 5, 11}, {}),
                sample(DType::f32, DType::i4, {3, 5}, {3, 1}),
                sample(DType::f32, DType::u4, {2, 1, 4, 1, 3}, {2, 1, 2, 1, 1}),
                sample(DType::f16, DType::i32, {4, 6}, {2, 3}),
                sample(DType::f16, DType::u8, {4, 6}, {1, 6})};
    }
};

struct DequantizeLinear {
    static constexpr std::string_view name = "dequantize_linear",
                                      summary = "(input - zero_point) * scale; block-wise scale";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kQuantized},
        OperandRule{.name = "scale", .dtypes = kUnquantized},
        OperandRule{.name = "zero_point", .dtypes = kQuantized, .same_dtype_as = 0, .optional = true}};
    static constexpr LayoutRule layout = LayoutRule::any;

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        HR_TRY(check_blocks(in, in[0].shape, in[1].shape));
        if (in.has(2)) HR_TRY(check_zero_point(in, in[2], in[1]));
        return Types{{in[1].dtype, in[0].shape}};
    }

    static void reference(const TensorArgs& args, const NoAttrs&) {
        const auto part = args.share.of(args.out[0].elements(), 64);
        const Blocks blocks(args.in[0].shape, args.in[1].shape);
        visit_unquantized(args.out[0].dtype, [&]<class T>() {
            const T* scale = args.in[1].as<T>();
            T* y = args.out[0].as<T>();
            visit_whole(args.in[0], [&](auto input) {
                const auto run = [&](auto zero_point) {
                    blocks.for_each_run(part, [&](std::int64_t begin, std::int64_t end, std::int64_t s) {
                        const auto zero = zero_point(s);
                        const auto factor = static_cast<float>(scale[s]);
                        for (std::int64_t i = begin; i < end; ++i)
                            y[i] = static_cast<T>(static_cast<float>(input(i) - zero) * factor);
                    });
                };
                if (args.has(2))
                    visit_whole(args.in[2], run);
                else
                    run([](std::int64_t) { return 0; });
            });
        });
    }

    static bool one_scale_applies(const Operands& in, std::span<const bool>, const void*) {
        return is_one_scale({in[1].dtype, {}}, in[0], in[1]);
    }
    static void run_one_scale(const TensorArgs& args, const void*) {
        headrace::kernels::dequantize_f32(
            bytes_of(args.in[0]), args.in[1].as<float>()[0], zero_of(args), args.out[0].as<float>(),
            static_cast<std::size_t>(args.in[0].elements()), args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{.name = "dequantize_f32", .applies = &one_scale_applies, .run = &run_one_scale}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return elementwise_cost(in, out, 2);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType whole, DType real, Shape input, Shape scale,
                               bool has_zero_point = true) {
            return quantized_sample({whole, std::move(input)}, {real, scale}, {whole, scale}, has_zero_point);
        };
        return {sample(DType::u8, DType::f32, {2, 3}, {2, 3}),
                sample(DType::i8, DType::f32, {}, {}),
                sample(DType::u8, DType::f32, {3, 5, 11}, {}),
                sample(DType::i4, DType::f32, {3, 5}, {3, 1}),
                sample(DType::u4, DType::f32, {2, 1, 4, 1, 3}, {2, 1, 1}),
                sample(DType::i32, DType::f16, {4, 6}, {2, 3}),
                sample(DType::i8, DType::f32, {4, 6}, {1, 6}, false)};
    }
};

struct ExpandBlocks {
    static constexpr std::string_view name = "expand_blocks",
                                      summary = "the elements of a constant that is stored in blocks";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = {DType::f32}, .min_rank = 1, .blocks = true}};
    static constexpr bool folds_always = true;  // done once, when a graph is loaded

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        return Types{{DType::f32, in[0].shape}};
    }

    static std::optional<int> same_as(const Operands& in, const NoAttrs&) {
        return in[0].format == BlockFormat::plain ? std::optional(0) : std::nullopt;
    }

    static void reference(const TensorArgs& args, const NoAttrs&) {
        const ConstView& x = args.in[0];
        const auto part = args.share.of(x.elements(), 256);
        const auto count = part.end - part.begin;
        if (x.format == BlockFormat::plain)
            std::copy_n(x.as<float>() + part.begin, count, args.out[0].as<float>() + part.begin);
        else
            dequantize(x.format, x.data + blocks_bytes(x.format, part.begin), count,
                       args.out[0].as<float>() + part.begin);
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return elementwise_cost(in, out, 1);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](BlockFormat format, Shape shape) {
            return Sample{{{.type = {DType::f32, std::move(shape), format}, .constant = true}}, {}};
        };
        return {sample(BlockFormat::plain, {3, 5}), sample(BlockFormat::q4_0, {320}),
                sample(BlockFormat::q8_0, {3, 32}), sample(BlockFormat::q5_k, {2, 3, 256})};
    }
};

}  // namespace

std::span<const OpDef> quantize_ops() {
    return OpList<QuantizeLinear, DequantizeLinear, ExpandBlocks>::defs();
}

}  // namespace headrace::ops
