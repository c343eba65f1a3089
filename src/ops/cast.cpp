/// Conversion between element types.
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>

#include "emit/emit.h"
#include "kernels/tensor/convert_f32.h"
#include "ops/arithmetic.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace headrace::ops {
namespace {

struct CastAttrs {
    DType data_type = DType::f32;
    static void fields(auto&& f) {
        f("data_type", &CastAttrs::data_type, "element type of the output", kRequired);
    }
};

/// Calls f(load) where load(i) is the i-th element as a number to be converted.
template <class F>
void visit_elements(const ConstView& x, F&& f) {
    if (bits_of(x.dtype) == 4) return f([&](std::int64_t i) { return load_nibble(x, i); });
    visit_dtype(x.dtype, [&]<class S>() {
        f([data = x.as<S>()](std::int64_t i) { return static_cast<compute_t<S>>(data[i]); });
    });
}

/// A float towards zero as a signed integer of 32 bits, or of 64 where To needs them, whose lowest value
/// stands for NaN and for what it cannot hold; of that integer the low bits. So do x86's instructions, hence
/// ONNX Runtime, PyTorch and NumPy there; C++ leaves it undefined. A u64 holds all that is below 2^64.
template <std::integral To, std::floating_point From>
To truncate(From x) {
    constexpr bool kIsWide = sizeof(To) == 8 || std::same_as<To, std::uint32_t>;
    using Whole = std::conditional_t<kIsWide, std::int64_t, std::int32_t>;
    constexpr From kLow = static_cast<From>(std::numeric_limits<Whole>::min());  // a power of two: exact
    if (x >= kLow && x < -kLow) return static_cast<To>(static_cast<Whole>(x));
    if constexpr (std::same_as<To, std::uint64_t>)
        if (x >= -kLow) return x < -2 * kLow ? static_cast<To>(x) : 0;
    return static_cast<To>(std::numeric_limits<Whole>::min());
}

/// An element as another type: floats to integers as above, integers wrap, floats round once.
template <class To, class From>
To cast_element(From x) {
    if constexpr (std::integral<To> && std::floating_point<From>)
        return truncate<To>(x);
    else
        return convert<To>(x);
}

template <class N>
int to_nibble(N x) {
    return static_cast<int>(cast_element<std::uint8_t>(x) & 15);
}

struct Cast {
    static constexpr std::string_view
        name = "cast",
        summary =
            "the elements as another type: floats truncate towards zero, beyond "
            "the range as on x86; integers wrap; bool is x != 0";
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kAny}};
    static constexpr LayoutRule layout = LayoutRule::any;
    using Attrs = CastAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        return Types{{a.data_type, in[0].shape}};
    }

    static std::optional<int> same_as(const Operands& in, const Attrs& a) {
        return in[0].dtype == a.data_type ? std::optional(0) : std::nullopt;
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const MutView& out = args.out[0];
        const std::int64_t count = out.elements();
        const auto part = args.share.of(count, 64);  // even, so that no byte of 4-bit elements is shared
        visit_elements(args.in[0], [&](auto load) {
            if (bits_of(a.data_type) == 4) {
                for (std::int64_t i = part.begin; i < part.end; i += 2) {
                    const int high = i + 1 < count ? to_nibble(load(i + 1)) : 0;
                    out.data[i / 2] = static_cast<std::byte>(to_nibble(load(i)) | high << 4);
                }
            } else if (a.data_type == DType::boolean) {
                for (std::int64_t i = part.begin; i < part.end; ++i) out.as<std::uint8_t>()[i] = load(i) != 0;
            } else {
                visit_dtype(a.data_type, [&]<class To>() {
                    To* y = out.as<To>();
                    for (std::int64_t i = part.begin; i < part.end; ++i) y[i] = cast_element<To>(load(i));
                });
            }
        });
    }

    /// C++ leaves ggml's f32 to i32 undefined beyond the range, and it has no other integer conversions.
    static Status lowerable(const Operands& in, const Attrs& a) {
        const DType from = in[0].dtype, to = a.data_type;
        const bool converts =
            (from == DType::f32 && to == DType::f16) || (from == DType::f16 && to == DType::f32) ||
            (from == DType::f32 && to == DType::bf16) || (from == DType::bf16 && to == DType::f32) ||
            (from == DType::i32 && to == DType::f32);
        if (!converts && !same_bytes(from, to)) return unsupported("{} to {}", name_of(from), name_of(to));
        return success();
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        if (same_bytes(in[0].dtype, a.data_type)) return {e.shaped(x[0], {a.data_type, in[0].shape})};
        return {e.cast(x[0], a.data_type)};
    }

    /// ggml converts element by element.
    static bool vectors_apply(const Operands& in, std::span<const bool>, const void* attrs) {
        const DType from = in[0].dtype, to = detail::attrs_ref<Attrs>(attrs).data_type;
        return (from == DType::f32 && kHalfFloats.has(to)) || (to == DType::f32 && kHalfFloats.has(from));
    }
    static void run_vectors(const TensorArgs& args, const void* attrs) {
        const DType to = detail::attrs_ref<Attrs>(attrs).data_type;
        const auto convert_to = [&]<class From, class To>() {
            headrace::kernels::convert_f32(args.in[0].as<From>(), args.out[0].as<To>(),
                                           static_cast<std::size_t>(args.out[0].elements()), args.share.ith,
                                           args.share.nth);
        };
        if (to == DType::f16) return convert_to.operator()<float, Half>();
        if (to == DType::bf16) return convert_to.operator()<float, BFloat16>();
        if (args.in[0].dtype == DType::f16) return convert_to.operator()<Half, float>();
        convert_to.operator()<BFloat16, float>();
    }
    static constexpr std::array kernels{
        KernelDef{.name = "convert_f32", .applies = &vectors_apply, .run = &run_vectors}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 1);
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64,
                                    DType::i8,  DType::u8,  DType::i32,  DType::u32,
                                    DType::i64, DType::u64, DType::i4,   DType::boolean};
        for (DType from : kTypes)
            for (DType to : kTypes)
                list.push_back(
                    {{{.type = {from, {3, 5}}, .low = 0, .high = from == DType::boolean ? 1.0 : 7.0}},
                     {{"data_type", to}}});
        for (const Shape& shape : {Shape{}, Shape{2, 1, 3, 1, 2}, Shape{1, 2, 2, 1, 2, 3}})
            list.push_back({{{.type = {DType::f32, shape}}}, {{"data_type", DType::f16}}});
        return list;
    }

private:
    /// Also the same ggml type: the bytes stay where they are.
    static bool same_bytes(DType from, DType to) {
        constexpr DTypeSet kByte{DType::i8, DType::u8};
        return from == to || (kByte.has(from) && kByte.has(to)) || (from == DType::boolean && kByte.has(to));
    }
};

}  // namespace

std::span<const OpDef> cast_ops() { return OpList<Cast>::defs(); }

}  // namespace headrace::ops
