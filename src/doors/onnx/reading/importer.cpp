#include "doors/onnx/reading/importer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <new>

#include "base/edit_distance.h"
#include "doors/onnx/reading/channel_block.h"
#include "doors/onnx/reading/declared.h"
#include "doors/onnx/reading/fitting_extents.h"
#include "doors/onnx/reading/node_order.h"
#include "doors/onnx/reading/oldest.h"
#include "doors/onnx/reading/operators.h"
#include "doors/onnx/reading/signature.h"
#include "doors/onnx/reading/unreadable.h"

namespace headrace::onnx {
namespace {

/// Where an attribute refers to a function's parameter, that; none where the call leaves it out.
const std::pair<AttributeMessage, const Scope*>* parameter_of(const AttributeMessage& attribute,
                                                              const Scope& scope) {
    const auto found = scope.parameters.find(attribute.reference);
    return found == scope.parameters.end() ? nullptr : &found->second;
}

/// By which errors of runs and profiles name a node: where it has no name its first result's.
std::string label_of(const Node& node) {
    if (!node.name.empty()) return node.name;
    const auto found = std::ranges::find_if(node.outputs, [](const auto& name) { return !name.empty(); });
    return found == node.outputs.end() ? std::string() : std::string(*found);
}

/// A name that is read and that the node's may be a misspelling of, or none.
std::string_view nearest_operator(const Node& node) {
    std::string_view nearest;
    std::size_t least = node.op.size() / 3 + 1;
    for (const Operator* known : all_operators()) {
        if (known->domain != node.domain) continue;
        const std::size_t distance = edit_distance(node.op, known->name, least);
        if (distance >= least) continue;
        least = distance;
        nearest = known->name;
    }
    return nearest;
}

RefusedForAllExtents not_read(const Node& node) {
    if (!node.domain.empty() && node.domain != kMicrosoft && node.domain != kBlockedChannels)
        return RefusedForAllExtents(fmt::format("operators of the domain '{}' are not read", node.domain),
                                    "Export the model without them, or with their functions in the model");
    const std::string_view nearest = nearest_operator(node);
    return RefusedForAllExtents(
        "this operator is not read",
        fmt::format("docs/onnx-operators.md lists those that are{}; export the model so that it uses them, "
                    "compute this part outside the model, or run the model with ONNX Runtime",
                    nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest)));
}

RefusedForAllExtents wrong_name(const std::string& reason) {
    return RefusedForAllExtents(reason, Invalid(reason).remedy(), Code::invalid_argument);
}

Refused no_memory() {
    return Refused("there is not enough memory for what is computed while it is read",
                   "Give the process more memory, or feed what the node computes", Code::out_of_memory);
}

/// Inputs, for messages.
std::string shown_inputs(const OpWriter& g, const Node& node) {
    std::vector<std::string> shown;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const Operand& x = node.inputs[i];
        if (const Value value = node.value(i); !is_tensor(value))
            shown.emplace_back(kind_of(value));
        else
            shown.push_back(x ? fmt::format("{}{}", name_of(x->type), str(g.shape(x))) : "none");
    }
    return fmt::format("its inputs ({})", shortened_text(fmt::format("{}", fmt::join(shown, ", "))));
}

/// The operator, in sets that have it.
const Operator& operator_of(const Node& node) {
    const Operator* found = find_operator(node.domain, node.op);
    if (!found) throw not_read(node);
    if (node.domain.empty() && (node.opset < found->since || node.opset > found->until))
        throw RefusedForAllExtents("this operator is not in the operator set that the model imports",
                                   "onnx.version_converter.convert_version changes the set",
                                   Code::invalid_argument);
    return *found;
}

}  // namespace

Importer::Importer(Source& source, const OnnxOptions& options, Patience patience)
    : source_(source), options_(options), shared_(source.bytes, *this), model_graph_(shared_) {
    shared_.patience = patience;
    for (const FunctionMessage& f : source.model.functions)
        functions_.emplace(std::tuple(domain_named(f.domain), f.name, f.overload), &f);
}

Result<ImportedModel> Importer::run() {
    try {
        return read_content();
    } catch (const Unreadable& error) {
        return error.error();
    } catch (const std::bad_alloc&) {
        return failure(Code::out_of_memory, "{}: there is not enough memory to read it", source_.title);
    } catch (const std::length_error&) {
        return failure(Code::out_of_memory, "{}: there is not enough memory to read it", source_.title);
    }
}

