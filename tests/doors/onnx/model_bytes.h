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
        const bool is_number = d.find_first_not_of("0123456789") == std::string::npos;
        shape += bytes_field(1, is_number ? number_field(1, std::stoll(d)) : bytes_field(2, d));
    }
    const std::string tensor = number_field(1, 1) + bytes_field(2, shape);
    return bytes_field(1, name) + bytes_field(2, bytes_field(1, tensor));
}

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

/// A ModelProto of operator set 21 with x: float[n, 4] and y.
inline std::string model(const std::vector<std::string>& nodes, const std::string& initializer = "") {
    std::string graph;
    for (const std::string& n : nodes) graph += bytes_field(1, n);
    if (!initializer.empty()) graph += bytes_field(5, initializer);
    graph += bytes_field(11, float_value("x", {"n", "4"})) + bytes_field(12, float_value("y", {}));
    return number_field(1, 10) + bytes_field(7, graph) + bytes_field(8, number_field(2, 21));
}

}  // namespace headrace::onnx
