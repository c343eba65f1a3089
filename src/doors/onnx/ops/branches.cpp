#include "doors/onnx/ops/branches.h"

#include "doors/onnx/reading/numbers.h"
#include "doors/onnx/reading/tables.h"
#include "doors/onnx/reading/unreadable.h"

/// If: a condition that is known chooses a branch while the model is read; else a run chooses.
namespace headrace::onnx {
namespace {

struct BranchResults {
    Body* body;
    std::vector<Operand> values;
};

std::shared_ptr<const Branch> branch_of(const Node& node, std::string_view name) {
    auto branch = node.branch(name);
    invalid_if(!branch, "attribute '{}' is missing", name);
    return branch;
}

/// A scalar beside a list of one element is one, too: the ops that follow do with both.
Operand listed_beside(Body& own, const Operand& x, const Body& peer, const Operand& y) {
    const bool is_list = peer.rank(y) == 1 && is_same(peer.shape(y)[0], 1);
    return is_list && own.rank(x) == 0 ? own.reshape(x, {1}) : x;
}

void check_alike(std::size_t i, const BranchResults& one, const BranchResults& other) {
    const Operand &a = one.values[i], &b = other.values[i];
    const int own = one.body->rank(a), peer = other.body->rank(b);
    if (a->type != b->type || own != peer)
        throw Refused(
            fmt::format("result {} is {} of {} dimensions in one branch and {} of {} dimensions in the "
                        "other, and which one is known only at run time",
                        i, name_of(a->type), own, name_of(b->type), peer),
            "Where the condition comes from dimensions, fix those with dimensions={...} (--dimension "
            "NAME=N); otherwise export the model so that both branches give the same number of "
            "dimensions");
}

/// The op if.
Results chosen(OpWriter& g, const Operand& condition, BranchResults one, BranchResults other) {
    std::set<std::string> own = one.body->counts;
    own.insert(other.body->counts.begin(), other.body->counts.end());
    ResultExtents extents(g, own);
    for (std::size_t i = 0; i < one.values.size(); ++i) {
        const Operand a = listed_beside(*one.body, one.values[i], *other.body, other.values[i]);
        other.values[i] = listed_beside(*other.body, other.values[i], *one.body, one.values[i]);
        one.values[i] = a;
        check_alike(i, one, other);
        extents.add({one.body->shape(a), other.body->shape(other.values[i])});
    }
    const GraphPtr then_body = one.body->finish(one.values), else_body = other.body->finish(other.values);
    std::vector<Operand> operands{condition};
    for (const BranchResults* side : {&one, &other})
        operands.insert(operands.end(), side->body->captured().begin(), side->body->captured().end());
    Results made = g.ops("if", operands,
                         {{"then_body", then_body},
                          {"else_body", else_body},
                          {"then_values", static_cast<std::int64_t>(one.body->captured().size())},
                          {"results", extents.results()},
                          {"counts", extents.counts()}});
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = g.retyped(made[i], one.values[i]->type);
    return made;
}

/// The results of one branch, where the other one cannot be read: a run that would take that fails.
Values one_branch(OpWriter& g, const Node& node, const Operand& condition, bool is_then,
                  const Unreadable& why) {
    const std::string_view name = is_then ? "then_branch" : "else_branch";
    const std::string what =
        fmt::format("the condition, where the model's other branch cannot be computed ({}),", why.what());
    const std::int64_t least = is_then ? 1 : 0, most = is_then ? 255 : 0;  // any truth is not 0
    const Operand numbers = g.cast(condition, ElementType::i64);
    const Operand checked = checked_numbers(g, numbers, what, least, Dim(most));
    const Operand truth = truth_of(g, checked, "the condition");
    const Values made = g.shared().branches.read_branch(g, *branch_of(node, name), {});
    Results tensors = leaves_of(made);
    for (Operand& tensor : tensors) {
        const ElementType type = tensor->type;
        tensor = g.retyped(g.op("where", {truth, tensor, tensor}), type);
    }
    return grouped(made, tensors);
}

Values if_(OpWriter& g, const Node& node) {
    BranchReader& reader = g.shared().branches;
    const Operand given = node.x();
    if (given->has_numbers()) {
        invalid_if(given->known->count() != 1, "the condition has {} elements, not one",
                   given->known->count());
        return reader.read_branch(g, *branch_of(node, given->integer(0) != 0 ? "then_branch" : "else_branch"),
                                  {});
    }
    const Operand condition = truth_of(g, given, "the condition");
    Body &yes = Body::within(g), &no = Body::within(g);
    Values one, other;
    std::string_view now = "then_branch";
    try {
        one = reader.read_branch(yes, *branch_of(node, now), {});
        now = "else_branch";
        other = reader.read_branch(no, *branch_of(node, now), {});
    } catch (const Unreadable& why) {
        if (!g.dimensions.empty()) throw;  // knowing them may be of help
        return one_branch(g, node, condition, now == "else_branch", why);
    }
    invalid_if(one.size() != other.size(), "the branches have {} and {} results; they must have as many",
               one.size(), other.size());
    for (std::size_t i = 0; i < one.size(); ++i)
        std::tie(one[i], other[i]) = alike({&yes, one[i]}, {&no, other[i]});
    return grouped(one, chosen(g, condition, {&yes, leaves_of(one)}, {&no, leaves_of(other)}));
}

}  // namespace

Results one_of(OpWriter& g, const Operand& condition, const BuildBranch& yes, const BuildBranch& no) {
    Body &one = Body::within(g), &other = Body::within(g);
    const Results of_one = yes(one), of_other = no(other);
    return chosen(g, truth_of(g, condition, "the condition"), {&one, of_one}, {&other, of_other});
}

std::span<const Operator> branches_operators() {
    static const Operator kOperators[] = {{"If", 1, if_, "1 -> 1.., else_branch graph, then_branch graph"}};
    return kOperators;
}

}  // namespace headrace::onnx
