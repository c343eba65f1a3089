#include "doors/onnx/reading/fitting_extents.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace headrace::onnx {
namespace {

/// Each open extent with `number` for all names; none where that is no extent.
std::optional<TensorType> with_number(const TensorType& type, std::int64_t number) {
    TensorType closed = type;
    for (Dim& dim : closed.shape) {
        const auto extent =
            dim.number([&](const std::string&) -> std::optional<Expression> { return Expression(number); });
        if (!extent || *extent < 0) return std::nullopt;
        dim = Dim(*extent);
    }
    return closed;
}

bool fits(const OpDef& op, const AttrBox& attrs, std::span<const TensorType* const> operands,
          std::int64_t number) {
    std::vector<TensorType> closed(operands.size());
    std::vector<const TensorType*> given(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
        if (!operands[i]) continue;
        auto type = with_number(*operands[i], number);
        if (!type) return false;
        closed[i] = *std::move(type);
        given[i] = &closed[i];
    }
    return check_and_infer(op, Operands(given), attrs.get()).ok();
}

bool may_fit(const OpDef& op, const AttrBox& attrs, std::span<const TensorType* const> operands) {
    if (operands.size() < 2) return true;
    std::set<std::int64_t> numbers{1};
    for (const TensorType* type : operands) {
        if (!type) continue;
        for (const Dim& dim : type->shape)
            if (!dim.is_symbolic()) numbers.insert(dim.size());
    }
    return std::ranges::any_of(numbers, [&](std::int64_t n) { return fits(op, attrs, operands, n); });
}

}  // namespace

void refuse_operands(const OpDef& op, const AttrBox& attrs, std::span<const TensorType* const> operands,
                     const Error& error) {
    if (may_fit(op, attrs, operands)) throw Refused(error.message, Refused::kOtherwise, error.code);
    throw RefusedForAllExtents(error.message, Refused::kOtherwise, error.code);
}

}  // namespace headrace::onnx