ImportedModel Importer::read_content() {
    const GraphMessage& graph = source_.graph();
    Scope scope;
    scope.sets = &source_.model.sets;
    scope.values.emplace("", Operand());
    read_constants(graph.initializers, scope);
    refuse_sparse(graph);
    const auto has_blocks = [](const auto& of) { return of.sets.contains(kBlockedChannels); };
    if (has_blocks(source_.model) || std::ranges::any_of(source_.model.functions, has_blocks))
        shared_.channel_block = value_or_unreadable(channel_block(graph), source_.title);
    const auto inputs = value_or_unreadable(inputs_of(source_)).given;
    Interface interface(model_graph_, inputs, options_,
                        value_or_unreadable(perhaps_empty(graph), source_.title));
    for (const ValueMessage* v : inputs)
        scope.values[v->name] = said_of(fmt::format("{}: input '{}'", source_.title, v->name),
                                        [&] { return interface.input(*v); });
    said_of(source_.title, [&] { interface.check_dimensions(); });
    try {
        read_nodes(graph.nodes, scope);
    } catch (const Unreadable& error) {
        throw error.with(options_);
    }
    for (const ValueMessage& v : graph.outputs) {
        const std::string what = fmt::format("{}: output '{}'", source_.title, v.name);
        const Value* found = scope.find(v.name);
        if (!found || is_missing(*found))
            throw Unreadable(
                invalid("{} is computed by no node; remove it, or add the node that computes it", what));
        said_of(what, [&] { interface.output(v.name, *found); });
    }
    said_of(source_.title, [&] { interface.finish(); });
    return {value_or_unreadable(model_graph_.builder().finish()), interface.take_outputs(),
            interface.take_declared()};
}

void Importer::refuse_sparse(const GraphMessage& graph) const {
    for (Bytes sparse : graph.sparse_initializers)
        throw Unreadable(unsupported("{}: initializer '{}' is sparse; store it as a dense tensor",
                                     source_.title,
                                     value_or_unreadable(name_of_sparse(sparse), source_.title)));
}

void Importer::read_constants(std::span<const Bytes> tensors, Scope& scope) {
    for (Bytes bytes : tensors) {
        const TensorMessage tensor = value_or_unreadable(decode_tensor(bytes), source_.title);
        const std::string what = fmt::format("{}: initializer '{}'", source_.title, tensor.name);
        scope.values[tensor.name] = constant(tensor, what, scope);
    }
}

Operand Importer::constant(Bytes tensor, const std::string& what, const Scope& scope) {
    return constant(value_or_unreadable(decode_tensor(tensor), what), what, scope);
}

Operand Importer::constant(const TensorMessage& tensor, const std::string& what, const Scope& scope) {
    TensorElements found =
        value_or_unreadable(elements_of(tensor, source_.storage), fmt::format("{} cannot be read", what));
    const std::size_t bytes = found.data->bytes.size();
    Operand made = known(
        Elements{.shape = std::move(found.shape), .data = std::move(found.data), .items = {}}, found.type);
    if (scope.depth == 0) {
        shared_.budget.data(bytes);
        made->is_counted = true;
    }
    return made;
}

void Importer::read_nodes(std::span<const Bytes> nodes, Scope& scope) {
    const bool is_own = scope.caller.empty() && (nodes.empty() || read_.insert(nodes.front().data()).second);
    said_of(source_.title, [&] { shared_.budget.nodes(nodes.size(), scope.depth, is_own); });
    const auto is_read = [&](std::string_view name) { return scope.find(name) != nullptr; };
    std::vector<Bytes> ordered;  // once a node lies before what it reads
    for (; !nodes.empty(); nodes = nodes.subspan(1)) {
        NodeMessage message = value_or_unreadable(decode_node(nodes.front()), source_.title);
        if (ordered.empty() && !std::ranges::all_of(message.inputs, is_read)) {
            ordered = value_or_unreadable(in_order(nodes), source_.title);
            nodes = ordered;
            message = value_or_unreadable(decode_node(nodes.front()), source_.title);
        }
        const Node node = node_of(message, scope);
        graph_->label = label_of(node);
        graph_->operator_title = node.short_title();
        bind(message, node, checked_results(node, message, scope), scope);
    }
}

