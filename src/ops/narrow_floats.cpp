/// Floats of 4 and 8 bits, whose values lie in f32, and bits read as another type.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/elementwise.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace headrace::ops {
namespace {

enum class Format { f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f4e2m1, f8e8m0 };
constexpr std::array<std::string_view, 6> enum_names(Format) {
    return {"f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1", "f8e8m0"};
}

enum class Direction { nearest, up, down };
constexpr std::array<std::string_view, 3> enum_names(Direction) { return {"nearest", "up", "down"}; }

struct RoundToAttrs {
    Format format = Format::f8e4m3fn;
    bool saturate = true;
    Direction direction = Direction::nearest;
    static void fields(auto&& f) {
        f("format", &RoundToAttrs::format, "whose values the results are", kRequired);
        f("saturate", &RoundToAttrs::saturate, "whether what is too large becomes the largest number");
        f("direction", &RoundToAttrs::direction, "how f8e8m0 rounds: up and down from and to zero");
    }
};

/// Mantissa bits, the exponent of the smallest normal number, and the largest number.
struct Layout {
    int mantissa, lowest;
    float largest;
    bool has_infinity, has_negative_zero, has_nan;
};
constexpr Layout layout_of(Format f) {
    switch (f) {
        case Format::f8e4m3fn: return {3, -6, 448, false, true, true};
        case Format::f8e4m3fnuz: return {3, -7, 240, false, false, true};
        case Format::f8e5m2: return {2, -14, 57344, true, true, true};
        case Format::f8e5m2fnuz: return {2, -15, 57344, false, false, true};
        default: return {1, 0, 6, false, true, false};
    }
}

/// The nearest number of a format, halves to the even one; what rounds beyond the largest as ONNX's Cast.
float rounded(float x, const Layout& to, bool saturate) {
    if (std::isnan(x)) return to.has_nan ? x : -0.0f;  // as ml_dtypes has it, and ONNX's tests with it
    int exponent = 0;
    if (std::isfinite(x) && x != 0) std::frexp(x, &exponent);
    const int step = std::max(exponent - 1, to.lowest) - to.mantissa;
    float y = std::isfinite(x) ? std::ldexp(std::nearbyint(std::ldexp(x, -step)), step) : x;
    if (std::abs(y) > to.largest) {
        if (saturate) return std::copysign(to.largest, x);
        return to.has_infinity ? std::copysign(std::numeric_limits<float>::infinity(), x)
                               : std::copysign(std::numeric_limits<float>::quiet_NaN(), x);
    }
    return y == 0 && !to.has_negative_zero ? 0.0f : y;
}

/// Powers of two from 2^-127 to 2^127, of the magnitude.
float power_of_two(float x, bool saturate, Direction direction) {
    constexpr float kLow = 0x1p-127f, kHigh = 0x1p127f;
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    const float size = std::abs(x);
    if (std::isnan(x)) return kNan;
    if (size < kLow) return saturate ? kLow : kNan;
    if (std::isinf(x)) return saturate ? kHigh : kNan;
    int exponent = 0;
    const float fraction = std::frexp(size, &exponent);  // in [0.5, 1)
    const bool is_above = direction == Direction::up        ? fraction > 0.5f
                          : direction == Direction::nearest ? fraction >= 0.75f
                                                            : false;
    const float y = std::ldexp(1.0f, exponent - 1 + is_above);
    return y > kHigh ? (saturate ? kHigh : kNan) : y;
}

struct RoundTo {
    static constexpr std::string_view name = "round_to",
                                      summary =
                                          "the nearest number that a float of 4 or 8 bits holds, halves to "
                                          "the even one; NaN stays where the format has it";
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = DTypeSet{DType::f32}}};
    static constexpr LayoutRule layout = LayoutRule::any;
    using Attrs = RoundToAttrs;

    static Result<Types> infer(const Operands& in, const Attrs&) { return same_type(in[0]); }
    static void reference(const TensorArgs& args, const Attrs& a) {
        if (a.format == Format::f8e8m0)
            return map_elements<float, float>(
                args, [&](float x) { return power_of_two(x, a.saturate, a.direction); });
        const Layout to = layout_of(a.format);
        map_elements<float, float>(args, [&](float x) { return rounded(x, to, a.saturate); });
    }
    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 8);
    }
    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        for (std::string_view format : enum_names(Format{}))
            list.push_back({{{.type = {DType::f32, {3, 5, 7}}, .low = -20, .high = 20}},
                            {{"format", std::string(format)}}});
        return list;
    }
};

struct BitcastAttrs {
    DType data_type = DType::f32;
    static void fields(auto&& f) {
        f("data_type", &BitcastAttrs::data_type, "element type of the output, of as many bits", kRequired);
    }
};

struct Bitcast {
    static constexpr std::string_view name = "bitcast", summary = "the same bits as another type";
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kAny}};
    static constexpr LayoutRule layout = LayoutRule::any;
    using Attrs = BitcastAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        if (bits_of(in[0].dtype) != bits_of(a.data_type))
            return invalid("Wrong data type: {} has {} bits and {} has {}", name_of(in[0].dtype),
                           bits_of(in[0].dtype), name_of(a.data_type), bits_of(a.data_type));
        return Types{{a.data_type, in[0].shape}};
    }
    static std::optional<int> same_as(const Operands& in, const Attrs& a) {
        return in[0].dtype == a.data_type ? std::optional(0) : std::nullopt;
    }
    static void reference(const TensorArgs& args, const Attrs&) {
        const std::int64_t bits = bits_of(args.in[0].dtype);
        const std::int64_t bytes = (args.in[0].elements() * bits + 7) / 8;
        const auto part = args.share.of(bytes, 64);
        if (part.end > part.begin)
            std::memcpy(args.out[0].data + part.begin, args.in[0].data + part.begin,
                        static_cast<std::size_t>(part.end - part.begin));
    }
    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 0);
    }
    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        for (auto [from, to] : {std::pair{DType::f32, DType::i32}, std::pair{DType::u8, DType::i8},
                                std::pair{DType::i64, DType::u64}})
            list.push_back({{{.type = {from, {3, 5}}, .low = 0, .high = 7}}, {{"data_type", to}}});
        return list;
    }
};

}  // namespace

std::span<const OpDef> narrow_floats_ops() { return OpList<RoundTo, Bitcast>::defs(); }

}  // namespace headrace::ops
