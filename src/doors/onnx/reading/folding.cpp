#include "doors/onnx/reading/folding.h"

#include <algorithm>
#include <cstring>

#include "doors/onnx/reading/fold_items.h"
#include "doors/onnx/reading/reference.h"
#include "doors/onnx/reading/refused.h"
#include "ops/op_name.h"

namespace headrace::onnx {
namespace {

constexpr double kMostWork = 1 << 22;                    // operations of one call
constexpr std::int64_t kMostResults = 64 * kMostFolded;  // of results, which may be more than the operands

bool is_few(std::span<const Operand> operands) {
    std::int64_t count = 0;
    for (const Operand& x : operands)
        if (x) count += x->known->count();
    return count <= kMostFolded;
}

/// Few operands may ask for much work, which the compiler does once and at run time's speed.
bool is_much_work(const KnownCall& call, std::span<const ReferenceOperand> operands) {
    if (!call.op.cost) return false;
    std::vector<const TensorType*> types;
    for (const ReferenceOperand& x : operands) types.push_back(x.bytes ? &x.type : nullptr);
    const std::vector<TensorType> results = inferred(call.op, call.box, operands);
    if (!std::ranges::all_of(results, &TensorType::is_concrete)) return true;
    return call.op.cost(Operands(types), results, call.box.get()).flops > kMostWork;
}

/// Attributes with extents that only a call knows decide then.
bool has_open_extents(const NamedAttrs& attrs) {
    return std::ranges::any_of(attrs, [](const auto& entry) {
        const auto* shape = std::get_if<Shape>(&entry.second);
        return shape && std::ranges::any_of(*shape, &Dim::is_symbolic);
    });
}

}  // namespace

std::optional<std::vector<Folded>> folded(const KnownCall& call) {
    // Weights keep their bytes, with which passes multiply.
    if (is(call.op, "dequantize_linear") && call.operands[0]->known->count() > 1) return std::nullopt;
    const bool is_foldable = call.op.is_pure() && call.op.control == Control::none && !call.op.count &&
                             !has_open_extents(call.attrs);
    if (!is_foldable || call.operands.empty() || !is_few(call.operands)) return std::nullopt;
    if (std::ranges::any_of(call.operands, [](const Operand& x) { return x && !x->has_numbers(); }))
        return folded_items(call);
    std::vector<ReferenceOperand> operands;
    for (const Operand& x : call.operands) {
        operands.emplace_back();
        if (x) operands.back() = {stored_type(x), x->known->data->bytes};
    }
    if (is_much_work(call, operands)) return std::nullopt;
    return by_reference(call.op, call.box, operands, kMostResults);
}

}  // namespace headrace::onnx
