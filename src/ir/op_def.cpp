#include "ir/op_def.h"

namespace headrace {
namespace {

Status check_arity(const OpDef& op, int given) {
    int required = 0;
    for (std::size_t i = 0; i < op.operands.size(); ++i)
        if (!op.operands[i].optional) required = static_cast<int>(i) + 1;
    const int most = op.variadic ? INT32_MAX : static_cast<int>(op.operands.size());
    if (op.variadic && given == 0) return invalid("{} is empty; give an operand at least", op.rule(0).name);
    if (given < required) return invalid("{} operands given, at least {} needed", given, required);
    if (given > most) return invalid("{} operands given, at most {} taken", given, most);
    return success();
}

Status check_operand(const OpDef& op, const Operands& in, int i) {
    const OperandRule& rule = op.rule(i);
    if (!in.has(i)) {
        if (rule.optional) return success();
        return invalid("operand {} is missing", rule.name);
    }
    const TensorType& type = in[i];
    if (!rule.dtypes.has(type.dtype))
        return invalid("operand {} is {}, allowed dtypes: {}", rule.name, type.str(), rule.dtypes.str());
    if (type.format != BlockFormat::plain && !rule.blocks)
        return invalid("operand {} is {}, but this op reads plain elements", rule.name, type.str());
    if (type.rank() < rule.min_rank || type.rank() > rule.max_rank) {
        const std::string_view title = rule.title.empty() ? rule.name : rule.title;
        if (rule.min_rank == rule.max_rank)
            return invalid("{} must be {}D, got rank {} ({})", title, rule.min_rank, type.rank(), type.str());
        return invalid("{} must have rank {} to {}, got rank {} ({})", title, rule.min_rank, rule.max_rank,
                       type.rank(), type.str());
    }
    int peer = rule.same_dtype_as;
    if (op.variadic && !rule.mixed && i >= static_cast<int>(op.operands.size()) && peer < 0)
        peer = static_cast<int>(op.operands.size()) - 1;
    if (peer >= 0 && in.has(peer) && in[peer].dtype != type.dtype)
        return invalid("operand {} is {} but {} is {}; they must have the same dtype", rule.name,
                       name_of(type.dtype), op.rule(peer).name, name_of(in[peer].dtype));
    return success();
}

}  // namespace

Result<std::vector<TensorType>> check_and_infer(const OpDef& op, const Operands& in, const void* attrs) {
    HR_TRY(check_arity(op, in.size()));
    const int n = std::max<int>(in.size(), static_cast<int>(op.operands.size()));
    for (int i = 0; i < n; ++i) HR_TRY(check_operand(op, in, i));
    HR_ASSIGN(auto types, op.infer(in, attrs));
    for (const TensorType& type : types) HR_TRY(type.check());
    return types;
}

}  // namespace headrace
