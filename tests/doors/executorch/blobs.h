#pragma once
#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "delegate_call.h"
#include "headrace/graph_writer.h"

namespace headrace::testing {

constexpr int kMostRows = 16;

inline std::string as_string(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A program with a weight, a state and a length that is known at run time:
///     out0[n, out] = relu(in0[n, in] · weight), out1[out] = total += sum of out0's rows
struct Layer {
    int in, out;
    std::vector<float> weight;
    Weights weights;
    std::string blob;
    std::string key = "layer.weight";

    explicit Layer(unsigned seed, int in = 4, int out = 3) : in(in), out(out), weight(in * out) {
        std::mt19937 random(seed);
        std::uniform_real_distribution<float> real(-1, 1);
        for (float& value : weight) value = real(random);
        const auto bytes = std::as_bytes(std::span(weight));
        weights.contents[key] = as_string(bytes);
        GraphWriter w;
        const auto x = w.input("in0", DType::f32, {Extent::symbol("n", 1, kMostRows), in});
        const auto product = w.op("matmul", {x, w.constant(DType::f32, {in, out}, bytes, nullptr, key)})[0];
        const auto y = w.op("relu", {product})[0];
        w.output("out0", y);
        const auto sum = w.op("reduce_sum", {y}, {{"axes", std::vector<std::int64_t>{0}}})[0];
        const auto total = w.state("total", DType::f32, {out}, {}, nullptr);
        w.output("out1", w.op("assign", {total, w.op("add", {total, sum})[0]})[0]);
        blob = as_string(graph_to_bytes(*w.finish()));
    }

    /// What the graph computes; adds to the total.
    std::vector<float> expected(const std::vector<float>& x, std::vector<float>& total) const {
        const std::size_t rows = x.size() / in;
        std::vector<float> y(rows * out);
        for (std::size_t i = 0; i < rows; ++i)
            for (int j = 0; j < out; ++j) {
                float sum = 0;
                for (int k = 0; k < in; ++k) sum += x[i * in + k] * weight[k * out + j];
                total[j] += y[i * out + j] = std::max(sum, 0.0f);
            }
        return y;
    }
};

}  // namespace headrace::testing
