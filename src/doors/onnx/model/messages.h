#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doors/onnx/wire/message.h"

/// ONNX's messages (onnx.proto) as views of a file's bytes. Lists of messages stay undecoded until somebody
/// reads their elements one by one: what a small file could make of many empty messages costs nothing.
///
/// Errors of every decode function: Code::invalid_argument for what is damaged, or has names that are no
/// UTF-8.
namespace headrace::onnx {

using wire::Bytes;

/// TensorProto. Its elements are read by elements_of().
struct TensorMessage {
    Bytes message;
    std::string_view name;
    std::int32_t data_type = 0;
    std::vector<std::int64_t> dims;
    std::optional<Bytes> raw;
    bool is_external = false;
    std::vector<std::pair<std::string_view, std::string_view>> external;  ///< location, offset, length, ...
};

/// AttributeProto.
struct AttributeMessage {
    enum Type : std::int32_t {
        kUndefined = 0,
        kFloat = 1,
        kInt = 2,
        kString = 3,
        kTensor = 4,
        kGraph = 5,
        kFloats = 6,
        kInts = 7,
        kStrings = 8,
        kTensors = 9,
        kGraphs = 10,
        kSparseTensor = 11,
        kSparseTensors = 12,
        kTypeProto = 13,
        kTypeProtos = 14,
    };
    std::string_view name, reference;  ///< reference: the function's parameter that it stands for
    std::int32_t type = kUndefined;
    float real = 0;
    std::int64_t integer = 0;
    Bytes text, tensor, graph, type_proto;
    std::vector<float> reals;
    std::vector<std::int64_t> integers;
    std::vector<Bytes> texts;
};

/// NodeProto.
struct NodeMessage {
    std::string_view name, op, domain, overload;
    std::vector<std::string_view> inputs, outputs;
    std::vector<AttributeMessage> attributes;
};

/// A dimension of an input or output.
struct DimensionMessage {
    std::optional<std::int64_t> size;
    std::string_view name;
    Bytes denotation;  ///< what it means: "DATA_BATCH"
};

/// TypeProto.
struct TypeMessage {
    enum class Kind : std::uint8_t { none, tensor, sequence, optional, map, sparse_tensor, opaque };
    Kind kind = Kind::none;
    std::int32_t element_type = 0;  ///< of a tensor
    bool has_shape = false;
    std::vector<DimensionMessage> shape;
    Bytes element;  ///< of a sequence or an optional: its TypeProto
};
std::string_view name_of(TypeMessage::Kind kind);

/// ValueInfoProto.
struct ValueMessage {
    std::string_view name;
    TypeMessage type;
};

/// GraphProto.
struct GraphMessage {
    std::string_view name;
    std::vector<Bytes> nodes, initializers, sparse_initializers;
    std::vector<ValueMessage> inputs, outputs;
    Bytes description;
};

/// Operator sets by domain; "" is ai.onnx.
using OperatorSets = std::map<std::string, std::int64_t, std::less<>>;

/// FunctionProto.
struct FunctionMessage {
    std::string_view name, domain, overload;
    std::vector<std::string_view> inputs, outputs;
    std::vector<Bytes> nodes, defaults;  ///< defaults: AttributeProto
    OperatorSets sets;
};

/// ModelProto.
struct ModelMessage {
    std::int64_t ir_version = 0;
    OperatorSets sets;
    std::optional<GraphMessage> graph;
    std::vector<FunctionMessage> functions;
    std::optional<std::int64_t> version;
    Bytes producer, domain, description;  ///< texts that nothing looks up, whatever they are
    std::vector<std::pair<Bytes, Bytes>> properties;
};

Result<TensorMessage> decode_tensor(Bytes bytes);
/// A SparseTensorProto's.
Result<std::string_view> name_of_sparse(Bytes bytes);
Result<AttributeMessage> decode_attribute(Bytes bytes);
Result<NodeMessage> decode_node(Bytes bytes);
Result<TypeMessage> decode_type(Bytes bytes);
Result<GraphMessage> decode_graph(Bytes bytes);
Result<ModelMessage> decode_model(Bytes bytes);

/// "ai.onnx" and "" are one.
std::string_view domain_named(std::string_view domain);

}  // namespace headrace::onnx
