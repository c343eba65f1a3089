#include "cli/commands.h"
#include "ops/catalog.h"

namespace headrace::cli {
namespace {

std::string ranks(const OperandRule& rule) {
    if (rule.min_rank == 0 && rule.max_rank == kMaxRank) return "any rank";
    if (rule.min_rank == rule.max_rank) return fmt::format("rank {}", rule.min_rank);
    return fmt::format("rank {} to {}", rule.min_rank, rule.max_rank);
}

std::string implementations(const OpDef& op) {
    std::string text = "reference";
    if (op.lower) text += ", ggml";
    for (const KernelDef& kernel : op.kernels) text += fmt::format(", {}", kernel.name);
    return text;
}

void describe_op(const OpDef& op) {
    fmt::print("## {}\n\n{}\n\n", op.name, op.summary);
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const OperandRule& rule = op.operands[i];
        const bool repeats = op.variadic && i + 1 == op.operands.size();
        fmt::print("- operand `{}`{}{}: {}; {}\n", rule.name, rule.optional ? ", optional" : "",
                   repeats ? ", one or more" : "", ranks(rule), rule.dtypes.str());
    }
    for (const Field& field : op.fields) {
        fmt::print("- attribute `{}` ({}{}): {}", field.name, name_of(field.kind),
                   field.required ? ", required" : ", default " + text_of(field.default_value), field.doc);
        if (!field.choices.empty()) fmt::print("; {}", fmt::join(field.choices, ", "));
        fmt::print("\n");
    }
    fmt::print("- runs as: {}\n\n", implementations(op));
}

}  // namespace

Status list_ops() {
    for (const OpDef* op : all_ops()) describe_op(*op);
    return success();
}

}  // namespace headrace::cli
