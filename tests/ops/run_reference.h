#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/catalog.h"

/// Runs ops on small tensors through the same doors as the engine: attribute parsing, check_and_infer,
/// reference.
namespace headrace::testing {

constexpr double kInf = std::numeric_limits<double>::infinity();
inline const double kNan = std::nan("");

inline TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }
inline NamedAttrs along(std::int64_t axis) { return {{"axis", axis}}; }

/// A dense tensor with its bytes.
struct TestTensor {
    TensorType type;
    std::vector<std::byte> bytes;

    /// The elements in the dtype's C++ storage type, or widened: i4, u4, f16 and bf16 need T = float or int.
    template <class T>
    std::vector<T> as() const {
        std::vector<T> values(static_cast<std::size_t>(type.elements()));
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (bits_of(type.dtype) == 4) {
                const int nibble = std::to_integer<int>(bytes[i / 2]) >> (i % 2 * 4) & 15;
                values[i] = static_cast<T>(type.dtype == DType::i4 && nibble > 7 ? nibble - 16 : nibble);
                continue;
            }
            visit_dtype(type.dtype, [&]<class S>() {
                S element;
                std::memcpy(&element, bytes.data() + i * sizeof(S), sizeof(S));
                values[i] = static_cast<T>(static_cast<compute_t<S>>(element));
            });
        }
        return values;
    }
};

/// A tensor from values that are converted to the dtype; give std::int64_t or std::uint64_t ones for exact
/// 64-bit.
template <class T = double>
TestTensor tensor(DType dtype, Shape shape, const std::vector<T>& values) {
    TestTensor t{{dtype, std::move(shape)}, {}};
    EXPECT_EQ(t.type.elements(), static_cast<std::int64_t>(values.size())) << "test data of " << t.type.str();
    t.bytes.resize(t.type.bytes());
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (bits_of(dtype) == 4) {
            t.bytes[i / 2] |= static_cast<std::byte>((static_cast<int>(values[i]) & 15) << (i % 2 * 4));
            continue;
        }
        visit_dtype(dtype, [&]<class S>() {
            const S element = static_cast<S>(static_cast<compute_t<S>>(values[i]));
            std::memcpy(t.bytes.data() + i * sizeof(S), &element, sizeof(S));
        });
    }
    return t;
}

using OptionalTensors = std::vector<std::optional<TestTensor>>;

inline Result<std::vector<TensorType>> infer(std::string_view op,
                                             const std::vector<std::optional<TensorType>>& types,
                                             const NamedAttrs& named = {}) {
    const OpDef* def = find_op(op);
    if (!def) return invalid("no op '{}'", op);
    HR_ASSIGN(const AttrBox attrs, def->make_attrs(named));
    std::vector<const TensorType*> pointers;
    for (const auto& type : types) pointers.push_back(type ? &*type : nullptr);
    return check_and_infer(*def, Operands(pointers), attrs.get());
}

/// The error text of an inference that must fail; "" when it succeeds.
inline std::string infer_error(std::string_view op, const std::vector<std::optional<TensorType>>& types,
                               const NamedAttrs& named = {}) {
    const auto result = infer(op, types, named);
    return result.ok() ? "" : result.error().message;
}

/// What an inference that must succeed leaves to the values of symbols.
inline std::vector<std::string> conditions(std::string_view op,
                                           const std::vector<std::optional<TensorType>>& types,
                                           const NamedAttrs& named = {}) {
    const OpDef& def = *find_op(op);
    const AttrBox attrs = def.make_attrs(named).value();
    std::vector<const TensorType*> pointers;
    for (const auto& type : types) pointers.push_back(type ? &*type : nullptr);
    std::vector<Condition> open;
    const auto inferred = check_and_infer(def, Operands(pointers, &open), attrs.get());
    EXPECT_TRUE(inferred.ok()) << (inferred.ok() ? "" : inferred.error().message);
    std::vector<std::string> texts;
    for (const Condition& condition : open) texts.push_back(condition.str());
    return texts;
}

/// The same for operands that are at hand.
inline std::string error(std::string_view op, const OptionalTensors& in, const NamedAttrs& named = {}) {
    std::vector<std::optional<TensorType>> types;
    for (const auto& t : in) types.push_back(t ? std::optional(t->type) : std::nullopt);
    return infer_error(op, types, named);
}

/// Runs the reference kernel with 1 and with 3 threads, which must agree to the byte. Of an op that writes a
/// state, the state's operand is the first output's memory.
inline std::vector<TestTensor> run(std::string_view op, const OptionalTensors& in,
                                   const NamedAttrs& named = {}) {
    std::vector<std::optional<TensorType>> types;
    for (const auto& t : in) types.push_back(t ? std::optional(t->type) : std::nullopt);
    const auto inferred = infer(op, types, named);
    EXPECT_TRUE(inferred.ok()) << (inferred.ok() ? "" : inferred.error().message);
    if (!inferred.ok()) return {};
    const OpDef& def = *find_op(op);
    const AttrBox attrs = def.make_attrs(named).value();

    std::vector<TestTensor> result;
    for (const int threads : {1, 3}) {
        std::vector<TestTensor> outputs;
        for (const TensorType& type : inferred.value()) outputs.push_back({type, {}});
        for (TestTensor& t : outputs) t.bytes.assign(t.type.bytes() + 1, std::byte{0xA5});  // + 1: never null
        if (def.writes_state >= 0)
            std::copy(in[def.writes_state]->bytes.begin(), in[def.writes_state]->bytes.end(),
                      outputs[0].bytes.begin());

        std::vector<std::vector<std::int64_t>> shapes;
        for (const auto& t : in) shapes.push_back(t ? t->type.sizes() : std::vector<std::int64_t>{});
        for (const TestTensor& t : outputs) shapes.push_back(t.type.sizes());
        std::vector<ConstView> views;
        static const std::byte kEmpty{};
        for (std::size_t i = 0; i < in.size(); ++i) {
            if (!in[i])
                views.push_back({});
            else
                views.push_back(
                    {in[i]->type.dtype, shapes[i], in[i]->bytes.empty() ? &kEmpty : in[i]->bytes.data()});
        }
        if (def.writes_state >= 0) views[def.writes_state].data = outputs[0].bytes.data();
        std::vector<MutView> outs;
        for (std::size_t i = 0; i < outputs.size(); ++i)
            outs.push_back({outputs[i].type.dtype, shapes[in.size() + i], outputs[i].bytes.data()});
        for (int ith = 0; ith < threads; ++ith) def.reference({views, outs, {ith, threads}}, attrs.get());
        for (TestTensor& t : outputs) {
            EXPECT_EQ(t.bytes.back(), std::byte{0xA5}) << op << " wrote past its output";
            t.bytes.pop_back();
        }
        if (threads == 1)
            result = std::move(outputs);
        else
            for (std::size_t i = 0; i < outputs.size(); ++i)
                EXPECT_EQ(outputs[i].bytes, result[i].bytes) << op << " differs between 1 and 3 threads";
    }
    return result;
}

/// The same for an op with one output, as plain values.
template <class T = float>
std::vector<T> values(std::string_view op, const OptionalTensors& in, const NamedAttrs& named = {}) {
    const auto result = run(op, in, named);
    return result.empty() ? std::vector<T>{} : result[0].as<T>();
}

}  // namespace headrace::testing
