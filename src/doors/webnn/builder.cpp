#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/small_letters.h"
#include "doors/webnn/op_rules.h"
#include "doors/webnn/state.h"
#include "ir/constant.h"
#include "ops/catalog.h"

namespace headrace::webnn {
namespace {

/// The builder for one call.
[[nodiscard]] std::unique_lock<std::mutex> open(BuilderState& state, std::string_view what) {
    state.context->checkLive(what);
    std::unique_lock lock(state.mutex);
    if (state.built)
        fail(failure(Code::invalid_state, "{}: this builder has already built its graph; create a new one",
                     what));
    return lock;
}

template <class T>
std::vector<std::byte> bytes_as(const Number& value) {
    T element;
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
        element = T(number_as<float>(value));
    else
        element = number_as<T>(value);
    std::vector<std::byte> bytes(sizeof(T));
    std::memcpy(bytes.data(), &element, sizeof(T));
    return bytes;
}

/// As a caller of the API adds it.
Result<std::vector<ValueId>> add_by_rules(GraphBuilder& builder, const OpDef& def,
                                          std::vector<ValueId> operands, const NamedAttrs& attrs,
                                          const std::string& label) {
    if (const Status ruled = check_rules(builder, def, operands, attrs); !ruled.ok())
        return ruled.error().within(Node{.op = &def, .label = label}.title());
    return add_op(builder, def, std::move(operands), attrs, label);
}

}  // namespace

std::string snake_case(std::string_view name) {
    std::string text;
    for (char c : name) {
        if (c >= 'A' && c <= 'Z') text += '_';
        text += small_letter(c);
    }
    return text;
}

std::vector<std::byte> scalar_bytes(DType type, const Number& value) {
    if (bits_of(type) == 4) return {static_cast<std::byte>((number_as<std::int64_t>(value) & 0xF) * 0x11)};
    return visit_dtype(type, [&]<class T>() { return bytes_as<T>(value); });
}

Result<std::vector<ValueId>> add_op(GraphBuilder& builder, const OpDef& def, std::vector<ValueId> operands,
                                    const NamedAttrs& attrs, const std::string& label) {
    const auto title = [&] { return Node{.op = &def, .label = label}.title(); };
    // The catalog takes more dtypes than WebNN has and names them in its own way.
    for (std::size_t i = 0; i < operands.size() && i < def.operands.size(); ++i) {
        if (operands[i] == kNoValue) continue;
        const TensorType& type = builder.type(operands[i]);
        if (def.operands[i].dtypes.has(type.dtype)) continue;
        return invalid("{}: operand {} is {}{}, allowed data types: {}", title(), def.operands[i].name,
                       data_type_name(type.dtype), str(type.shape), data_type_names(def.operands[i].dtypes));
    }
    HR_ASSIGN(auto results, builder.op(def, std::move(operands), attrs, label));
    for (ValueId id : results)
        for (const Dim& d : builder.type(id).shape)
            if (d.is(0)) return invalid("{}: the result {} would be empty", title(), builder.type(id).str());
    return results;
}

DType MLOperand::dataType() const {
    const std::lock_guard lock(builder_->mutex);
    return builder_->builder.type(id_).dtype;
}

std::vector<MLDimension> MLOperand::shape() const {
    const std::lock_guard lock(builder_->mutex);
    return to_extents(builder_->builder.type(id_).shape);
}

std::string MLOperand::name() const {
    const std::lock_guard lock(builder_->mutex);
    return builder_->builder.graph().value(id_).name;
}

MLGraphBuilder::MLGraphBuilder(const MLContext& context) : state_(std::make_shared<BuilderState>()) {
    context.checkLive("create_graph_builder");
    state_->context = context;
}

MLOperand MLGraphBuilder::input(const std::string& name, const MLOperandDescriptor& descriptor) {
    const auto lock = open(*state_, "input");
    const auto what = fmt::format("input '{}'", name);
    return {state_, built(state_->builder.input(name, to_type(descriptor, what)), "")};
}

MLOperand MLGraphBuilder::constant(const MLOperandDescriptor& descriptor, const void* data, std::size_t bytes,
                                   const std::string& name) {
    const auto lock = open(*state_, "constant");
    const std::span view(static_cast<const std::byte*>(data), bytes);
    return {state_, built(state_->builder.constant(to_type(descriptor, "constant"), view, name), "")};
}

MLOperand MLGraphBuilder::constant(const MLOperandDescriptor& descriptor, std::shared_ptr<const void> owner,
                                   const void* data, std::size_t bytes, const std::string& name) {
    const auto lock = open(*state_, "constant");
    auto held = std::make_shared<Constant>(
        Constant{.bytes = {static_cast<const std::byte*>(data), bytes}, .owner = std::move(owner)});
    return {state_,
            built(state_->builder.constant(to_type(descriptor, "constant"), std::move(held), name), "")};
}

MLOperand MLGraphBuilder::constant(const MLTensor& tensor) {
    const MLTensorDescriptor& descriptor = tensor.state()->descriptor;
    if (!descriptor.constant)
        fail(invalid("constant: the tensor may change; make it with createConstantTensor"));
    auto memory = tensor.state()->live("constant");
    const std::byte* data = memory->host();
    return constant({descriptor.dataType, {descriptor.shape.begin(), descriptor.shape.end()}},
                    std::move(memory), data, tensor.bytes());
}

MLOperand MLGraphBuilder::constant(DType type, std::variant<std::int64_t, std::uint64_t, double> value) {
    const std::vector<std::byte> bytes = scalar_bytes(type, value);
    return constant({type, {}}, bytes.data(), bytes.size());
}

std::vector<MLOperand> MLGraphBuilder::op(const std::string& name, std::span<const MLOperand> operands,
                                          const MLOptions& options, const std::string& label) {
    const std::string title = label.empty() ? name : fmt::format("{} ({})", name, label);
    const auto lock = open(*state_, title);
    const OpDef* def = find_row(name).op;
    if (!def) def = find_extension(name);
    if (!def) fail(invalid("there is no WebNN operator '{}'", name));
    std::vector<ValueId> ids;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        if (operands[i] && operands[i].builder_ != state_)
            fail(invalid("{}: operand {} belongs to another builder", title,
                         def->rule(static_cast<int>(i)).name));
        ids.push_back(operands[i] ? operands[i].id_ : kNoValue);
    }
    NamedAttrs attrs;
    for (const auto& [key, value] : options) attrs.emplace_back(snake_case(key), to_attr_value(value));
    std::vector<MLOperand> results;
    for (ValueId id : built(add_by_rules(state_->builder, *def, std::move(ids), attrs, label), title))
        results.push_back({state_, id});
    return results;
}

