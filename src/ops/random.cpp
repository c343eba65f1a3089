/// Random numbers, of a seed and a counter: equal operands give equal numbers, on every number of threads.
#include <array>
#include <cstdint>

#include "ops/infer.h"
#include "ops/op.h"

namespace headrace::ops {
namespace {

struct RandomAttrs {
    std::int64_t seed = 0;
    Shape new_shape;
    static void fields(auto&& f) {
        f("seed", &RandomAttrs::seed, "which sequence of numbers");
        f("new_shape", &RandomAttrs::new_shape, "the output's extents", kRequired);
    }
};

/// SplitMix64's output function (Steele, Lea, Flood 2014), which makes neighbours independent.
std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

struct RandomUniform {
    static constexpr std::string_view name = "random_uniform",
                                      summary =
                                          "numbers in [0, 1), evenly distributed, of a seed and a counter";
    static constexpr std::array operands{
        OperandRule{.name = "counter", .dtypes = DTypeSet{DType::i64}, .max_rank = 1}};
    using Attrs = RandomAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        if (in[0].rank() == 1 && !in[0].shape[0].is(1))
            return invalid("Wrong shape: the counter is one number, got {}", str(in[0].shape));
        return Types{{DType::f32, a.new_shape}};
    }
    static void reference(const TensorArgs& args, const Attrs& a) {
        constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;  // 2^64 over the golden ratio
        const auto counter = static_cast<std::uint64_t>(*args.in[0].as<std::int64_t>());
        const std::uint64_t key = mixed(mixed(static_cast<std::uint64_t>(a.seed) + kStep) + counter * kStep);
        const auto part = args.share.of(args.out[0].elements(), 64);
        float* y = args.out[0].as<float>();
        for (std::int64_t i = part.begin; i < part.end; ++i)
            y[i] =
                static_cast<float>(mixed(key + static_cast<std::uint64_t>(i + 1) * kStep) >> 40) * 0x1p-24f;
    }
    static Cost cost(const Operands&, std::span<const TensorType> out, const Attrs&) {
        return {10 * static_cast<double>(out[0].bytes()) / 4, static_cast<double>(out[0].bytes())};
    }
    static std::vector<Sample> samples() {
        return {
            {{{.type = {DType::i64, {1}}, .low = 0, .high = 7}}, {{"seed", 5}, {"new_shape", Shape{3, 50}}}},
            {{{.type = {DType::i64, {}}, .low = 0, .high = 7}}, {{"new_shape", Shape{}}}}};
    }
};

}  // namespace

std::span<const OpDef> random_ops() { return OpList<RandomUniform>::defs(); }

}  // namespace headrace::ops
