#include "doors/onnx/reading/bodies.h"

#include <algorithm>

namespace headrace::onnx {

Body& Body::within(OpWriter& outer) {
    auto body = std::make_shared<Body>(outer);
    outer.shared().bodies.push_back(body);
    return *body;
}

Body::Body(OpWriter& outer) : OpWriter(outer.shared()), outer_(outer) {
    label = outer.label;
    operator_title = outer.operator_title;
    dimensions = outer.dimensions;
}

ValueId Body::declare(const std::string& name, DType stored, const Shape& shape) {
    for (const Dim& d : shape) {
        if (!d.is_symbolic()) continue;
        told_by_shapes_.insert(d.text());
        if (const auto line = d.expression().line()) told_by_shapes_.insert(line->name);
    }
    return OpWriter::declare(name, stored, shape);
}

ValueId Body::capture(const Operand& x) {
    const ValueId outer = outer_.value(x);
    const auto [at, is_new] = captures_.try_emplace(outer, kNoValue);
    if (!is_new) return at->second;
    const TensorType& type = outer_.builder().type(outer);
    const std::string name = fmt::format("outer value {}", captured_.size());
    captured_.push_back(outer_.existing(outer));
    const ValueId input = declare(name, type.dtype, type.shape);
    captures_[outer] = input;
    return input;
}

std::vector<Operand> Body::ops(std::string_view name, std::vector<Operand> operands,
                               const NamedAttrs& attrs) {
    for (const auto& [key, value] : attrs) {
        const auto* shape = std::get_if<Shape>(&value);
        if (!shape) continue;
        for (const Dim& d : *shape)
            for (const std::string& symbol : d.expression().names())
                named_.emplace(symbol,
                               shared().symbols.try_emplace(symbol, Dim::symbolic(symbol, 0)).first->second);
    }
    return OpWriter::ops(name, std::move(operands), attrs);
}

GraphPtr Body::finish(const std::vector<Operand>& results) {
    for (std::size_t i = 0; i < results.size(); ++i)
        value_or_refuse(builder().mark_output(fmt::format("result {}", i),
                                              append("identity", {value(results[i])}, {}, label)));
    const std::map<std::string, Dim> named = named_;
    for (const auto& [name, extent] : named) {
        if (told_by_shapes_.contains(name) || counts.contains(name)) continue;
        const Operand none = known(std::vector<Item>(), {1, 0}, ElementType::u8);
        capture(outer_.op("expand", {none}, {{"new_shape", Shape{extent, 0}}}));
    }
    return std::make_shared<const Graph>(value_or_refuse(builder().finish()));
}

void ResultExtents::add(const std::vector<Shape>& candidates) {
    for (std::size_t i = 0; i < candidates.at(0).size(); ++i) {
        const Dim& first = candidates[0][i];
        const auto is_first = [&](const Shape& other) { return is_same(first, other.at(i)); };
        const auto is_own = [&](const std::string& name) { return own_.contains(name); };
        const bool is_one = std::ranges::all_of(candidates, is_first);
        const bool is_outer = std::ranges::none_of(first.expression().names(), is_own);
        results_.push_back(is_one && is_outer ? first : count());
    }
}

Dim ResultExtents::count() {
    counts_.push_back(outer_.counted());
    return counts_.back();
}

Operand truth_of(OpWriter& g, const Operand& x, std::string_view what) {
    const Shape sizes = g.shape(x);
    invalid_if(std::ranges::any_of(sizes, [](const Dim& d) { return !d.is_symbolic() && !d.is(1); }),
               "{} has the shape {}; it is one truth value", what, str(sizes));
    return g.reshape(g.cast(x, ElementType::boolean), {});
}

}  // namespace headrace::onnx
