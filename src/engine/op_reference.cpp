#include "headrace/headrace.h"
#include "ops/catalog.h"

namespace headrace {
namespace {

std::string ranks(const OperandRule& rule) {
    if (rule.min_rank == 0 && rule.max_rank == kMaxRank) return "any rank";
    if (rule.min_rank == rule.max_rank) return fmt::format("rank {}", rule.min_rank);
    return fmt::format("rank {} to {}", rule.min_rank, rule.max_rank);
}

std::string describe_operand(const OperandRule& rule, bool repeats) {
    return fmt::format("- operand `{}`{}{}: {}; {}\n", rule.name, rule.optional ? ", optional" : "",
                       repeats ? ", one or more" : "", ranks(rule), rule.dtypes.str());
}

std::string describe_field(const Field& field) {
    std::string text =
        fmt::format("- attribute `{}` ({}{}): {}", field.name, name_of(field.kind),
                    field.required ? ", required" : ", default " + text_of(field.default_value), field.doc);
    if (!field.choices.empty()) text += fmt::format("; {}", fmt::join(field.choices, ", "));
    return text + "\n";
}

std::string describe_op(const OpDef& op) {
    std::string text = fmt::format("## {}\n\n{}\n\n", op.name, op.summary);
    for (std::size_t i = 0; i < op.operands.size(); ++i)
        text += describe_operand(op.operands[i], op.variadic && i + 1 == op.operands.size());
    for (const Field& field : op.fields) text += describe_field(field);
    text += "- runs as: reference";
    if (op.lower) text += ", ggml";
    for (const KernelDef& kernel : op.kernels) text += fmt::format(", {}", kernel.name);
    return text + "\n\n";
}

}  // namespace

std::string op_reference() {
    std::string text = "# Ops\n\n";
    for (const OpDef* op : all_ops()) text += describe_op(*op);
    return text;
}

}  // namespace headrace