void Importer::bind(const NodeMessage& message, const Node& node, const Values& results, Scope& scope) {
    for (std::size_t i = 0; i < message.outputs.size(); ++i) {
        const std::string_view name = message.outputs[i];
        if (name.empty()) continue;
        const Value result = i < results.size() ? results[i] : Operand();
        if (is_missing(result))
            throw Unreadable::at(source_.title, *graph_, node, scope,
                                 Refused(fmt::format("output '{}' is not computed", name)));
        if (!scope.values.emplace(name, result).second)
            throw Unreadable::at(source_.title, *graph_, node, scope,
                                 wrong_name(fmt::format("there is a value '{}' before it already", name)));
    }
}

Node Importer::node_of(const NodeMessage& message, const Scope& scope) {
    Node node;
    node.op = message.op;
    node.domain = domain_named(message.domain);
    node.opset = scope.version(node.domain);
    node.name = message.name;
    node.outputs.assign(message.outputs.begin(), message.outputs.end());
    for (std::string_view name : message.inputs) {
        const Value* found = scope.find(name);
        if (!found)
            throw Unreadable::at(
                source_.title, *graph_, node, scope,
                wrong_name(fmt::format("input '{}' is computed by no node before it", name)));
        node.values.push_back(*found);
        node.inputs.push_back(is_tensor(*found) ? std::get<Operand>(*found) : nullptr);
    }
    if (std::ranges::all_of(node.values, &is_tensor)) node.values.clear();
    for (const AttributeMessage& attribute : message.attributes) {
        if (attribute.reference.empty()) {
            node.attributes.emplace_back(attribute.name, attribute_of(node, attribute, scope));
        } else if (const auto* parameter = parameter_of(attribute, scope)) {
            node.attributes.emplace_back(attribute.name,
                                         attribute_of(node, parameter->first, *parameter->second));
        }
    }
    return node;
}

AttributeValue Importer::attribute_of(const Node& node, const AttributeMessage& a, const Scope& scope) {
    const auto what = [&] {
        return fmt::format("{}: {}: attribute '{}'", source_.title, node.title(), a.name);
    };
    switch (a.type) {
        case AttributeMessage::kFloat: return double{a.real};
        case AttributeMessage::kInt: return a.integer;
        case AttributeMessage::kString: return valid_text(a.text);
        case AttributeMessage::kFloats: return std::vector<double>(a.reals.begin(), a.reals.end());
        case AttributeMessage::kInts: return a.integers;
        case AttributeMessage::kStrings: {
            std::vector<std::string> texts;
            for (Bytes text : a.texts) texts.push_back(valid_text(text));
            return texts;
        }
        case AttributeMessage::kTensor: return constant(a.tensor, what(), scope);
        case AttributeMessage::kGraph:
            return std::make_shared<const Branch>(
                Branch{value_or_unreadable(decode_graph(a.graph), what()), &scope});
        case AttributeMessage::kTypeProto: return value_or_unreadable(decode_type(a.type_proto), what());
        case AttributeMessage::kSparseTensor:
            throw Unreadable(unsupported("{} is a sparse tensor; store it as a dense one", what()));
        default: throw Unreadable(unsupported("{} is of the type {}, which is not read", what(), a.type));
    }
}

Values Importer::checked_results(const Node& node, const NodeMessage& message, const Scope& scope) {
    try {
        Values results = results_of(node, message, scope);
        for (const Value& x : results)
            if (is_tensor(x)) graph_->count(std::get<Operand>(x));
        return results;
    } catch (const Undecided& error) {
        throw Unreadable::at(
            source_.title, *graph_, node, scope,
            Refused(fmt::format("it depends on whether {}, which is open until the model is called",
                                error.what())));
    } catch (const Refused& error) {
        throw Unreadable::at(source_.title, *graph_, node, scope, error);
    } catch (const std::bad_alloc&) {
        throw Unreadable::at(source_.title, *graph_, node, scope, no_memory());
    } catch (const std::length_error&) {  // a list longer than any may be
        throw Unreadable::at(source_.title, *graph_, node, scope, no_memory());
    } catch (const std::logic_error& error) {  // a place in a list of dimensions that there is not
        throw Unreadable::at(
            source_.title, *graph_, node, scope,
            Invalid(fmt::format("{} do not go together ({})", shown_inputs(*graph_, node), error.what())));
    }
}

