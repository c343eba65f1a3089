#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// ONNX models as bytes, without Protocol Buffers.
namespace headrace::onnx {

inline std::string varint(std::uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
    return bytes + static_cast<char>(value);
}
inline std::string number_field(std::uint32_t number, std::int64_t value) {
    return varint(number << 3) + varint(static_cast<std::uint64_t>(value));
}
inline std::string bytes_field(std::uint32_t number, std::string_view bytes) {
    return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

/// A ValueInfoProto of floats; names and numbers of dimensions as they are: "n", "3".
inline std::string float_value(std::string_view name, const std::vector<std::string>& dims) {
    std::string shape;
    for (const std::string& d : dims) {
        const bool is_number = !d.empty() && d.find_first_not_of("0123456789") == std::string::npos;
        shape += bytes_field(1, is_number ? number_field(1, std::stoll(d)) : bytes_field(2, d));
    }
    const std::string tensor = number_field(1, 1) + bytes_field(2, shape);
    return bytes_field(1, name) + bytes_field(2, bytes_field(1, tensor));
}

/// A ValueInfoProto of a TypeProto's bytes.
inline std::string typed_value(std::string_view name, std::string_view type) {
    return bytes_field(1, name) + bytes_field(2, type);
}
/// TypeProtos: of floats with the shapes [n], of a sequence and of an optional.
inline std::string float_list_type() {
    const std::string shape = bytes_field(1, bytes_field(2, "n"));
    return bytes_field(1, number_field(1, 1) + bytes_field(2, shape));
}
inline std::string sequence_type(std::string_view element) { return bytes_field(4, bytes_field(1, element)); }
inline std::string optional_type(std::string_view element) { return bytes_field(9, bytes_field(1, element)); }

inline std::string node(std::string_view op, const std::vector<std::string>& inputs,
                        std::string_view output) {
    std::string bytes;
    for (const std::string& name : inputs) bytes += bytes_field(1, name);
    return bytes + bytes_field(2, output) + bytes_field(3, "the node") + bytes_field(4, op);
}

/// A TensorProto of floats, with raw bytes.
inline std::string float_tensor(std::string_view name, std::int64_t count, std::string_view raw) {
    return number_field(1, count) + number_field(2, 1) + bytes_field(8, name) + bytes_field(9, raw);
}

/// A ModelProto of operator set 21, of ValueInfoProtos as inputs and outputs.
inline std::string model_of(const std::vector<std::string>& nodes, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs, const std::string& initializer = "") {
    std::string graph = bytes_field(2, "the graph");
    for (const std::string& n : nodes) graph += bytes_field(1, n);
    if (!initializer.empty()) graph += bytes_field(5, initializer);
    for (const std::string& value : inputs) graph += bytes_field(11, value);
    for (const std::string& value : outputs) graph += bytes_field(12, value);
    return number_field(1, 10) + bytes_field(7, graph) + bytes_field(8, number_field(2, 21));
}
/// With x: float[n, 4] and y.
inline std::string model(const std::vector<std::string>& nodes, const std::string& initializer = "") {
    return model_of(nodes, {float_value("x", {"n", "4"})}, {float_value("y", {})}, initializer);
}

}  // namespace headrace::onnx
