#include "doors/onnx/reading/interface.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "doors/onnx/reading/declared.h"

namespace headrace::onnx {
namespace {

/// Whether a node joins an input along that axis, or cuts it apart there.
bool joins(const NodeMessage& node, std::string_view input, std::int64_t axis, std::int64_t rank) {
    if (node.op == "Shape") return true;
    const auto at = std::ranges::find(node.inputs, input) - node.inputs.begin();
    if (node.op == "Attention") return axis == 2 && (at == 4 || at == 5);  // past keys and values
    if (node.op == "MultiHeadAttention") return axis == 2 && (at == 6 || at == 7);
    if (node.op != "Concat" && node.op != "SplitToSequence") return false;
    std::int64_t own = 0;
    for (const AttributeMessage& a : node.attributes)
        if (a.name == "axis") own = a.integer;
    return rank > 0 && (own % rank + rank) % rank == axis;
}

using NamedInputs = std::unordered_map<std::string_view, const ValueMessage*>;
using InputDimensions = std::set<std::pair<std::string_view, std::size_t>>;

/// Dimensions of inputs that nodes join, and those that they read otherwise.
struct InputReaders {
    InputDimensions joined, other;

    bool has(std::string_view input) const {
        const auto is_in = [&](const InputDimensions& dimensions) {
            const auto at = dimensions.lower_bound({input, 0});
            return at != dimensions.end() && at->first == input;
        };
        return is_in(joined) || is_in(other);
    }
    void add(const InputReaders& more) {
        joined.insert(more.joined.begin(), more.joined.end());
        other.insert(more.other.begin(), more.other.end());
    }
};

/// What one branch of a condition alone reads is not there for the other one: a decoder's past before its
/// first step.
InputReaders of_branches(const std::vector<InputReaders>& branches) {
    InputReaders all;
    for (std::size_t i = 0; i < branches.size(); ++i) {
        const auto is_shared = [&](const auto& dimension) {
            for (std::size_t k = 0; k < branches.size(); ++k)
                if (k != i && branches[k].has(dimension.first)) return true;
            return false;
        };
        all.joined.insert(branches[i].joined.begin(), branches[i].joined.end());
        for (const auto& dimension : branches[i].other)
            (is_shared(dimension) ? all.other : all.joined).insert(dimension);
    }
    return all;
}

/// Deeper bodies are refused when their nodes are read.
constexpr int kMostReadDepth = 64;

Result<InputReaders> readers_of(const GraphMessage& graph, const NamedInputs& inputs, int depth) {
    InputReaders all;
    if (depth > kMostReadDepth) return all;
    for (Bytes bytes : graph.nodes) {
        HR_ASSIGN(const NodeMessage node, decode_node(bytes));
        for (std::string_view name : node.inputs) {
            const auto at = inputs.find(name);
            if (at == inputs.end()) continue;
            const auto rank = static_cast<std::int64_t>(at->second->type.shape.size());
            for (std::int64_t axis = 0; axis < rank; ++axis)
                (joins(node, name, axis, rank) ? all.joined : all.other)
                    .emplace(name, static_cast<std::size_t>(axis));
        }
        std::vector<InputReaders> bodies;
        for (const AttributeMessage& attribute : node.attributes) {
            if (attribute.graph.empty()) continue;
            HR_ASSIGN(const GraphMessage body, decode_graph(attribute.graph));
            HR_ASSIGN(InputReaders readers, readers_of(body, inputs, depth + 1));
            bodies.push_back(std::move(readers));
        }
        if (node.op == "If") bodies = {of_branches(bodies)};
        for (const InputReaders& readers : bodies) all.add(readers);
    }
    return all;
}

std::string trimmed(std::string_view text) {
    const auto begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return "";
    return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

std::vector<std::string> summands(std::string_view text) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t plus = std::min(text.find('+', at), text.size());
        parts.push_back(trimmed(text.substr(at, plus - at)));
        at = plus + 1;
    }
    return parts;
}

/// Digits alone, few enough for an extent.
bool is_decimal(const std::string& text) {
    constexpr std::size_t kMostDigits = 18;
    return !text.empty() && text.size() <= kMostDigits &&
           std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

constexpr std::string_view kKinds = "tensors, sequences of them, and optionals of either are read";

std::int64_t checked_size(std::int64_t value, std::string_view name) {
    refuse_if(value < 0, "dimensions['{}'] is {}; it must be a number of at least 0", name, value);
    return value;
}

}  // namespace

Result<std::set<std::string, std::less<>>> perhaps_empty(const GraphMessage& graph) {
    NamedInputs inputs;
    for (const ValueMessage& v : graph.inputs) inputs.emplace(v.name, &v);
    HR_ASSIGN(const auto readers, readers_of(graph, inputs, 0));
    std::set<std::string, std::less<>> joined, others;
    for (const ValueMessage& v : graph.inputs)
        for (std::size_t axis = 0; axis < v.type.shape.size(); ++axis) {
            const bool is_joined =
                readers.joined.contains({v.name, axis}) && !readers.other.contains({v.name, axis});
            (is_joined ? joined : others).emplace(v.type.shape[axis].name);
        }
    std::erase_if(joined, [&](const std::string& name) { return name.empty() || others.contains(name); });
    return joined;
}

Interface::Interface(OpWriter& g, const std::vector<const ValueMessage*>& inputs, const OnnxOptions& given,
                     std::set<std::string, std::less<>> perhaps_empty)
    : g_(g), given_(given), perhaps_empty_(std::move(perhaps_empty)) {
    for (const ValueMessage* v : inputs)
        for (const DimensionMessage& d : v->type.shape)
            if (!d.name.empty()) named_.emplace(d.name);
}

Value Interface::input(const ValueMessage& value) {
    using Kind = TypeMessage::Kind;
    const std::string name(value.name);
    const Kind kind = value.type.kind;
    if (kind == Kind::tensor) return tensor_input(name, value.type, shape_of(value));
    if (kind != Kind::sequence && kind != Kind::optional)
        throw Refused(fmt::format("it is {}; {}", name_of(kind), kKinds));
    const auto form = given_.forms.find(name);
    if (form == given_.forms.end())
        throw Refused(
            fmt::format(
                "it is {}; a graph has to know of which tensors. headrace.load finds that out when the "
                "model is called; else give their shapes: dimensions={{'{}': [[2, 'n']]}}, None for "
                "an empty optional",
                name_of(kind), name),
            "");
    used_.insert(name);
    return part(name, value.type, form->second);
}

Operand Interface::tensor_input(const std::string& name, const TypeMessage& type, const Shape& shape) {
    const auto element = element_type(type.element_type);
    refuse_if(!element, "it is {}; there are {}", onnx_name(type.element_type), known_types());
    return g_.input(name, *element, shape);
}

/// A sequence, what an optional holds, or a tensor within these.
Value Interface::part(const std::string& name, const TypeMessage& type, const OnnxForm& form) {
    using Kind = TypeMessage::Kind;
    const auto* shape = std::get_if<OnnxShape>(&form);
    const auto* shapes = std::get_if<std::vector<OnnxShape>>(&form);
    if (type.kind == Kind::tensor) {
        refuse_if(!shape && !(shapes && shapes->empty()), "dimensions['{}'] is no shape of a tensor", name);
        return tensor_input(name, type, shape_of(shape ? *shape : OnnxShape(), name, 0));
    }
    const TypeMessage inner = value_or_refuse(decode_type(type.element));
    if (type.kind == Kind::optional) {
        refuse_if(inner.kind == Kind::optional, "it is an optional of optionals; {}", kKinds);
        if (std::holds_alternative<std::monostate>(form)) return optional_of(std::nullopt);
        return optional_of(part(name, inner, form));
    }
    refuse_if(type.kind != Kind::sequence || inner.kind != Kind::tensor, "it is {} of {}; {}",
              name_of(type.kind), name_of(inner.kind), kKinds);
    refuse_if(!shapes && !(shape && shape->empty()), "dimensions['{}'] is no list of tensors' shapes", name);
    std::vector<Operand> items;
    for (std::size_t i = 0; shapes && i < shapes->size(); ++i) {
        const std::string own = fmt::format("{}[{}]", name, i);
        items.push_back(tensor_input(own, inner, shape_of((*shapes)[i], name, 0)));
    }
    const auto element = element_type(inner.element_type);
    refuse_if(!element, "it is of {}; there are {}", onnx_name(inner.element_type), known_types());
    return sequence_of(std::move(items), *element);
}

void Interface::check_dimensions() const {
    std::vector<std::string> unknown;
    for (const auto& [name, size] : given_.dimensions)
        if (!used_.contains(name)) unknown.push_back(name);
    for (const auto& [name, form] : given_.forms)
        if (!used_.contains(name)) unknown.push_back(name);
    if (unknown.empty()) return;
    throw Refused(
        fmt::format("no input has a dimension '{}'; run-time dimensions: {}", fmt::join(unknown, "', '"),
                    g_.dimensions.empty() ? "none" : fmt::format("{}", fmt::join(g_.dimensions, ", "))),
        "", Code::invalid_argument);
}

Shape Interface::shape_of(const ValueMessage& value) {
    const std::string name(value.name);
    if (const auto form = given_.forms.find(name); form != given_.forms.end()) {
        used_.insert(name);
        const auto* whole = std::get_if<OnnxShape>(&form->second);
        refuse_if(!whole, "dimensions['{}'] is no shape, and the input is a tensor", name);
        return shape_of(*whole, name);
    }
    if (!value.type.has_shape)
        throw Refused(
            "its shape is not in the model",
            fmt::format("Give it with dimensions={{'{0}': [1, 3, 224, 224]}} (--shape {0}=1,3,224,224)",
                        name));
    Shape shape;
    for (std::size_t axis = 0; axis < value.type.shape.size(); ++axis) {
        const DimensionMessage& d = value.type.shape[axis];
        if (d.size) {
            refuse_if(*d.size < 0, "extent {} is {}; give the input's shape with dimensions={{'{}': [...]}}",
                      axis, *d.size, name);
            shape.emplace_back(*d.size);
        } else {
            shape.push_back(dimension(dimension_name(d, name, axis)));
        }
    }
    return shape;
}

Shape Interface::shape_of(const OnnxShape& given, std::string_view name, std::optional<std::int64_t> least) {
    Shape shape;
    for (const auto& extent : given) {
        if (const auto* size = std::get_if<std::int64_t>(&extent))
            shape.emplace_back(checked_size(*size, name));
        else
            shape.push_back(dimension(std::get<std::string>(extent), least));
    }
    return shape;
}

/// A number where one is given. "past + 1" and "past + new" of other dimensions are sums.
Dim Interface::dimension(const std::string& name, std::optional<std::int64_t> least) {
    if (const auto given = given_.dimensions.find(name); given != given_.dimensions.end()) {
        used_.insert(name);
        return checked_size(given->second, name);
    }
    if (const std::vector<std::string> parts = summands(name); is_sum(parts)) {
        Dim sum = 0;
        for (const std::string& part : parts)
            sum = sum + (is_decimal(part) ? Dim(std::stoll(part)) : dimension(part, least));
        return sum;
    }
    return Dim::named(name, least.value_or(perhaps_empty_.contains(name) ? 0 : 1));
}

bool Interface::is_sum(const std::vector<std::string>& parts) const {
    const auto is_known = [&](const std::string& part) { return is_decimal(part) || named_.contains(part); };
    return parts.size() > 1 && std::ranges::all_of(parts, is_known) &&
           !std::ranges::all_of(parts, &is_decimal);
}

void Interface::output(std::string_view name, const Value& value) {
    // Some exporters list a value that is returned twice under its one name twice.
    if (std::ranges::any_of(outputs_, [&](const OnnxOutput& known) { return known.name == name; })) return;
    outputs_.push_back(form_of(std::string(name), value));
}

void Interface::finish() {
    if (!has_output_) mark_output("no output", known(0, ElementType::u8));
}

OnnxOutput Interface::form_of(const std::string& name, const Value& value) {
    using Kind = OnnxOutput::Kind;
    OnnxOutput form{.name = name};
    if (const Optional* optional = as_optional(value)) {
        form.kind = Kind::optional;
        if (optional->is_there) form.is_there = mark_output(name + " is there", optional->is_there);
        if (optional->item) form.parts.push_back(form_of(name, *optional->item));
    } else if (const Sequence* sequence = as_sequence(value)) {
        form.kind = Kind::sequence;
        for (const Operand& x : sequence->items)
            form.parts.push_back(form_of(fmt::format("{}[{}]", name, form.parts.size()), x));
    } else if (const Table* table = as_table(value)) {
        form.kind = Kind::table;
        form.tensor = mark_output(name + ".elements", table->flat);
        form.shapes = mark_output(name + ".shapes", table->shapes);
        if (table->ranks) form.ranks = mark_output(name + ".ranks", table->ranks);
    } else {
        form.tensor = mark_output(name, std::get<Operand>(value));
    }
    return form;
}

/// An operator's result as an output of the graph; inputs and constants are copied, and truth values are
/// bool.
std::string Interface::mark_output(const std::string& name, const Operand& value) {
    ValueId id = kNoValue;
    GraphBuilder& builder = g_.builder();
    const auto& add = [&](std::string_view op, const NamedAttrs& attrs) {
        return g_.append(op, {g_.value(value)}, attrs, name);
    };
    if (value->type == ElementType::boolean)
        id = add("cast", {{"data_type", DType::boolean}});
    else if (value->type == ElementType::bf16)
        id = g_.value(g_.cast(value, ElementType::f32));
    else
        id = add("identity", {});
    value_or_refuse(builder.mark_output(name, id));
    if (is_carried(value->type) || value->type == ElementType::bf16)
        declared_.emplace(name, name_of(value->type));
    has_output_ = true;
    return name;
}

}  // namespace headrace::onnx