MLOperand MLGraphBuilder::state(const std::string& name, const MLOperandDescriptor& descriptor,
                                const void* data, std::size_t bytes) {
    const auto lock = open(*state_, "state");
    const TensorType type = to_type(descriptor, fmt::format("state '{}'", name));
    std::shared_ptr<const Constant> initial;
    if (data) {
        const std::span view(static_cast<const std::byte*>(data), bytes);
        initial = value_or_throw(copy_constant(view, fmt::format("state '{}'", name)));
    }
    return {state_, built(state_->builder.state(name, type, std::move(initial)), "")};
}

namespace {

using Outputs = std::map<std::string, MLOperand>;

void check_kind(const std::string& name, const Value& value) {
    if (value.kind == ValueKind::input || value.kind == ValueKind::constant)
        fail(invalid(
            "build: output '{}' is an input or a constant, not the result of an operator; identity() makes "
            "an output of it",
            name));
}

using Names = std::set<std::string, std::less<>>;

/// The symbols that have values once the extents of a shape have.
Names names_told_by(const Shape& shape) {
    Names names;
    for (const Dim& d : shape) {
        if (!d.is_symbolic()) continue;
        names.insert(d.str());
        if (const auto line = d.expression().line()) names.insert(line->name);
    }
    return names;
}

/// Marks the inputs that nobody reads but that alone tell an extent of what the kept nodes make.
class ExtentKeeper {
public:
    ExtentKeeper(const Graph& graph, std::vector<bool>& is_needed) : graph_(graph), is_needed_(is_needed) {
        for (const ValueId id : graph.inputs)
            if (is_needed[id]) told_.merge(names_told_by(graph.value(id).type.shape));
    }

