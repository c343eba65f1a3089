#include "doors/onnx/ops/sequence_loops.h"

#include "doors/onnx/ops/loops.h"

namespace headrace::onnx {
namespace {

constexpr std::int64_t kMostUnrolled = 1024;
constexpr const char* kChanges =
    "what it carries is a sequence or optional that every iteration gives another form";

/// One iteration after the other. None: how many there are is not known.
std::optional<Values> unrolled(OpWriter& g, const Rounds& rounds, Values carried, const ReadRound& read) {
    const auto& number = rounds.known;
    const bool is_counted =
        number && !number->is_symbolic() && number->size() >= 1 && number->size() <= kMostUnrolled;
    if (!is_counted || (rounds.condition && !is_true(rounds.condition))) return std::nullopt;
    std::vector<std::vector<Operand>> collected;  // by result
    for (std::int64_t i = 0; i < number->size(); ++i) {
        Round made = read(g, known(i, ElementType::i64), carried);
        if (!is_true(made.goes_on)) return std::nullopt;
        carried = std::move(made.next);
        collected.resize(made.collected.size());
        for (std::size_t k = 0; k < made.collected.size(); ++k) {
            Shape wanted = g.shape(made.collected[k]);
            wanted.insert(wanted.begin(), 1);
            collected[k].push_back(g.reshape(made.collected[k], wanted));
        }
    }
    for (const std::vector<Operand>& parts : collected) carried.emplace_back(g.concat(parts, 0));
    return carried;
}

bool is_of_same_form(const ValueOf& one, const ValueOf& other) {
    if (!has_same_form(one.value, other.value)) return false;
    if (const Optional* optional = as_optional(one.value))
        return !optional->item ||
               is_of_same_form({one.g, *optional->item}, {other.g, *as_optional(other.value)->item});
    return !as_table(one.value) || rank_of(*one.g, one.value) == rank_of(*other.g, other.value);
}

/// What is carried at first, in the form that it has after an iteration, too.
Values carriable(OpWriter& g, Values initial, const ReadRound& read) {
    constexpr int kTrials = 4;
    for (int trial = 0; trial < kTrials; ++trial) {
        Body& body = Body::within(g);
        const Operand number = body.input("iteration", ElementType::i64, {});
        std::vector<Operand> inputs;
        for (const Operand& x : leaves_of(initial))
            inputs.push_back(body.input(fmt::format("carried {}", inputs.size()), x->type, g.shape(x)));
        const Values next = read(body, number, grouped(initial, inputs)).next;
        bool is_steady = true;
        for (std::size_t i = 0; i < initial.size(); ++i) {
            const Value wider = alike({&g, initial[i]}, {&body, next.at(i)}).first;
            is_steady = is_steady && is_of_same_form({&g, initial[i]}, {&g, wider});
            initial[i] = wider;
        }
        if (is_steady) return initial;
    }
    throw Refused(kChanges);
}

}  // namespace

Values repeat_values(OpWriter& g, const Rounds& rounds, const Values& initial, const ReadRound& read) {
    if (auto found = unrolled(g, rounds, initial, read)) return *std::move(found);
    return repeat_at_run_time(g, rounds, initial, read);
}

Values repeat_at_run_time(OpWriter& g, const Rounds& rounds, const Values& given, const ReadRound& read) {
    const Values initial = carriable(g, given, read);
    const auto build = [&](Body& body, const Operand& number, const std::vector<Operand>& carried) {
        const Values values = grouped(initial, carried);
        Round made = read(body, number, values);
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto [before, after] = alike({&body, values[i]}, {&body, made.next.at(i)});
            const ValueOf kept{&body, values[i]};
            refuse_if(!is_of_same_form({&body, before}, kept) || !is_of_same_form({&body, after}, kept), "{}",
                      kChanges);
            made.next[i] = after;
        }
        return Iteration{made.goes_on, leaves_of(made.next), made.collected};
    };
    const std::vector<Operand> operands = leaves_of(initial);
    const std::vector<Operand> made = repeat(g, rounds.count, rounds.condition, operands, build);
    Values results = grouped(initial, std::span(made).first(operands.size()));
    results.insert(results.end(), made.begin() + static_cast<std::ptrdiff_t>(operands.size()), made.end());
    return results;
}

}  // namespace headrace::onnx
