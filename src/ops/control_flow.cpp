/// Ops whose bodies are graphs: a run goes through these, by stages (engine/staged_run.h).
#include <array>

#include "ir/graph.h"
#include "ir/kernel_error.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace headrace::ops {
namespace {

constexpr DTypeSet kTruth{DType::boolean, DType::u8};

Status check_one(const Operands& in, int i, std::string_view what) {
    if (!in.has(i)) return success();
    for (const Dim& d : in[i].shape)
        if (!same_extent(in, d, 1)) return invalid("{} is {}; it must be one element", what, in[i].str());
    return success();
}

std::string ranked(const TensorType& type) {
    return fmt::format("{} of {} dimensions", name_of(type.dtype), type.rank());
}

/// That a body takes what it is given: one of the node's operands, or a value of its own that comes back, of
/// which a symbol then has another value.
Status check_taken(std::string_view body, const Value& input, const TensorType* value, bool is_next = false) {
    if (!value) return invalid("{} takes '{}', which is missing", body, input.name);
    const TensorType& given = *value;
    const auto mismatch = [&] {
        return invalid("{} takes {} as '{}', which is {}", body, input.type.str(), input.name, given.str());
    };
    if (input.type.dtype != given.dtype || input.type.rank() != given.rank()) return mismatch();
    for (int d = 0; d < given.rank(); ++d) {
        const Dim &taken = input.type.shape[d], &extent = given.shape[d];
        const bool is_open = is_next && (taken.is_symbolic() || extent.is_symbolic());
        if (!is_open && equals(taken, extent) == Answer::no) return mismatch();
    }
    return success();
}

/// The types of a node's results: of a body's outputs, in order, with `extents` for all their extents.
class ResultTypes {
public:
    explicit ResultTypes(const Shape& extents) : extents_(extents) {}

    /// before: dimensions that a result has before those of the body's output. is_bound: whether the others
    /// are the body's, and not those of another iteration.
    Status add(const TensorType& made, int before, bool is_bound = true) {
        TensorType type{made.dtype, {}};
        for (int d = 0; d < before + made.rank(); ++d) {
            if (next_ == extents_.size()) return invalid("results has only {} extents", extents_.size());
            const Dim& extent = extents_[next_++];
            if (is_bound && d >= before && equals(extent, made.shape[d - before]) == Answer::no)
                return invalid("result {} has the extent {} in results, and {} in the body", types_.size(),
                               extent.str(), made.shape[d - before].str());
            type.shape.push_back(extent);
        }
        types_.push_back(std::move(type));
        return success();
    }

    Result<Types> take() {
        if (next_ != extents_.size())
            return invalid("results has {} extents; the body's outputs have {}", extents_.size(), next_);
        return std::move(types_);
    }

private:
    const Shape& extents_;
    std::size_t next_ = 0;
    Types types_;
};

constexpr std::string_view kResults = "extents of all results, one after the other",
                           kCounts = "the symbols among them that a run gives their values";

struct If {
    static constexpr std::string_view name = "if", summary = "the results of one graph or of another";
    static constexpr std::array operands{
        OperandRule{.name = "condition", .dtypes = kTruth},
        OperandRule{.name = "values", .dtypes = kAny, .optional = true, .mixed = true}};
    static constexpr bool variadic = true;
    static constexpr int outputs = -1;
    static constexpr Control control = Control::branch;

    struct Attrs {
        GraphPtr then_body, else_body;
        std::int64_t then_values = 0;
        Shape results, counts;
        static void fields(auto&& f) {
            f("then_body", &Attrs::then_body, "what computes the results where the condition is not 0",
              kRequired);
            f("else_body", &Attrs::else_body, "what computes them otherwise", kRequired);
            f("then_values", &Attrs::then_values,
              "how many of the values are then_body's inputs; the others are else_body's");
            f("results", &Attrs::results, kResults, kRequired);
            f("counts", &Attrs::counts, kCounts);
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_TRY(check_one(in, 0, "the condition"));
        if (!a.then_body || !a.else_body) return invalid("a body is missing");
        const Graph &yes = *a.then_body, &no = *a.else_body;
        if (a.then_values < 0 || a.then_values != static_cast<std::int64_t>(yes.inputs.size()) ||
            yes.inputs.size() + no.inputs.size() + 1 != static_cast<std::size_t>(in.size()))
            return invalid("{} values are given, {} of them to then_body; the bodies have {} and {} inputs",
                           in.size() - 1, a.then_values, yes.inputs.size(), no.inputs.size());
        if (yes.outputs.size() != no.outputs.size())
            return invalid("the bodies have {} and {} outputs; they must have as many", yes.outputs.size(),
                           no.outputs.size());
        int operand = 0;
        for (const auto& [name, body] : {std::pair("then_body", &yes), std::pair("else_body", &no)})
            for (const ValueId id : body->inputs) {
                ++operand;
                HR_TRY(check_taken(name, body->value(id), in.has(operand) ? &in[operand] : nullptr));
            }
        ResultTypes types(a.results);
        for (std::size_t i = 0; i < yes.outputs.size(); ++i) {
            const TensorType &one = yes.value(yes.outputs[i].second).type,
                             &other = no.value(no.outputs[i].second).type;
            if (one.dtype != other.dtype || one.rank() != other.rank())
                return invalid("result {} is {} of then_body, and {} of else_body; both must be alike", i,
                               ranked(one), ranked(other));
            HR_TRY(types.add(one, 0, false));
        }
        return types.take();
    }