    void keep(const Dim& d) {
        if (!d.is_symbolic() || tells(d.str())) return;
        for (const std::string& name : d.expression().names()) tells(name);
    }

private:
    bool tells(const std::string& name) {
        if (told_.contains(name)) return true;
        for (const ValueId id : graph_.inputs) {
            auto names = names_told_by(graph_.value(id).type.shape);
            if (!names.contains(name)) continue;
            is_needed_[id] = true;
            told_.merge(std::move(names));
            return true;
        }
        return false;
    }

    const Graph& graph_;
    std::vector<bool>& is_needed_;
    Names told_;
};

void keep_extents(const Graph& graph, const std::vector<bool>& keep, std::vector<bool>& is_needed) {
    ExtentKeeper keeper(graph, is_needed);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        for (const ValueId id : graph.nodes[i].outputs)
            if (keep[i])
                for (const Dim& d : graph.value(id).type.shape) keeper.keep(d);
    for (const Condition& condition : graph.conditions) {
        keeper.keep(condition.left);
        keeper.keep(condition.right);
    }
}

/// Leaves the nodes that the outputs need and those from `first` on that write a state.
void keep_needed(Graph& graph, std::size_t first) {
    std::vector<bool> is_needed(graph.values.size()), keep(graph.nodes.size());
    for (const auto& [name, id] : graph.outputs) is_needed[id] = true;
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {  // readers come after what they read
        const Node& node = graph.nodes[i];
        keep[i] = (i >= first && !node.op->is_pure()) ||
                  std::ranges::any_of(node.outputs, [&](ValueId id) { return is_needed[id]; });
        if (!keep[i]) continue;
        for (const ValueId id : node.inputs)
            if (id != kNoValue) is_needed[id] = true;
    }
    graph.conditions = conditions_of(graph, keep);
    keep_extents(graph, keep, is_needed);
    std::erase_if(graph.inputs, [&](ValueId id) { return !is_needed[id]; });
    std::erase_if(graph.states, [&](ValueId id) { return !is_needed[id]; });
    graph.compact(keep);
}

}  // namespace

std::shared_ptr<const Graph> MLGraphBuilder::finish(const Outputs& outputs) {
    const auto lock = open(*state_, "build");
    auto graph = std::make_shared<const Graph>(graph_of(outputs));
    state_->built = true;
    state_->builder.drop_constants();  // operands still tell what they are
    return graph;
}

Graph MLGraphBuilder::graph_of(const Outputs& outputs) const {
    if (outputs.empty()) fail(invalid("build: no outputs given; name at least one operand"));
    for (const auto& [name, operand] : outputs) {
        if (!operand || operand.builder_ != state_)
            fail(invalid("build: output '{}' belongs to another builder", name));
        check_kind(name, state_->builder.graph().value(operand.id_));
    }
    GraphBuilder copy = state_->builder;
    for (const auto& [name, operand] : outputs) value_or_throw(copy.mark_output(name, operand.id_));
    return value_or_throw(copy.finish());
}

MLGraph MLGraphBuilder::build(const Outputs& outputs) {
    return make_graph(finish(outputs), state_->context->compileOptions(), state_->context->state_.get());
}

MLGraph MLGraphBuilder::buildNext(const Outputs& outputs) {
    auto graph = std::make_shared<Graph>();
    Names unread;
    std::size_t nodes = 0;
    {
        const auto lock = open(*state_, "build");
        *graph = graph_of(outputs);
        for (const ValueId id : graph->inputs) unread.insert(graph->value(id).name);
        nodes = graph->nodes.size();
        keep_needed(*graph, state_->first_node);
        for (const ValueId id : graph->inputs) unread.erase(graph->value(id).name);
    }
    MLGraph made =
        make_graph(std::move(graph), state_->context->compileOptions(), state_->context->state_.get());
    made.state()->unread = std::move(unread);
    const std::lock_guard lock(state_->mutex);
    state_->first_node = nodes;
    return made;
}

}  // namespace headrace::webnn
