#pragma once
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "doors/onnx/model_bytes.h"
#include "doors/wasi_nn/chat_host.h"

namespace headrace::wasi_nn_test {

/// ONNX's numbers of types.
enum OnnxType {
    kF32 = 1,
    kU8 = 2,
    kI8 = 3,
    kI16 = 5,
    kI32 = 6,
    kI64 = 7,
    kBool = 9,
    kF16 = 10,
    kF64 = 11,
    kU32 = 12,
    kU64 = 13,
    kBf16 = 16
};

/// A ValueInfoProto; dims are numbers and names.
inline std::string value(std::string_view name, int type, const std::vector<std::string>& dims) {
    using namespace onnx;
    std::string shape;
    for (const std::string& d : dims) {
        const bool is_number = !d.empty() && d.find_first_not_of("0123456789") == std::string::npos;
        shape += bytes_field(1, is_number ? number_field(1, std::stoll(d)) : bytes_field(2, d));
    }
    const std::string tensor = number_field(1, type) + bytes_field(2, shape);
    return bytes_field(1, name) + bytes_field(2, bytes_field(1, tensor));
}

/// sum = x + w and product = x * w of x: f32[n, 2] and w: f32[2].
inline std::string sum_and_product() {
    return onnx::model_of({onnx::node("Add", {"x", "w"}, "sum"), onnx::node("Mul", {"x", "w"}, "product")},
                          {value("x", kF32, {"n", "2"}), value("w", kF32, {"2"})},
                          {value("sum", kF32, {"n", "2"}), value("product", kF32, {"n", "2"})});
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
template <class T = float>
std::vector<T> values_of(const Output& output) {
    std::vector<T> values(output.size / sizeof(T));
    std::memcpy(values.data(), output.bytes.data(), values.size() * sizeof(T));
    return values;
}

/// The numbers of an interface's types.
struct TypeNumbers {
    int f16 = 0, f32 = 1, f64 = 2, bf16, u8, i32, i64;
};
inline TypeNumbers types_of(Abi abi) {
    return abi == Abi::backend ? TypeNumbers{.bf16 = 3, .u8 = 4, .i32 = 5, .i64 = 6}
                               : TypeNumbers{.bf16 = 6, .u8 = 3, .i32 = 4, .i64 = 5};
}

/// Tests that run once with each library, and need no language model.
class EachGraphLibrary : public testing::TestWithParam<Abi> {
protected:
    void SetUp() override {
        if (wasi_nn_folder().empty()) GTEST_SKIP() << "the libraries are not built: llama.cpp is not set up";
        library.emplace(GetParam());
    }
    int set(const Host& host, std::uint32_t context, std::uint32_t index, std::string_view bytes, int type,
            std::vector<std::uint32_t> dimensions) const {
        Tensor tensor(GetParam(), bytes, type, std::move(dimensions));
        return library->raw_set_input(host.ctx(), context, index, tensor.get());
    }
    int set(const Host& host, std::uint32_t context, std::uint32_t index, const std::vector<float>& values,
            std::vector<std::uint32_t> dimensions) const {
        return set(host, context, index, wasi_nn_test::bytes_of(values), 1, std::move(dimensions));
    }
    int try_load(const Host& host, std::string_view bytes, std::uint32_t* graph, std::uint32_t encoding = 1,
                 std::uint32_t target = 0) const {
        return library->load_bytes(host.ctx(), bytes, encoding, target, graph);
    }
    std::uint32_t load(const Host& host, std::string_view bytes) const {
        std::uint32_t graph = 77;
        EXPECT_EQ(try_load(host, bytes, &graph), 0) << failure(host);
        return graph;
    }
    /// The error of the last call that failed, as a guest reads it.
    std::string failure(const Host& host) const {
        const Output output = library->get_output(host.ctx(), 0, 1);
        return output.code == 0 ? output.text() : "nothing failed";
    }
    std::string description(const Host& host, std::uint32_t context) const {
        return library->get_output(host.ctx(), context, UINT32_MAX).text();
    }

    std::optional<Library> library;
};

#define HR_EACH_GRAPH_LIBRARY(suite)                                                                       \
    INSTANTIATE_TEST_SUITE_P(                                                                              \
        Library, suite,                                                                                    \
        testing::Values(wasi_nn_test::Abi::backend, wasi_nn_test::Abi::llamacpp, wasi_nn_test::Abi::onnx), \
        [](const auto& info) { return name_of(info.param); })

}  // namespace headrace::wasi_nn_test
