#include "doors/onnx/model/messages.h"

#include <algorithm>
#include <cstring>

#include "base/utf8.h"

namespace headrace::onnx {
namespace {

using wire::bytes_key;
using wire::Field;
using wire::float_key;
using wire::Message;
using wire::number_key;

/// Reads a message's fields into a struct, one after the other.
template <class T, class Take>
Status each_field(T& into, Bytes bytes, Take take) {
    Message message(bytes);
    while (message.next()) HR_TRY(take(into, message.field()));
    return message.status();
}

/// Names are looked up and shown, so they must be text.
Status take_text(std::string_view& into, Bytes bytes, std::string_view what) {
    const bool is_plain = std::ranges::all_of(bytes, [](char c) { return static_cast<signed char>(c) >= 0; });
    if (!is_plain && find_invalid_utf8(bytes))
        return invalid(
            "the {} '{}' is no UTF-8; the file is damaged, or what wrote it has to encode its names", what,
            excerpt(valid_utf8(bytes)));
    into = bytes;
    return success();
}

Status take_text(std::vector<std::string_view>& into, Bytes bytes, std::string_view what) {
    return take_text(into.emplace_back(), bytes, what);
}

/// Numbers of a repeated field, which may be packed.
Status take_integers(std::vector<std::int64_t>& into, Bytes packed) {
    wire::Varints numbers(packed);
    for (std::uint64_t value = 0; numbers.next(value);) into.push_back(static_cast<std::int64_t>(value));
    return numbers.is_damaged() ? Status(invalid("a list of integers is damaged")) : success();
}

Status take_reals(std::vector<float>& into, Bytes packed) {
    if (packed.size() % sizeof(float) != 0) return invalid("a list of floats is damaged");
    const std::size_t before = into.size();
    into.resize(before + packed.size() / sizeof(float));
    if (!packed.empty()) std::memcpy(into.data() + before, packed.data(), packed.size());
    return success();
}

Status take_entry(TensorMessage& tensor, Bytes bytes) {
    std::pair<std::string_view, std::string_view> entry;
    HR_TRY(each_field(entry, bytes, [](auto& e, const Field& f) -> Status {
        if (f.key == bytes_key(1)) return take_text(e.first, f.bytes, "key of external data");
        if (f.key == bytes_key(2)) return take_text(e.second, f.bytes, "value of external data");
        return success();
    }));
    tensor.external.push_back(entry);
    return success();
}

Status take(TensorMessage& tensor, const Field& f) {
    switch (f.key) {
        case number_key(1): tensor.dims.push_back(f.integer()); return success();
        case bytes_key(1): return take_integers(tensor.dims, f.bytes);
        case number_key(2): tensor.data_type = f.small(); return success();
        case bytes_key(8): return take_text(tensor.name, f.bytes, "name of a TensorProto");
        case bytes_key(9): tensor.raw = f.bytes; return success();
        case bytes_key(13): return take_entry(tensor, f.bytes);
        case number_key(14): tensor.is_external = f.bits == 1; return success();
        default: return success();
    }
}

Status take(AttributeMessage& a, const Field& f) {
    switch (f.key) {
        case bytes_key(1): return take_text(a.name, f.bytes, "name of an AttributeProto");
        case float_key(2): a.real = f.real(); return success();
        case number_key(3): a.integer = f.integer(); return success();
        case bytes_key(4): a.text = f.bytes; return success();
        case bytes_key(5): a.tensor = f.bytes; return success();
        case bytes_key(6): a.graph = f.bytes; return success();
        case float_key(7): a.reals.push_back(f.real()); return success();
        case bytes_key(7): return take_reals(a.reals, f.bytes);
        case number_key(8): a.integers.push_back(f.integer()); return success();
        case bytes_key(8): return take_integers(a.integers, f.bytes);
        case bytes_key(9): a.texts.push_back(f.bytes); return success();
        case bytes_key(14): a.type_proto = f.bytes; return success();
        case number_key(20): a.type = f.small(); return success();
        case bytes_key(21): return take_text(a.reference, f.bytes, "ref_attr_name of an AttributeProto");
        default: return success();
    }
}

Status take(NodeMessage& node, const Field& f) {
    switch (f.key) {
        case bytes_key(1): return take_text(node.inputs, f.bytes, "input of a NodeProto");
        case bytes_key(2): return take_text(node.outputs, f.bytes, "output of a NodeProto");
        case bytes_key(3): return take_text(node.name, f.bytes, "name of a NodeProto");
        case bytes_key(4): return take_text(node.op, f.bytes, "op_type of a NodeProto");
        case bytes_key(5): {
            HR_ASSIGN(auto attribute, decode_attribute(f.bytes));
            node.attributes.push_back(std::move(attribute));
            return success();
        }
        case bytes_key(7): return take_text(node.domain, f.bytes, "domain of a NodeProto");
        case bytes_key(8): return take_text(node.overload, f.bytes, "overload of a NodeProto");
        default: return success();
    }
}

Status take_dimension(TypeMessage& type, Bytes bytes) {
    return each_field(type.shape.emplace_back(), bytes, [](DimensionMessage& d, const Field& f) -> Status {
        if (f.key == number_key(1)) {
            d.size = f.integer();
            d.name = {};
        } else if (f.key == bytes_key(2)) {
            d.size.reset();
            return take_text(d.name, f.bytes, "name of a dimension");
        } else if (f.key == bytes_key(3)) {
            d.denotation = f.bytes;
        }
        return success();
    });
}

Status take_tensor_type(TypeMessage& type, const Field& f) {
    if (f.key == number_key(1)) type.element_type = f.small();
    if (f.key != bytes_key(2)) return success();
    type.has_shape = true;
    return each_field(type, f.bytes, [](TypeMessage& t, const Field& inner) -> Status {
        return inner.key == bytes_key(1) ? take_dimension(t, inner.bytes) : success();
    });
}

Status take_element(TypeMessage& type, Bytes bytes) {
    return each_field(type, bytes, [](TypeMessage& t, const Field& f) -> Status {
        if (f.key == bytes_key(1)) t.element = f.bytes;
        return success();
    });
}

Status take(TypeMessage& type, const Field& f) {
    switch (f.key) {
        case bytes_key(1):
            type.kind = TypeMessage::Kind::tensor;
            return each_field(type, f.bytes, &take_tensor_type);
        case bytes_key(4): type.kind = TypeMessage::Kind::sequence; return take_element(type, f.bytes);
        case bytes_key(9): type.kind = TypeMessage::Kind::optional; return take_element(type, f.bytes);
        case bytes_key(5): type.kind = TypeMessage::Kind::map; return success();
        case bytes_key(7): type.kind = TypeMessage::Kind::opaque; return success();
        case bytes_key(8): type.kind = TypeMessage::Kind::sparse_tensor; return success();
        default: return success();
    }
}

Status take_value(std::vector<ValueMessage>& list, Bytes bytes) {
    return each_field(list.emplace_back(), bytes, [](ValueMessage& v, const Field& f) -> Status {
        if (f.key == bytes_key(1)) return take_text(v.name, f.bytes, "name of a ValueInfoProto");
        if (f.key == bytes_key(2))
            return each_field(v.type, f.bytes, [](auto& t, const Field& g) { return take(t, g); });
        return success();
    });
}

Status take(GraphMessage& graph, const Field& f) {
    switch (f.key) {
        case bytes_key(1): graph.nodes.push_back(f.bytes); return success();
        case bytes_key(2): return take_text(graph.name, f.bytes, "name of a GraphProto");
        case bytes_key(5): graph.initializers.push_back(f.bytes); return success();
        case bytes_key(10): graph.description = f.bytes; return success();
        case bytes_key(11): return take_value(graph.inputs, f.bytes);
        case bytes_key(12): return take_value(graph.outputs, f.bytes);
        case bytes_key(15): graph.sparse_initializers.push_back(f.bytes); return success();
        default: return success();
    }
}

Status take_set(OperatorSets& sets, Bytes bytes) {
    std::pair<std::string_view, std::int64_t> entry;
    HR_TRY(each_field(entry, bytes, [](auto& e, const Field& f) -> Status {
        if (f.key == bytes_key(1)) return take_text(e.first, f.bytes, "domain of an OperatorSetIdProto");
        if (f.key == number_key(2)) e.second = f.integer();
        return success();
    }));
    sets.insert_or_assign(std::string(domain_named(entry.first)), entry.second);
    return success();
}

Status take(FunctionMessage& function, const Field& f) {
    switch (f.key) {
        case bytes_key(1): return take_text(function.name, f.bytes, "name of a FunctionProto");
        case bytes_key(4): return take_text(function.inputs, f.bytes, "input of a FunctionProto");
        case bytes_key(5): return take_text(function.outputs, f.bytes, "output of a FunctionProto");
        case bytes_key(7): function.nodes.push_back(f.bytes); return success();
        case bytes_key(9): return take_set(function.sets, f.bytes);
        case bytes_key(10): return take_text(function.domain, f.bytes, "domain of a FunctionProto");
        case bytes_key(11): function.defaults.push_back(f.bytes); return success();
        case bytes_key(13): return take_text(function.overload, f.bytes, "overload of a FunctionProto");
        default: return success();
    }
}

Status take_property(ModelMessage& model, Bytes bytes) {
    return each_field(model.properties.emplace_back(), bytes, [](auto& entry, const Field& f) -> Status {
        if (f.key == bytes_key(1)) entry.first = f.bytes;
        if (f.key == bytes_key(2)) entry.second = f.bytes;
        return success();
    });
}

Status take(ModelMessage& model, const Field& f) {
    switch (f.key) {
        case number_key(1): model.ir_version = f.integer(); return success();
        case bytes_key(2): model.producer = f.bytes; return success();
        case bytes_key(4): model.domain = f.bytes; return success();
        case number_key(5): model.version = f.integer(); return success();
        case bytes_key(6): model.description = f.bytes; return success();
        case bytes_key(7):
            if (!model.graph) model.graph.emplace();
            return each_field(*model.graph, f.bytes,
                              [](auto& g, const Field& inner) { return take(g, inner); });
        case bytes_key(8): return take_set(model.sets, f.bytes);
        case bytes_key(14): return take_property(model, f.bytes);
        case bytes_key(25):
            return each_field(model.functions.emplace_back(), f.bytes,
                              [](auto& g, const Field& inner) { return take(g, inner); });
        default: return success();
    }
}

template <class T>
Result<T> decoded(Bytes bytes) {
    T into;
    HR_TRY(each_field(into, bytes, [](T& t, const Field& f) { return take(t, f); }));
    return into;
}

}  // namespace

std::string_view name_of(TypeMessage::Kind kind) {
    switch (kind) {
        case TypeMessage::Kind::none: return "without a type";
        case TypeMessage::Kind::tensor: return "tensor";
        case TypeMessage::Kind::sequence: return "sequence";
        case TypeMessage::Kind::optional: return "optional";
        case TypeMessage::Kind::map: return "map";
        case TypeMessage::Kind::sparse_tensor: return "sparse_tensor";
        case TypeMessage::Kind::opaque: return "opaque";
    }
    return "without a type";
}

Result<TensorMessage> decode_tensor(Bytes bytes) {
    HR_ASSIGN(auto tensor, decoded<TensorMessage>(bytes));
    tensor.message = bytes;
    return tensor;
}

Result<std::string_view> name_of_sparse(Bytes bytes) {
    std::string_view name;
    HR_TRY(each_field(name, bytes, [](std::string_view& into, const Field& f) -> Status {
        if (f.key != bytes_key(1)) return success();
        HR_ASSIGN(const TensorMessage values, decode_tensor(f.bytes));
        into = values.name;
        return success();
    }));
    return name;
}

Result<AttributeMessage> decode_attribute(Bytes bytes) { return decoded<AttributeMessage>(bytes); }
Result<NodeMessage> decode_node(Bytes bytes) { return decoded<NodeMessage>(bytes); }
Result<TypeMessage> decode_type(Bytes bytes) { return decoded<TypeMessage>(bytes); }
Result<GraphMessage> decode_graph(Bytes bytes) { return decoded<GraphMessage>(bytes); }
Result<ModelMessage> decode_model(Bytes bytes) { return decoded<ModelMessage>(bytes); }

std::string_view domain_named(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

}  // namespace headrace::onnx
