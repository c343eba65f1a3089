#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "doors/webnn/files/graph_source.h"
#include "doors/webnn/files/weights_file.h"
#include "doors/webnn/state.h"
#include "ir/constant.h"
#include "ir/verify.h"

namespace headrace::webnn {
namespace {

/// Whether an integer type holds a number exactly; conversion of others would be undefined.
bool is_exact(const Number& number, DType type) {
    const auto between = [&](auto low, auto high) {
        return std::visit(
            [&](auto v) {
                if constexpr (std::is_floating_point_v<decltype(v)>)  // 2^63 and 2^64 are no int64 and uint64
                    return v == std::trunc(v) && v >= static_cast<double>(low) &&
                           v < static_cast<double>(high) + 1;
                else
                    return std::cmp_greater_equal(v, low) && std::cmp_less_equal(v, high);
            },
            number);
    };
    if (bits_of(type) == 4) return type == DType::i4 ? between(-8, 7) : between(0, 15);
    return visit_dtype(type, [&]<class T>() {
        if constexpr (std::is_integral_v<T>)
            return between(std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
        else
            return true;
    });
}

/// Scalars fill whole tensors: without a bound, a line of text could ask for all memory.
constexpr std::size_t kMostFilledBytes = std::size_t{64} << 20;

class SourceBuilder {
public:
    SourceBuilder(const GraphSource& source, const OpenWeights& open_weights)
        : source_(source), open_weights_(open_weights) {}

    Result<Graph> build() {
        ids_.reserve(source_.inputs.size() + source_.constants.size() + source_.nodes.size());
        for (std::size_t i = 0; i < source_.inputs.size(); ++i) HR_TRY(input(i));
        for (std::size_t i = 0; i < source_.constants.size(); ++i) HR_TRY(constant(i));
        for (std::size_t i = 0; i < source_.nodes.size(); ++i) HR_TRY(node(i));
        for (std::size_t i = 0; i < source_.outputs.size(); ++i) HR_TRY(output(i));
        HR_ASSIGN(Graph graph, builder_.finish());
        HR_TRY(verify(graph));
        return graph;
    }

private:
    /// A node's operands and attributes while its arguments are being sorted.
    struct Call {
        RowAndOp found;
        const MLSignature* signature = nullptr;
        std::vector<ValueId> operands;
        NamedAttrs attrs;
        std::string label;
    };

    Error fail_at(const Spot& spot, const Error& error) const { return error.within(source_.place(spot)); }
    Spot spot(Spot::Section section, std::size_t index, std::size_t at, std::string detail = {}) const {
        return {section, index, at, std::move(detail)};
    }

    Status define(const std::string& name, ValueId id, const Spot& spot) {
        if (name.empty()) return fail_at(spot, invalid("the name is empty"));
        if (!ids_.emplace(name, id).second)
            return fail_at(spot, invalid("'{}' is already defined; every name stands for one value",
                                         excerpt(std::string_view(name))));
        return success();
    }
    Result<ValueId> find(const std::string& name, const Spot& spot) const {
        const auto it = ids_.find(name);
        if (it == ids_.end())
            return fail_at(spot,
                           invalid("'{}' is not defined before this use", excerpt(std::string_view(name))));
        return it->second;
    }

    Status input(std::size_t index);
    Status constant(std::size_t index);
    Result<std::shared_ptr<const Constant>> content(const SourceConstant& constant, const TensorType& type);
    Result<std::shared_ptr<const Constant>> filled(const FileValue& value, const TensorType& type);
    Status node(std::size_t index);
    Status output(std::size_t index);
    Status arguments(std::size_t index, Call& call);
    Status literal(const SourceNode& node, const FileValue& value, std::size_t& next, Call& call,
                   const Spot& where);
    Status option(const SourceOption& option, Call& call, const Spot& where);
    Status operand_option(const SourceOption& option, const MLParameter& parameter, Call& call,
                          const Spot& where);

    const GraphSource& source_;
    const OpenWeights& open_weights_;
    GraphBuilder builder_;
    std::unordered_map<std::string_view, ValueId> ids_;  ///< the names live in source_
    std::unique_ptr<WeightsFile> weights_;
    std::size_t filled_bytes_ = 0;
};

Status SourceBuilder::input(std::size_t index) {
    const SourceInput& input = source_.inputs[index];
    const Spot where = spot(Spot::Section::inputs, index, input.at);
    auto type = tensor_type(input.type, fmt::format("input '{}'", excerpt(std::string_view(input.name))));
    if (!type.ok()) return fail_at(where, type.error());
    const auto id = builder_.input(input.name, std::move(type).value());
    if (!id.ok()) return fail_at(where, id.error());
    return define(input.name, id.value(), where);
}

Result<std::shared_ptr<const Constant>> SourceBuilder::filled(const FileValue& value,
                                                              const TensorType& type) {
    HR_ASSIGN(const AttrValue number, to_attr_value(value, {.kind = AttrKind::number}));
    auto exact = detail::as_number(number);
    if (!exact.ok()) return invalid("{} is not a number", excerpt(value));
    if (!is_exact(exact.value(), type.dtype))
        return invalid("{} is no {}", excerpt(value), data_type_name(type.dtype));
    filled_bytes_ += std::min(type.bytes(), kMostFilledBytes + 1);
    if (filled_bytes_ > kMostFilledBytes)
        return unsupported("{} from one number; put tensors of more than {} MiB together among the weights",
                           type.str(), kMostFilledBytes >> 20);
    const auto element = scalar_bytes(type.dtype, exact.value());
    HR_ASSIGN(auto buffer, AlignedBuffer::allocate(type.bytes(), "a constant"));
    for (std::size_t i = 0; i < buffer.bytes(); ++i) buffer.data()[i] = element[i % element.size()];
    return own_constant(std::move(buffer));
}

Result<std::shared_ptr<const Constant>> SourceBuilder::content(const SourceConstant& constant,
                                                               const TensorType& type) {
    if (constant.kind == SourceConstant::Kind::scalar) return filled(constant.value, type);
    if (constant.kind == SourceConstant::Kind::bytes) {
        // Like the weights' files, these give 4-bit types a byte an element; packed pairs are read as well.
        if (bits_of(type.dtype) != 4 || constant.bytes->bytes.size() == type.bytes()) return constant.bytes;
        return pack_elements(constant.bytes->bytes, type);
    }
    if (!weights_) {
        HR_ASSIGN(weights_, open_weights_());
    }
    return weights_->find(constant.key, type);
}

Status SourceBuilder::constant(std::size_t index) {
    const SourceConstant& constant = source_.constants[index];
    const Spot where = spot(Spot::Section::consts, index, constant.at);
    const auto title = fmt::format("constant '{}'", excerpt(std::string_view(constant.name)));
    const auto type = tensor_type(constant.type, title);
    if (!type.ok()) return fail_at(where, type.error());
    if (const auto sound = type.value().check(); !sound.ok())
        return fail_at(where, sound.error().within(title));
    if (!type.value().is_concrete())
        return fail_at(where, invalid("{}: the shape {} must be fixed", title, str(type.value().shape)));
    auto bytes = content(constant, type.value());
    if (!bytes.ok()) return fail_at(where, bytes.error().within(title));
    const auto id = builder_.constant(type.value(), std::move(bytes).value(), constant.name);
    if (!id.ok()) return fail_at(where, id.error());
    return define(constant.name, id.value(), where);
}

/// A literal among the positional arguments is the next parameter that is no operand.
Status SourceBuilder::literal(const SourceNode& node, const FileValue& value, std::size_t& next, Call& call,
                              const Spot& where) {
    const auto& parameters = call.signature->parameters;
    while (next < parameters.size() && parameters[next].is_operand) ++next;
    if (next == parameters.size())
        return fail_at(where, invalid("{}: {} is one argument too many", node.op, excerpt(value)));
    return option({parameters[next++].target, value, where.at}, call, where);
}

Status SourceBuilder::arguments(std::size_t index, Call& call) {
    const SourceNode& node = source_.nodes[index];
    const OpDef& op = *call.found.op;
    std::size_t next = 0;
    for (std::size_t i = 0; i < node.arguments.size(); ++i) {
        const FileValue& value = node.arguments[i];
        const Spot where = spot(Spot::Section::nodes, index, node.at, fmt::format("inputs[{}]", i));
        const auto* name = value.get<std::string>();
        const auto* names = value.get<FileValue::List>();
        const bool has_room = op.variadic || call.operands.size() < op.operands.size();
        if (value.is_null() && has_room) {
            call.operands.push_back(kNoValue);
        } else if (name && has_room) {
            HR_ASSIGN(const ValueId id, find(*name, where));
            call.operands.push_back(id);
        } else if (names && op.variadic) {  // concat([a, b])
            for (const FileValue& element : *names) {
                const auto* inner = element.get<std::string>();
                if (!inner)
                    return fail_at(where, invalid("{}: {} names no value", node.op, excerpt(element)));
                HR_ASSIGN(const ValueId id, find(*inner, where));
                call.operands.push_back(id);
            }
        } else {
            HR_TRY(literal(node, value, next, call, where));
        }
    }
    return success();
}

Status SourceBuilder::operand_option(const SourceOption& option, const MLParameter& parameter, Call& call,
                                     const Spot& where) {
    const auto& rules = call.found.op->operands;
    std::size_t slot = 0;
    while (rules[slot].name != parameter.target) ++slot;
    std::vector<const FileValue*> given;
    if (const auto* list = option.value.get<FileValue::List>(); list && parameter.is_list)
        for (const FileValue& element : *list) given.push_back(&element);
    else
        given.push_back(&option.value);
    for (const FileValue* value : given) {
        const auto* name = value->get<std::string>();
        if (!name)
            return fail_at(where,
                           invalid("{} takes the name of a value, not {}", option.name, excerpt(*value)));
        HR_ASSIGN(const ValueId id, find(*name, where));
        if (call.operands.size() <= slot) call.operands.resize(slot + 1, kNoValue);
        if (call.operands[slot] != kNoValue)
            return fail_at(where, invalid("the operand {} is given twice", option.name));
        call.operands[slot++] = id;
    }
    return success();
}

Status SourceBuilder::option(const SourceOption& option, Call& call, const Spot& where) {
    if (option.name == "metadata" || option.value.is_null())
        return success();  // tools' notes; absent options
    if (option.name == "label") {
        const auto* text = option.value.get<std::string>();
        if (!text) return fail_at(where, invalid("a label is a string, not {}", excerpt(option.value)));
        call.label = *text;
        return success();
    }
    const std::string name = option_name(call.found, option.name);
    for (const MLParameter& p : call.signature->parameters) {
        if (p.name != name && p.target != name) continue;
        if (p.is_operand) return operand_option(option, p, call, where);
        for (const Field& field : call.found.op->fields) {
            if (field.name != p.target) continue;
            auto value = to_attr_value(option.value, field);
            if (!value.ok()) return fail_at(where, value.error().within(option.name));
            call.attrs.emplace_back(p.target, std::move(value).value());
            return success();
        }
    }
    std::string known;
    for (const MLParameter& p : call.signature->parameters)
        known.append(known.empty() ? "" : ", ").append(file_option_name(call.found, p.target));
    return fail_at(where, invalid("{} has no option '{}'; it takes: {}", call.found.row->idl,
                                  excerpt(std::string_view(option.name)), known));
}

Status SourceBuilder::node(std::size_t index) {
    const SourceNode& node = source_.nodes[index];
    const Spot where = spot(Spot::Section::nodes, index, node.at);
    std::vector<ValueId> results;
    if (node.op.empty()) {  // y = x
        const auto* name = node.arguments.size() == 1 ? node.arguments[0].get<std::string>() : nullptr;
        if (!name) return fail_at(where, invalid("the operator has no name"));
        HR_ASSIGN(const ValueId id, find(*name, where));
        results.push_back(id);
    } else {
        Call call{.found = find_row(node.op)};
        if (!call.found.op)
            return fail_at(where,
                           invalid("there is no WebNN operator '{}'", excerpt(std::string_view(node.op))));
        call.signature = &signature_of(*call.found.row);
        HR_TRY(arguments(index, call));
        for (const SourceOption& o : node.options)
            HR_TRY(option(o, call, spot(Spot::Section::nodes, index, o.at, "options." + o.name)));
        auto added = add_op(builder_, *call.found.op, std::move(call.operands), call.attrs, call.label);
        if (!added.ok()) return fail_at(where, added.error());
        results = std::move(added).value();
    }
    if (results.size() != node.results.size())
        return fail_at(where,
                       invalid("{} has {} results; {} names are given for them",
                               node.op.empty() ? "a value" : node.op, results.size(), node.results.size()));
    for (std::size_t i = 0; i < results.size(); ++i) HR_TRY(define(node.results[i], results[i], where));
    return success();
}

Status SourceBuilder::output(std::size_t index) {
    const SourceOutput& output = source_.outputs[index];
    const Spot where = spot(Spot::Section::outputs, index, output.at);
    HR_ASSIGN(const ValueId id, find(output.value, where));
    if (const auto marked = builder_.mark_output(output.name, id); !marked.ok())
        return fail_at(where, marked.error());
    return success();
}

}  // namespace

Result<Graph> build_graph(const GraphSource& source, const OpenWeights& open_weights) {
    return SourceBuilder(source, open_weights).build();
}

Result<std::shared_ptr<const Constant>> to_bytes(const FileValue& list) {
    const auto* integers = list.get<FileValue::Integers>();
    if (!integers) return invalid("expected a list of bytes, found {}", excerpt(list));
    HR_ASSIGN(auto buffer, AlignedBuffer::allocate(integers->size(), "a constant's bytes"));
    for (std::size_t i = 0; i < integers->size(); ++i) {
        const std::int64_t byte = (*integers)[i];
        if (byte < 0 || byte > 255) return invalid("element {} is {}; bytes are 0 to 255", i, byte);
        buffer.data()[i] = static_cast<std::byte>(byte);
    }
    return own_constant(std::move(buffer));
}

Result<MLDimension> to_dimension(const FileValue& value) {
    if (const auto* extent = value.get<std::int64_t>()) {
        if (*extent < 0 || *extent > kMostExtent)
            return invalid("the extent {} is outside 0 to {}", *extent, kMostExtent);
        return MLDimension(*extent);
    }
    const auto* object = value.get<FileValue::Object>();
    const std::string* name = nullptr;
    const std::int64_t* most = nullptr;
    for (std::size_t i = 0; object && i < object->size(); ++i) {
        if ((*object)[i].first == "name") name = (*object)[i].second.get<std::string>();
        if ((*object)[i].first == "maxSize") most = (*object)[i].second.get<std::int64_t>();
    }
    if (!name || !most)
        return invalid("{} is not an extent: an integer, or an object of name and maxSize", excerpt(value));
    if (name->empty()) return invalid("a dimension's name is empty");
    if (*most < 1 || *most > kMostExtent)
        return invalid("the largest extent {} of '{}' is outside 1 to {}", *most,
                       excerpt(std::string_view(*name)), kMostExtent);
    return MLDimension(*name, *most == kMostExtent ? INT64_MAX : *most);
}

FileValue from_dimension(const MLDimension& d) {
    if (!d.is_open()) return {*d.number()};
    return {FileValue::Object{{"name", {d.str()}}, {"maxSize", {std::min(d.most(), kMostExtent)}}}};
}

}  // namespace headrace::webnn
