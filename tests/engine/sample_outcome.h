#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "sample_graph.h"

namespace headrace::testing {

/// What running a sample gave, and where.
struct Outcome {
    std::vector<std::vector<std::byte>> outputs;
    std::string implementation;
    std::string device;
};

/// Runs a sample as it is: no pass may compute it beforehand.
inline Outcome execute(const Built& built, CompileOptions options) {
    options.disabled_passes = {"fold_constants", "eliminate_no_ops"};
    Session session(compile(built.graph, options));
    std::vector<std::vector<std::int64_t>> shapes;
    std::vector<InputView> in;
    for (ValueId id : built.graph.inputs) shapes.push_back(built.graph.value(id).type.sizes());
    for (std::size_t i = 0; i < built.inputs.size(); ++i)
        in.push_back(
            {built.graph.value(built.graph.inputs[i]).type.dtype, shapes[i], built.inputs[i].data()});
    Outcome outcome;
    std::vector<OutputView> out;
    for (const auto& [name, id] : built.graph.outputs)
        outcome.outputs.emplace_back(built.graph.value(id).type.bytes());
    for (auto& o : outcome.outputs) out.push_back({o.data(), o.size()});
    session.run(in, out);
    outcome.implementation = session.stats().nodes[0].implementation;
    outcome.device = session.stats().nodes[0].device;
    return outcome;
}

/// An odd number of 4-bit elements leaves half of the last byte unused.
inline std::vector<std::byte> without_padding(const TensorType& type, std::vector<std::byte> bytes) {
    if (bits_of(type.dtype) == 4 && type.elements() % 2 == 1) bytes.back() &= std::byte{0xF};
    return bytes;
}

inline void expect_same(const TensorType& type, const std::vector<std::byte>& actual,
                        const std::vector<std::byte>& expected, double tolerance) {
    if (!is_float(type.dtype)) {
        EXPECT_EQ(without_padding(type, actual), without_padding(type, expected));
        return;
    }
    visit_dtype(type.dtype, [&]<class T>() {
        for (std::int64_t i = 0; i < type.elements(); ++i) {
            const double a =
                static_cast<double>(static_cast<compute_t<T>>(reinterpret_cast<const T*>(actual.data())[i]));
            const double e = static_cast<double>(
                static_cast<compute_t<T>>(reinterpret_cast<const T*>(expected.data())[i]));
            if (std::isnan(e)) {
                ASSERT_TRUE(std::isnan(a)) << "at " << i;
            } else if (std::isinf(e)) {
                ASSERT_EQ(a, e) << "at " << i;
            } else {
                ASSERT_NEAR(a, e, tolerance * std::max(1.0, std::abs(e))) << "at " << i;
            }
        }
    });
}

}  // namespace headrace::testing
