#include "ir/graph_builder.h"

#include "ir/constant.h"

#include <algorithm>
#include <cstring>

namespace headrace {

ValueId GraphBuilder::add(Value value) {
    graph_.values.push_back(std::move(value));
    return static_cast<ValueId>(graph_.values.size() - 1);
}

Status GraphBuilder::check_name(std::string_view kind, const std::string& name) const {
    if (name.empty()) return invalid("{}: the name is empty", kind);
    if (names_.contains(name)) return invalid("{}: the name '{}' is already taken", kind, name);
    return success();
}

/// A symbol that several inputs have lies in all their ranges.
void GraphBuilder::declare_symbols(Shape& shape) {
    for (const Dim& d : shape) {
        if (!d.is_symbolic() || d.expression().names() != std::vector{d.str()}) continue;
        const Range own{d.min_size(), d.max_size()};
        Range& range = ranges_.try_emplace(d.str(), own).first->second;
        const Range both{std::max(range.least, own.least), std::min(range.most, own.most)};
        if (both.least <= both.most) range = both;
    }
    const auto find = [&](const std::string& name) {
        const auto it = ranges_.find(name);
        return it == ranges_.end() ? std::nullopt : std::optional(it->second);
    };
    for (Dim& d : shape)
        if (!ranges_.contains(d.str())) d = d.with_ranges(find);
}

void GraphBuilder::add_conditions(std::vector<Condition> open, const Node& node) {
    for (Condition& condition : open) {
        if (!conditions_.insert(condition.str()).second) continue;
        condition.where = node.title();
        graph_.conditions.push_back(std::move(condition));
    }
}

Result<ValueId> GraphBuilder::input(std::string name, TensorType type) {
    HR_TRY(check_name("input", name));
    declare_symbols(type.shape);
    if (auto status = type.check(); !status.ok())
        return status.error().within(fmt::format("input '{}'", name));
    names_.insert(name);
    const ValueId id = add({.kind = ValueKind::input, .type = std::move(type), .name = std::move(name)});
    graph_.inputs.push_back(id);
    return id;
}

Result<ValueId> GraphBuilder::state(std::string name, TensorType type,
                                    std::shared_ptr<const Constant> initial) {
    HR_TRY(check_name("state", name));
    const auto where = fmt::format("state '{}'", name);
    if (auto status = type.check(); !status.ok()) return status.error().within(where);
    if (!type.is_concrete()) return invalid("{}: shape {} must be known", where, str(type.shape));
    if (initial && initial->bytes.size() != type.bytes())
        return invalid("{}: {} initial bytes, {} needs {}", where, initial->bytes.size(), type.str(),
                       type.bytes());
    names_.insert(name);
    const ValueId id = add({.kind = ValueKind::state,
                            .type = std::move(type),
                            .name = std::move(name),
                            .constant = std::move(initial)});
    graph_.states.push_back(id);
    return id;
}

Result<ValueId> GraphBuilder::constant(TensorType type, std::shared_ptr<const Constant> bytes,
                                       std::string name) {
    const auto where = name.empty() ? std::string("constant") : fmt::format("constant '{}'", name);
    if (auto status = type.check(); !status.ok()) return status.error().within(where);
    if (!type.is_concrete()) return invalid("{}: shape {} must be known", where, str(type.shape));
    if (bytes->bytes.size() != type.bytes())
        return invalid("{}: {} bytes given, {} needs {}", where, bytes->bytes.size(), type.str(),
                       type.bytes());
    if (!stays_in_place(*bytes)) {
        HR_ASSIGN(bytes, copy_constant(bytes->bytes, fmt::format("an aligned {}", where), bytes->key));
    }
    return add({.kind = ValueKind::constant,
                .type = std::move(type),
                .name = std::move(name),
                .constant = std::move(bytes)});
}

Result<ValueId> GraphBuilder::constant(TensorType type, std::span<const std::byte> bytes, std::string name) {
    HR_ASSIGN(auto copy, copy_constant(bytes, "a constant"));
    return constant(std::move(type), std::move(copy), std::move(name));
}

Result<std::vector<ValueId>> GraphBuilder::op(const OpDef& def, std::vector<ValueId> operands, AttrBox attrs,
                                              std::string label) {
    Node node{
        .op = &def, .attrs = std::move(attrs), .inputs = std::move(operands), .label = std::move(label)};
    for (ValueId id : node.inputs)
        if (id != kNoValue && (id < 0 || id >= static_cast<ValueId>(graph_.values.size())))
            return invalid("{}: operand {} is not a value of this graph", node.title(), id);
    while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
    const auto types = graph_.operand_types(node);
    std::vector<Condition> open;
    auto inferred = check_and_infer(def, Operands(types, &open), node.attrs.get());
    if (!inferred.ok()) return inferred.error().within(node.title());
    if (def.writes_state >= 0 && graph_.value(node.inputs[def.writes_state]).kind != ValueKind::state)
        return invalid("{}: operand {} must be a state", node.title(), def.rule(def.writes_state).name);
    for (std::size_t i = 0; i < inferred.value().size(); ++i)
        node.outputs.push_back(add({.type = std::move(inferred.value()[i]),
                                    .producer = static_cast<NodeId>(graph_.nodes.size()),
                                    .output_index = static_cast<std::int32_t>(i)}));
    add_conditions(std::move(open), node);
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.back().outputs;
}

Result<std::vector<ValueId>> GraphBuilder::op(const OpDef& def, std::vector<ValueId> operands,
                                              const NamedAttrs& attrs, std::string label) {
    auto box = def.make_attrs(attrs);
    if (!box.ok()) return box.error().within(Node{.op = &def, .label = label}.title());
    return op(def, std::move(operands), std::move(box).value(), std::move(label));
}

Status GraphBuilder::mark_output(std::string name, ValueId id) {
    if (name.empty()) return invalid("output: the name is empty");
    if (id < 0 || id >= static_cast<ValueId>(graph_.values.size()))
        return invalid("output '{}' is not a value of this graph", name);
    if (!output_names_.insert(name).second) return invalid("output: the name '{}' is already taken", name);
    graph_.outputs.emplace_back(std::move(name), id);
    return success();
}

void GraphBuilder::drop_constants() {
    for (Value& value : graph_.values) value.constant.reset();
}

Result<Graph> GraphBuilder::finish() {
    if (graph_.outputs.empty()) return invalid("the graph has no output; mark at least one");
    Graph done = std::move(graph_);
    graph_ = Graph{};
    names_.clear();
    output_names_.clear();
    ranges_.clear();
    conditions_.clear();
    return done;
}

}  // namespace headrace
