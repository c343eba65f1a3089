#include <algorithm>
#include <array>
#include <cmath>

#include "doors/onnx/ops/loops.h"
#include "doors/onnx/reading/numbers.h"

/// Attention whose memory is one matrix for each head, step by step.
namespace headrace::onnx {
namespace {

constexpr std::int64_t kMostSteps = 256;  ///< that are laid out one after the other; a loop does others

/// What each step reads, [batch, heads, steps, width]; gate and rate may be null.
struct StepInputs {
    Operand q, k, v, gate, rate;

    /// Calls `take(x)` for each input.
    template <class F>
    StepInputs each(F take) const {
        const auto of = [&](const Operand& x) -> Operand { return x ? take(x) : nullptr; };
        return {of(q), of(k), of(v), of(gate), of(rate)};
    }
};

/// [batch, steps, heads width] as [batch, heads, steps, width], f32
Operand by_memory_heads(OpWriter& g, const Operand& x, std::int64_t heads) {
    const Shape sizes = g.shape(x);
    invalid_if(sizes.size() != 3, "an input has {} dimensions, not 3", sizes.size());
    const std::int64_t width = g.fixed(sizes[2], "the width");
    invalid_if(heads < 1 || width % heads != 0, "{} values do not divide into {} heads", width, heads);
    const Operand split = g.reshape(g.cast(x, ElementType::f32), {sizes[0], sizes[1], heads, width / heads});
    return g.transpose(split, {0, 2, 1, 3});
}

/// The state [batch, groups, width, inner] after a step, and what is read: [batch, heads, 1, inner].
std::pair<Operand, Operand> memory_step(OpWriter& g, Operand state, const StepInputs& one,
                                        std::int64_t each) {
    Operand v = one.v;
    if (one.gate)  // of a group, or of each of its rows
        state = g.op("mul", {state, g.transpose(g.op("exp", {one.gate}), {0, 1, 3, 2})});
    if (one.rate) v = g.op("mul", {g.op("sub", {v, g.op("matmul", {one.k, state})}), one.rate});
    state = g.op("add", {state, g.op("matmul", {g.transpose(one.k, {0, 1, 3, 2}), v})});
    const Shape q = g.shape(one.q);
    const Operand grouped = g.reshape(one.q, {q[0], divided_down(q[1], each), each, q[3]});
    const Operand row = g.op("matmul", {grouped, state});
    return {state, g.reshape(row, {q[0], q[1], 1, g.shape(v)[3]})};
}

/// The last state, and all rows: [batch, steps, heads, inner].
std::pair<Operand, Operand> all_steps(OpWriter& g, Operand state, const StepInputs& inputs,
                                      std::int64_t each) {
    const Dim steps = g.shape(inputs.q)[2];
    if (!steps.is_symbolic() && steps.size() <= kMostSteps) {
        std::vector<Operand> rows;
        for (std::int64_t step = 0; step < steps.size(); ++step) {
            const auto one = inputs.each([&](const Operand& x) { return g.cut(x, 2, step, 1); });
            rows.emplace_back();
            std::tie(state, rows.back()) = memory_step(g, state, one, each);
        }
        invalid_if(rows.empty(), "there are no steps");
        return {state, g.transpose(g.concat(rows, 2), {0, 2, 1, 3})};
    }
    const auto build = [&](Body& body, const Operand& number, const std::vector<Operand>& carried) {
        const Operand place = body.reshape(number, {1});
        const auto one = inputs.each([&](const Operand& x) {
            return body.op("gather", {x, place}, {{"axis", 2}});
        });
        const auto [next, row] = memory_step(body, carried[0], one, each);
        return Iteration{known(1, ElementType::boolean), {next}, {row}};
    };
    const auto found = repeat(g, known({Item(steps)}, {}, ElementType::i64), nullptr, {state}, build);
    const Operand rows = g.transpose(found.at(1), {1, 0, 2, 3, 4});
    const Shape sizes = g.shape(rows);
    return {found.at(0), g.reshape(rows, {sizes[0], steps, sizes[2], sizes[4]})};
}

/// The first state: the given one, or zeros.
Operand first_state(OpWriter& g, const Operand& past, const StepInputs& inputs) {
    const Operand state = past ? g.cast(past, ElementType::f32) : known(0.0, ElementType::f32);
    const Shape key = g.shape(inputs.k);
    return g.expand(state, {key[0], key[1], key[3], g.shape(inputs.v)[3]});
}

/// Queries of one head for several memories.
Operand repeated_heads(OpWriter& g, const Operand& q, std::int64_t times) {
    const Shape s = g.shape(q);
    const Operand wide = g.expand(g.reshape(q, {s[0], s[1], 1, s[2], s[3]}), {s[0], s[1], times, s[2], s[3]});
    return g.reshape(wide, {s[0], s[1] * times, s[2], s[3]});
}

Results linear_attention(OpWriter& g, const Node& node) {
    refuse_if(node.integer("state_window", 0) != 0,
              "state_window is {}; only 0 is read, the state after the last step",
              node.integer("state_window", 0));
    constexpr std::array<std::string_view, 4> kRules{"linear", "gated", "delta", "gated_delta"};
    const std::string rule = node.text("update_rule", "gated_delta");
    invalid_if(std::ranges::find(kRules, rule) == kRules.end(), "update_rule is '{}'; {} are ONNX's", rule,
               "linear, gated, delta, gated_delta");
    const Operand query = node.operand(0), past = node.optional(3), decay = node.optional(4),
                  beta = node.optional(5);
    const std::int64_t heads = node.integer("q_num_heads"), groups = node.integer("kv_num_heads");
    StepInputs inputs{by_memory_heads(g, query, heads), by_memory_heads(g, node.operand(1), groups),
                      by_memory_heads(g, node.operand(2), groups), nullptr, nullptr};
    invalid_if(heads % groups != 0 && groups % heads != 0,
               "q_num_heads is {} and kv_num_heads {}; one must divide the other", heads, groups);
    if (groups > heads) inputs.q = repeated_heads(g, inputs.q, groups / heads);
    if (rule.starts_with("gated") && decay) inputs.gate = by_memory_heads(g, decay, groups);
    if (rule.ends_with("delta") && beta) {
        const Shape sizes = g.shape(beta);
        inputs.rate = by_memory_heads(g, beta, !sizes.empty() && sizes.back().is(1) ? 1 : groups);
    }
    const double given = node.real("scale", 0);
    const std::int64_t width = g.fixed(g.shape(inputs.k)[3], "the width of a head");
    const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(width));
    const auto [state, rows] =
        all_steps(g, first_state(g, past, inputs), inputs, std::max(heads / groups, std::int64_t{1}));
    const Shape sizes = g.shape(rows);
    const Operand y = g.reshape(g.times(rows, scale), {sizes[0], sizes[1], sizes[2] * sizes[3]});
    return {g.cast(y, query->type), g.cast(state, past ? past->type : query->type)};
}

}  // namespace

std::span<const Operator> linear_attention_operators() {
    static const Operator kOperators[] = {
        {"LinearAttention", 27, linear_attention,
         "3..6 -> 2, chunk_size int, kv_num_heads int, q_num_heads int, scale float, update_rule string"},
        {"LinearAttention", 1, linear_attention,
         "3..6 -> 2, chunk_size int, kv_num_heads int, q_num_heads int, scale float, state_window int, "
         "update_rule string",
         kMicrosoft}};
    return kOperators;
}

}  // namespace headrace::onnx