    static void reference(const TensorArgs&, const Attrs&) {
        throw KernelError("a run has to go through it");
    }
};

struct Loop {
    static constexpr std::string_view
        name = "loop",
        summary = "a graph again and again: what it gives goes in again, or is collected";
    static constexpr std::array operands{
        OperandRule{.name = "count", .dtypes = {DType::i64}, .optional = true},
        OperandRule{.name = "condition", .dtypes = kTruth, .optional = true},
        OperandRule{.name = "values", .dtypes = kAny, .optional = true, .mixed = true}};
    static constexpr bool variadic = true;
    static constexpr int outputs = -1;
    static constexpr Control control = Control::repeat;

    struct Attrs {
        GraphPtr body;
        std::int64_t carried = 0;
        Shape results, counts;
        static void fields(auto&& f) {
            f("body", &Attrs::body,
              "takes the number of the iteration (i64), what is carried and the other values; gives whether "
              "another follows, what is carried and what is collected",
              kRequired);
            f("carried", &Attrs::carried,
              "how many of the values are carried: the body has as many outputs for the next iteration, and "
              "the last ones are results");
            f("results", &Attrs::results, kResults, kRequired);
            f("counts", &Attrs::counts, kCounts);
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        if (!a.body) return invalid("the body is missing");
        HR_TRY(check_one(in, 0, "the count"));
        HR_TRY(check_one(in, 1, "the condition"));
        HR_TRY(check_body(in, a));
        const Graph& body = *a.body;
        ResultTypes types(a.results);
        for (std::size_t i = 1; i < body.outputs.size(); ++i) {
            const bool is_carried = static_cast<std::int64_t>(i) <= a.carried;
            const TensorType& made = body.value(body.outputs[i].second).type;
            HR_TRY(types.add(made, is_carried ? 0 : 1, !is_carried));
        }
        return types.take();
    }

    static void reference(const TensorArgs&, const Attrs&) {
        throw KernelError("a run has to go through it");
    }

private:
    static Status check_body(const Operands& in, const Attrs& a) {
        const Graph& body = *a.body;
        const std::int64_t given = std::max(in.size() - 2, 0);
        if (a.carried < 0 || a.carried > given || given + 1 != static_cast<std::int64_t>(body.inputs.size()))
            return invalid(
                "{} values are given, {} of them carried; the body has {} inputs, the first for the "
                "number of the iteration",
                given, a.carried, body.inputs.size());
        if (static_cast<std::int64_t>(body.outputs.size()) < a.carried + 1)
            return invalid(
                "the body has {} outputs; it needs one for the condition, and {} for what is carried",
                body.outputs.size(), a.carried);
        const TensorType number{DType::i64, {}};
        HR_TRY(check_taken("the body", body.value(body.inputs[0]), &number));
        const TensorType& condition = body.value(body.outputs[0].second).type;
        if (!kTruth.has(condition.dtype) || condition.rank() > 1)
            return invalid("the body's condition is {}; it must be one truth value", condition.str());
        for (std::int64_t i = 0; i < given; ++i)
            HR_TRY(check_taken("the body", body.value(body.inputs[i + 1]),
                               in.has(static_cast<int>(i) + 2) ? &in[static_cast<int>(i) + 2] : nullptr));
        for (std::int64_t i = 0; i < a.carried; ++i)
            HR_TRY(check_taken("the next iteration", body.value(body.inputs[i + 1]),
                               &body.value(body.outputs[i + 1].second).type, true));
        return success();
    }
};

}  // namespace

std::span<const OpDef> control_flow_ops() { return OpList<If, Loop>::defs(); }

}  // namespace headrace::ops
