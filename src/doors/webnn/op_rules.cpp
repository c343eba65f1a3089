#include "doors/webnn/op_rules.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "ir/op_def.h"

namespace headrace::webnn {
namespace {

/// A call of an operator: its operands' types and its options.
struct RuledCall {
    const OpDef& def;
    Operands operands;
    const NamedAttrs& attrs;

    bool has_two() const { return operands.has(0) && operands.has(1); }
    const AttrValue* option(std::string_view name) const {
        const auto at = std::ranges::find(attrs, name, &NamedAttrs::value_type::first);
        return at == attrs.end() || std::holds_alternative<std::monostate>(at->second) ? nullptr
                                                                                       : &at->second;
    }
    /// What the op infers with this option in place of another.
    Result<TensorType> result_with(std::string_view without, std::string_view name, AttrValue value) const {
        NamedAttrs changed;
        for (const auto& attr : attrs)
            if (attr.first != without && attr.first != name) changed.push_back(attr);
        changed.emplace_back(name, std::move(value));
        HR_ASSIGN(const AttrBox box, def.make_attrs(changed));
        HR_ASSIGN(const auto types, check_and_infer(def, operands, box.get()));
        return types[0];
    }
};

bool surely_differ(const Dim& a, const Dim& b) {
    return !a.is_symbolic() && !b.is_symbolic() && a.size() != b.size();
}

/// Indices have the input's extents but along the axis.
Status check_element_extents(const RuledCall& call) {
    const AttrValue* given = call.option("axis");
    const auto* number = given ? std::get_if<std::int64_t>(given) : nullptr;
    if (!call.has_two() || (given && !number)) return success();  // the op refuses it
    const TensorType &input = call.operands[0], &indices = call.operands[1];
    if (input.rank() != indices.rank()) return success();  // and this
    std::int64_t axis = number ? *number : 0;
    if (axis < 0) axis += input.rank();
    for (int d = 0; d < input.rank(); ++d)
        if (d != axis && surely_differ(input.shape[d], indices.shape[d]))
            return invalid("indices {} must have the extents of input {} but along axis {}", indices.str(),
                           input.str(), axis);
    return success();
}

/// Both of output_sizes are rounded down, or both up.
Status check_output_sizes(const RuledCall& call) {
    const AttrValue* sizes = call.option("output_sizes");
    if (!sizes) return success();
    const auto wanted = call.result_with("output_shape_rounding", "output_sizes", *sizes);
    const auto down = call.result_with("output_sizes", "output_shape_rounding", std::string("floor"));
    const auto up = call.result_with("output_sizes", "output_shape_rounding", std::string("ceil"));
    if (!wanted.ok() || !down.ok() || !up.ok()) return success();  // the op refuses it
    const auto is = [&](const TensorType& rounded) {
        return std::ranges::equal(wanted.value().shape, rounded.shape, std::not_fn(surely_differ));
    };
    if (is(down.value()) || is(up.value())) return success();
    return invalid("output_sizes give the output {}; it must be {}, rounded down, or {}, rounded up",
                   str(wanted.value().shape), str(down.value().shape), str(up.value().shape));
}

/// Blocks are those of each of the input's dimensions.
Status check_scale_rank(const RuledCall& call) {
    if (!call.has_two() || call.operands[1].rank() == call.operands[0].rank()) return success();
    return invalid("scale {} must have the rank of input {}, {}", call.operands[1].str(),
                   call.operands[0].str(), call.operands[0].rank());
}

struct Rule {
    std::string_view op;
    Status (*check)(const RuledCall& call);
};
/// dequantize_linear is not here: the conformance cases have scales of fewer dimensions, which are added in
/// front.
constexpr Rule kRules[] = {
    {"average_pool2d", &check_output_sizes},      {"l2_pool2d", &check_output_sizes},
    {"max_pool2d", &check_output_sizes},          {"gather_elements", &check_element_extents},
    {"scatter_elements", &check_element_extents}, {"quantize_linear", &check_scale_rank},
};

}  // namespace

Status check_rules(const GraphBuilder& builder, const OpDef& def, std::span<const ValueId> operands,
                   const NamedAttrs& attrs) {
    const auto rule = std::ranges::find(kRules, def.name, &Rule::op);
    if (rule == std::end(kRules)) return success();
    std::vector<const TensorType*> types;
    for (const ValueId id : operands) types.push_back(id == kNoValue ? nullptr : &builder.type(id));
    return rule->check({def, Operands(types), attrs});
}

}  // namespace headrace::webnn
