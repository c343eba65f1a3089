#include <bit>
#include <cmath>
#include <numbers>
#include <random>

#include "doors/onnx/reading/operators.h"

/// Random numbers: by the model's seed or one that is drawn when the model is read, others in each run.
namespace headrace::onnx {
namespace {

constexpr std::int64_t kOther = 0x5DEECE66D;  // of the second sequence of the same seed

std::int64_t seed_of(const Node& node) {
    if (node.has("seed")) return std::bit_cast<std::uint32_t>(static_cast<float>(node.real("seed", 0)));
    std::random_device device;
    return (std::int64_t{device()} << 16 ^ std::int64_t{device()}) & ((std::int64_t{1} << 48) - 1);
}

/// Numbers in [0, 1), f32.
Operand uniform(OpWriter& g, std::int64_t seed, const Shape& shape) {
    return g.op("random_uniform", {g.run_number()}, {{"seed", seed}, {"new_shape", shape}});
}

Operand scaled(OpWriter& g, const Operand& x, double alpha, double beta) {
    return g.op("linear", {x}, {{"alpha", alpha}, {"beta", beta}});
}

/// By Box and Muller.
Operand normal(OpWriter& g, std::int64_t seed, const Shape& shape) {
    const Operand radius = uniform(g, seed, shape), angle = uniform(g, seed ^ kOther, shape);
    const Operand left = scaled(g, radius, -1, 1);  // in (0, 1]
    const Operand distance = g.op("sqrt", {g.times(g.op("log", {left}), -2.0)});
    return g.op("mul", {distance, g.op("cos", {g.times(angle, 2 * std::numbers::pi)})});
}

Operand drawn(OpWriter& g, const Node& node, const Shape& shape, ElementType type) {
    if (node.op.starts_with("RandomNormal"))
        return g.cast(scaled(g, normal(g, seed_of(node), shape), node.real("scale", 1), node.real("mean", 0)),
                      type);
    const double low = node.real("low", 0), high = node.real("high", 1);
    return g.cast(scaled(g, uniform(g, seed_of(node), shape), high - low, low), type);
}

ElementType type_or(const Node& node, ElementType otherwise) {
    return node.has("dtype") ? type_named(node.integer("dtype"), "dtype") : otherwise;
}

Operand random(OpWriter& g, const Node& node) {
    const auto sizes = node.integer_list("shape").value_or(std::vector<std::int64_t>());
    return drawn(g, node, Shape(sizes.begin(), sizes.end()), type_or(node, ElementType::f32));
}

Operand random_like(OpWriter& g, const Node& node) {
    return drawn(g, node, g.shape(node.x()), type_or(node, node.x()->type));
}

/// 1 with the input's probability. (ONNX's own definition by other operators has the other one.)
Operand bernoulli(OpWriter& g, const Node& node) {
    const Operand numbers = uniform(g, seed_of(node), g.shape(node.x()));
    return g.cast(g.op("lesser", {numbers, g.cast(node.x(), ElementType::f32)}),
                  type_or(node, node.x()->type));
}

/// Each sample is the largest of the logarithms with Gumbel's noise.
Operand multinomial(OpWriter& g, const Node& node) {
    const Shape sizes = g.shape(node.x());
    const std::int64_t count = node.integer("sample_size", 1);
    invalid_if(sizes.size() != 2 || count < 1, "the input is {} and sample_size {}", str(sizes), count);
    Operand noise = uniform(g, seed_of(node), {sizes[0], count, sizes[1]});
    noise = g.op("neg", {g.op("log", {g.plus(noise, std::ldexp(1.0, -26))})});
    noise = g.op("neg", {g.op("log", {noise})});
    const Operand logits = g.reshape(g.cast(node.x(), ElementType::f32), {sizes[0], 1, sizes[1]});
    const Operand chosen =
        g.op("arg_max", {g.op("add", {noise, logits})}, {{"axis", 2}, {"output_data_type", DType::i64}});
    return g.cast(chosen, type_or(node, ElementType::i32));
}

/// Where training holds, some elements become 0 and the others larger; and which ones stay.
Results dropped(OpWriter& g, const Node& node, const Operand& training) {
    const Operand x = node.x(), one = known(1.0, ElementType::f32);
    const Operand given = node.optional(1) ? node.optional(1) : known(0.5, ElementType::f32);
    const Operand ratio = g.cast(g.reshape(given, {}), ElementType::f32);
    const Operand off = g.op("logical_not", {g.reshape(training, {})});
    Operand kept = g.op("greater_or_equal", {uniform(g, seed_of(node), g.shape(x)), ratio});
    kept = g.op("logical_or", {kept, off});
    const Operand larger = g.op("div", {one, scaled(g, ratio, -1, 1)});
    const Operand factor = g.cast(g.op("where", {off, one, larger}), x->type);
    const Operand y = g.op("where", {kept, g.op("mul", {x, factor}), known(0, x->type)});
    return node.outputs.size() > 1 ? Results{y, kept} : Results{y};
}

bool is_all_zero(const Operand& x) {
    if (!x->has_numbers()) return false;
    for (std::int64_t i = 0; i < x->known->count(); ++i)
        if (x->integer(i) != 0) return false;
    return true;
}

/// In inference the input itself; the mask was 0 before operator set 12 and is 1 since.
Results dropout(OpWriter& g, const Node& node) {
    const Operand training = node.optional(2);
    if (training && !is_all_zero(training)) return dropped(g, node, training);
    const Operand x = g.op("identity", {node.x()});
    if (!node.wants(1)) return {x};
    const ElementType type = node.opset >= 10 ? ElementType::boolean : node.x()->type;
    return {x, g.filled(node.opset >= 12 ? 1 : 0, type, g.shape(node.x()))};
}

}  // namespace

std::span<const Operator> randomness_operators() {
    static const Operator kOperators[] = {
        {"Bernoulli", 15, bernoulli, "1 -> 1, dtype int, seed float"},
        {"Dropout", 1, dropout,
         "1 -> 1..2, consumed_inputs ints, is_test int, ratio float; 6: 1 -> 1..2, is_test int, ratio float; "
         "7: 1 -> 1..2, ratio float; 12: 1..3 -> 1..2, seed int"},
        {"Multinomial", 7, multinomial, "1 -> 1, dtype int, sample_size int, seed float"},
        {"RandomNormal", 1, random, "0 -> 1, dtype int, mean float, scale float, seed float, shape ints"},
        {"RandomNormalLike", 1, random_like, "1 -> 1, dtype int, mean float, scale float, seed float"},
        {"RandomUniform", 1, random, "0 -> 1, dtype int, high float, low float, seed float, shape ints"},
        {"RandomUniformLike", 1, random_like, "1 -> 1, dtype int, high float, low float, seed float"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