Values Importer::results_of(const Node& node, const NodeMessage& message, const Scope& scope) {
    if (const FunctionMessage* function = function_of(message))
        return called(*function, node, message, scope);
    const Operator& found = operator_of(node);
    check_signature(node, found.signature);
    if (!found.read.takes_values()) tensors_of(node.values, "input");
    return found.read(*graph_, modernized(*graph_, node));
}

const FunctionMessage* Importer::function_of(const NodeMessage& message) const {
    const auto found =
        functions_.find(std::tuple(domain_named(message.domain), message.op, message.overload));
    return found == functions_.end() ? nullptr : found->second;
}

Values Importer::called(const FunctionMessage& function, const Node& node, const NodeMessage& message,
                        const Scope& scope) {
    invalid_if(node.inputs.size() > function.inputs.size(), "function '{}' has {} inputs; the node has {}",
               function.name, function.inputs.size(), node.inputs.size());
    Scope inner;
    inner.sets = &function.sets;
    inner.values.emplace("", Operand());
    for (std::size_t i = 0; i < function.inputs.size(); ++i) inner.values[function.inputs[i]] = node.value(i);
    for (Bytes bytes : function.defaults) {
        AttributeMessage a = value_or_unreadable(decode_attribute(bytes), source_.title);
        std::string name(a.name);
        inner.parameters.insert_or_assign(std::move(name), std::pair(std::move(a), &scope));
    }
    for (const AttributeMessage& a : message.attributes) {
        if (a.reference.empty())
            inner.parameters.insert_or_assign(std::string(a.name), std::pair(a, &scope));
        else if (const auto* parameter = parameter_of(a, scope))
            inner.parameters.insert_or_assign(std::string(a.name), *parameter);
    }
    inner.caller = scope.caller.empty() ? node.title() : scope.caller;
    inner.where = fmt::format(" in function '{}', which {} calls", function.name, inner.caller);
    inner.depth = scope.depth + 1;
    if (function.sets.contains("")) {
        const Status known_set =
            check_operator_set(function.sets, fmt::format("function '{}'", function.name));
        if (!known_set.ok()) throw Refused(known_set.error().message, "", known_set.error().code);
    }
    read_nodes(function.nodes, inner);
    Values results;
    for (std::string_view name : function.outputs) {
        const Value* found = inner.find(name);
        results.push_back(found ? *found : Operand());
    }
    return results;
}

namespace {

/// Nodes that are read meanwhile become ops of that graph; also where one of them cannot be read.
class Inside {
public:
    Inside(OpWriter*& now, OpWriter& into)
        : now_(now), outer_(now), into_(into), label_(into.label), title_(into.operator_title) {
        now_ = &into;
    }
    ~Inside() {
        now_ = outer_;
        into_.label = label_;
        into_.operator_title = title_;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

private:
    OpWriter*& now_;
    OpWriter* const outer_;
    OpWriter& into_;
    const std::string label_, title_;
};

}  // namespace

Values Importer::read_branch(OpWriter& into, const Branch& branch, const Values& inputs) {
    const GraphMessage& graph = branch.graph;
    invalid_if(graph.inputs.size() != inputs.size(), "its body has {} inputs; it is given {}",
               graph.inputs.size(), inputs.size());
    Scope inner;
    inner.sets = branch.scope->sets;
    inner.outer = branch.scope;
    inner.parameters = branch.scope->parameters;
    inner.caller = branch.scope->caller;
    inner.where = branch.scope->where;
    inner.depth = branch.scope->depth + 1;
    refuse_sparse(graph);
    read_constants(graph.initializers, inner);
    for (std::size_t i = 0; i < inputs.size(); ++i) inner.values[graph.inputs[i].name] = inputs[i];
    {
        const Inside inside(graph_, into);
        read_nodes(graph.nodes, inner);
    }
    Values results;
    for (const ValueMessage& v : graph.outputs) {
        const Value* found = inner.find(v.name);
        invalid_if(!found || is_missing(*found), "its body computes no '{}'", v.name);
        results.push_back(*found);
    }
    return results;
}

Result<ImportedModel> read_model(Source& source, const OnnxOptions& options) {
    Importer patient(source, options, {});
    auto made = patient.run();
    if (made.ok() || !patient.patience().was_needed) return made;
    return Importer(source, options, {.longest = Patience::kShort}).run();
}

}  // namespace headrace::onnx
