/// Updates of states, the tensors that persist between runs. Output 0 is the state's new version in the same
/// memory.
#include <array>
#include <cstring>
#include <type_traits>

#include "emit/emit.h"
#include "ops/elementwise.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace headrace::ops {
namespace {

struct Assign {
    static constexpr std::string_view name = "assign", summary = "the state takes the value";
    static constexpr std::array operands{OperandRule{.name = "state", .dtypes = kAny},
                                         OperandRule{.name = "value", .dtypes = kAny, .same_dtype_as = 0}};
    static constexpr int writes_state = 0;

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        if (!same_shape(in, in[0].shape, in[1].shape))
            return invalid("Shape mismatch: the state is {}, the value {}", str(in[0].shape),
                           str(in[1].shape));
        return same_type(in[0]);
    }

    static void reference(const TensorArgs& args, const NoAttrs&) {
        const auto bytes = static_cast<std::int64_t>(bytes_of(args.out[0].dtype, args.out[0].elements()));
        const auto part = args.share.of(bytes, 64);
        // A value may be a view of the state, and then of the very same bytes.
        if (args.in[1].data != args.out[0].data)
            std::memcpy(args.out[0].data + part.begin, args.in[1].data + part.begin,
                        static_cast<std::size_t>(part.end - part.begin));
    }

    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands&,
                                           const NoAttrs&) {
        return {e.copy_into(x[0], x[1])};
    }

    static Cost cost(const Operands&, std::span<const TensorType> out, const NoAttrs&) {
        return {0, 2 * static_cast<double>(out[0].bytes())};
    }

    static std::vector<Sample> samples() {
        const auto sample = [](TensorType t) {
            return Sample{{{.type = t, .low = 0}, {.type = t, .low = 0}}, {}};
        };
        return {sample({DType::f32, {2, 3}}), sample({DType::f16, {2, 1, 2, 1, 3}}),
                sample({DType::i64, {4}}), sample({DType::u8, {2, 5}}), sample({DType::i4, {3}})};
    }
};

struct AccumulateAttrs {
    std::int64_t offset = 0;
    static void fields(auto&& f) {
        f("offset", &AccumulateAttrs::offset,
          "element of the flattened destination that the first source element adds to");
    }
};

struct Accumulate {
    static constexpr std::string_view
        name = "accumulate",
        summary = "destination[offset : offset + n] += source, in place and flattened";
    static constexpr std::array operands{
        OperandRule{.name = "destination", .dtypes = kNumeric},
        OperandRule{.name = "source", .dtypes = kNumeric, .same_dtype_as = 0}};
    static constexpr int writes_state = 0;
    using Attrs = AccumulateAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        if (a.offset < 0) return invalid("offset {} must not be negative", a.offset);
        const Dim destination = product(in[0].shape), source = product(in[1].shape);
        if (a.offset > destination.max_size() - source.min_size() ||
            !at_least(in, destination, Dim::of(Expression(source) + a.offset)))
            return invalid(
                "offset {} and the source's {} elements {} are out of bounds for the destination's {} {}",
                a.offset, source.min_size(), str(in[1].shape), destination.max_size(), str(in[0].shape));
        return same_type(in[0]);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_dtype(args.out[0].dtype, [&]<class T>() {
            const auto part = args.share.of(args.in[1].elements(), 64);
            const T* source = args.in[1].as<T>();
            T* destination = args.out[0].as<T>() + a.offset;
            for (std::int64_t i = part.begin; i < part.end; ++i)
                destination[i] = sum(destination[i], source[i]);
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        // ggml keeps places in 32 bits, and knows no other type that it adds to a part of.
        if (in[0].bytes() > INT32_MAX) return unsupported("{} bytes", in[0].bytes());
        const bool is_whole = a.offset == 0 && in[0].elements() == in[1].elements();
        return in[0].dtype == DType::f32 || (in[0].dtype == DType::f16 && is_whole)
                   ? success()
                   : unsupported("a part of {}", name_of(in[0].dtype));
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        if (in[0].dtype == DType::f32) return {e.add_into(x[0], x[1], a.offset)};
        ggml_tensor* sum =
            e.binary(Binary::add, e.cast(e.flatten(x[0]), DType::f32), e.cast(e.flatten(x[1]), DType::f32));
        return {e.copy_into(x[0], sum)};
    }
    /// ggml would take one thread: its add and acc split by rows, and this is one row.
    static constexpr std::array kernels{OnePass<Accumulate>::kKernel};

    static Cost cost(const Operands& in, std::span<const TensorType>, const Attrs&) {
        return {static_cast<double>(in[1].elements()), 3 * static_cast<double>(in[1].bytes())};
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape destination, Shape source, std::int64_t offset) {
            return Sample{
                {{.type = {t, std::move(destination)}, .low = 0}, {.type = {t, std::move(source)}, .low = 0}},
                {{"offset", offset}}};
        };
        return {sample(DType::f32, {4, 5}, {4, 5}, 0), sample(DType::f32, {4, 5}, {2, 3}, 7),
                sample(DType::f16, {8}, {8}, 0), sample(DType::i64, {2, 2, 2, 1, 2}, {3}, 13),
                sample(DType::u8, {5}, {}, 2)};
    }

private:
    template <class T>
    static T sum(T a, T b) {
        if constexpr (std::is_integral_v<T>)
            return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                                  static_cast<std::make_unsigned_t<T>>(b));
        else
            return static_cast<T>(static_cast<compute_t<T>>(a) + static_cast<compute_t<T>>(b));
    }
};

}  // namespace

std::span<const OpDef> state_ops() { return OpList<Assign, Accumulate>::defs(); }

}  // namespace headrace::ops
