#pragma once
#include <algorithm>
#include <array>
#include <string_view>

#include "ir/graph_builder.h"
#include "ops/op.h"

/// Small ops for the tests of ir, which does not know the catalog.
namespace headrace::testing {

enum class Mode { plain, fancy };
constexpr auto enum_names(Mode) { return std::to_array<std::string_view>({"plain", "fancy"}); }

/// One attribute of every kind; variadic; yields its first operand's type.
struct EverythingOp {
    struct Attrs {
        bool flag = false;
        std::int64_t count = 3;
        Number number = std::int64_t{0};
        double scale = 1.0;
        std::string text = "abc";
        Mode mode = Mode::plain;
        std::vector<std::int64_t> axes;
        std::vector<double> factors;
        Shape shape;
        DType type = DType::f32;
        std::optional<double> limit = 6.0;
        static void fields(auto&& f) {
            f("flag", &Attrs::flag, "");
            f("count", &Attrs::count, "");
            f("number", &Attrs::number, "");
            f("scale", &Attrs::scale, "");
            f("text", &Attrs::text, "");
            f("mode", &Attrs::mode, "");
            f("axes", &Attrs::axes, "");
            f("factors", &Attrs::factors, "");
            f("shape", &Attrs::shape, "");
            f("type", &Attrs::type, "");
            f("limit", &Attrs::limit, "");
        }
    };
    static constexpr std::string_view name = "everything", summary = "has every kind of attribute";
    static constexpr bool variadic = true;
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kAny},
                                         OperandRule{.name = "rest", .dtypes = kAny, .optional = true}};
    static Result<Types> infer(const Operands& in, const Attrs&) { return Types{in[0]}; }
    static void reference(const TensorArgs&, const Attrs&) {}
};

/// x + y of equal types.
struct SumOp {
    static constexpr std::string_view name = "sum", summary = "x + y";
    static constexpr std::array operands{OperandRule{.name = "x", .dtypes = kFloats},
                                         OperandRule{.name = "y", .dtypes = kFloats, .same_dtype_as = 0}};
    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        const auto fits = [&](const Dim& x, const Dim& y) {
            const Answer answer = equals(x, y);
            if (answer == Answer::unknown) in.require(Condition::Kind::equal, x, y);
            return answer != Answer::no;
        };
        if (!std::ranges::equal(in[0].shape, in[1].shape, fits))
            return invalid("x is {}, y is {}; their shapes must be equal", in[0].str(), in[1].str());
        return Types{in[0]};
    }
    static void reference(const TensorArgs&, const NoAttrs&) {}
};

/// Yields its operand twice.
struct TwiceOp {
    static constexpr std::string_view name = "twice", summary = "two copies";
    static constexpr int outputs = 2;
    static constexpr std::array operands{OperandRule{.name = "x", .dtypes = kAny}};
    static Result<Types> infer(const Operands& in, const NoAttrs&) { return Types{in[0], in[0]}; }
    static void reference(const TensorArgs&, const NoAttrs&) {}
};

/// Replaces a state.
struct StoreOp {
    static constexpr std::string_view name = "store", summary = "state = value";
    static constexpr int writes_state = 0, version = 2;
    static constexpr std::array operands{OperandRule{.name = "state", .dtypes = kAny},
                                         OperandRule{.name = "value", .dtypes = kAny}};
    static Result<Types> infer(const Operands& in, const NoAttrs&) { return Types{in[0]}; }
    static void reference(const TensorArgs&, const NoAttrs&) {}
};

using SampleOps = OpList<EverythingOp, SumOp, TwiceOp, StoreOp>;

inline const OpDef* find_sample_op(std::string_view name) {
    for (const OpDef& def : SampleOps::defs())
        if (def.name == name) return &def;
    return nullptr;
}

inline const OpDef& sample_op(std::string_view name) { return *find_sample_op(name); }

/// `count` bytes 0, 1, 2 ...
inline std::vector<std::byte> counting_bytes(std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i);
    return bytes;
}

/// store(cache, x); y = sum(x, weight); outputs "y" and "cache'". Values: 0 x, 1 cache, 2 weight, 3 y, 4
/// cache'.
inline Graph small_graph() {
    GraphBuilder b;
    const TensorType type{DType::f32, {2, 3}};
    const ValueId x = b.input("x", type).value();
    const ValueId cache = b.state("cache", type).value();
    const ValueId weight = b.constant(type, counting_bytes(24), "weight").value();
    const ValueId y = b.op(sample_op("sum"), {x, weight}, NamedAttrs{}, "first").value()[0];
    const ValueId stored = b.op(sample_op("store"), {cache, y}, NamedAttrs{}, "last").value()[0];
    (void)b.mark_output("y", y);
    (void)b.mark_output("cache'", stored);
    return b.finish().value();
}

/// All dtypes, attribute kinds, symbols, optional operands, states with and without initial values, shared
/// constants.
inline Graph rich_graph() {
    GraphBuilder b;
    const Dim seq = Dim::symbolic("seq", 1, 512);
    const ValueId x = b.input("x", {DType::f32, {1, seq, 384}}).value();
    const ValueId scalar = b.input("scalar", {DType::i64, {}}).value();
    for (int i = 0; i < kDTypeCount; ++i) {
        const TensorType type{static_cast<DType>(i), {3, 5}};
        const auto id =
            b.constant(type, counting_bytes(type.bytes()), std::string(name_of(type.dtype))).value();
        (void)b.op(sample_op("everything"), {id}).value();
    }
    auto bytes = std::make_shared<std::vector<std::byte>>(counting_bytes(8));
    const auto shared = std::make_shared<Constant>(Constant{.bytes = *bytes, .owner = bytes});
    const ValueId one = b.constant({DType::f32, {2}}, shared, "shared").value();
    const ValueId other = b.constant({DType::u8, {8}}, shared).value();
    const ValueId empty = b.constant({DType::f32, {0, 7}}, std::span<const std::byte>(), "empty").value();
    const ValueId zeros = b.state("zeros", {DType::f16, {4, 4}}).value();
    const ValueId filled = b.state("filled", {DType::u8, {8}}, shared).value();
    const NamedAttrs attrs{{"flag", true},
                           {"count", std::int64_t{-7}},
                           {"number", std::uint64_t{UINT64_MAX}},
                           {"scale", -0.0},
                           {"text", std::string("a\0b \xC3\xA9", 6)},
                           {"mode", std::string("fancy")},
                           {"axes", std::vector<std::int64_t>{0, -1, INT64_MIN}},
                           {"factors", std::vector<double>{0.1, -1e300}},
                           {"shape", Shape{2, seq, Dim::symbolic("h/2", 0, 9)}},
                           {"type", DType::i4},
                           {"limit", std::monostate()}};
    const ValueId made =
        b.op(sample_op("everything"), {x, one, kNoValue, empty}, attrs, "attributes").value()[0];
    (void)b.op(sample_op("everything"), {other, scalar}).value();
    const auto twice = b.op(sample_op("twice"), {made}).value();
    const ValueId sum = b.op(sample_op("sum"), {twice[0], twice[1]}).value()[0];
    (void)b.op(sample_op("store"), {filled, zeros}, NamedAttrs{}, "side effect").value();
    (void)b.mark_output("sum", sum);
    (void)b.mark_output("sum again", sum);
    (void)b.mark_output("an input", x);
    return b.finish().value();
}

}  // namespace headrace::testing
