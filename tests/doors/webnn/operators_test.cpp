#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <set>

#include "doors/webnn/op_table.h"
#include "doors/webnn/operator_cases.h"
#include "ir/graph.h"

namespace headrace::webnn {
namespace testing {
namespace {

std::vector<std::byte> to_bytes(const Elements& elements) {
    return visit_dtype(elements.dtype, [&]<class T>() {
        std::vector<std::byte> bytes(elements.values.size() * sizeof(T));
        for (std::size_t i = 0; i < elements.values.size(); ++i) {
            const T element(static_cast<compute_t<T>>(elements.values[i]));
            std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
        }
        return bytes;
    });
}

void read_values(const std::vector<std::byte>& bytes, Elements& elements) {
    visit_dtype(elements.dtype, [&]<class T>() {
        for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
            T element;
            std::memcpy(&element, bytes.data() + at, sizeof(T));
            elements.values.push_back(static_cast<double>(static_cast<compute_t<T>>(element)));
        }
    });
}

}  // namespace

MLOperand Call::input(Ints shape, std::vector<double> values, DType dtype) {
    const MLOperandDescriptor descriptor{dtype, {shape.begin(), shape.end()}};
    inputs_.push_back({dtype, std::move(shape), std::move(values)});
    return builder.input("x" + std::to_string(inputs_.size()), descriptor);
}

std::vector<Elements> Call::compute(const Results& results) {
    std::map<std::string, MLOperand> named;
    for (const MLOperand& result : results) named.emplace("y" + std::to_string(named.size()), result);
    const auto graph = builder.finish(named);
    for (const Node& node : graph->nodes) operators_.emplace_back(find_row(*node.op).row->idl);
    std::vector<std::vector<std::byte>> in, out;
    std::vector<InputView> in_views;
    for (const Elements& x : inputs_) in.push_back(to_bytes(x));
    for (std::size_t i = 0; i < in.size(); ++i)
        in_views.push_back({inputs_[i].dtype, inputs_[i].shape, in[i].data()});
    const Executable executable = compile(*graph);
    std::vector<Elements> computed;
    for (const TensorInfo& info : executable.outputs()) {
        computed.push_back({info.dtype, info.shape, {}});
        std::int64_t count = 1;
        for (std::int64_t extent : info.shape) count *= extent;
        out.emplace_back(bytes_of(info.dtype, count));
    }
    std::vector<OutputView> out_views;
    for (auto& bytes : out) out_views.push_back({bytes.data(), bytes.size()});
    Session(executable).run(in_views, out_views);
    for (std::size_t i = 0; i < out.size(); ++i) read_values(out[i], computed[i]);
    return computed;
}

namespace {

std::vector<OperatorCase> all_cases() {
    std::vector<OperatorCase> all;
    for (auto* cases : {element_cases, tensor_cases, network_cases})
        for (OperatorCase& one : cases()) all.push_back(std::move(one));
    return all;
}

class WebnnOperator : public ::testing::TestWithParam<OperatorCase> {};

TEST_P(WebnnOperator, HasAMethodThatComputesIt) {
    Call call;
    const Results results = GetParam().call(call);
    const std::vector<Elements>& expected = GetParam().expected;
    ASSERT_EQ(results.size(), expected.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
        EXPECT_EQ(results[i].dataType(), expected[i].dtype);
        Ints shape;
        for (const MLDimension& extent : results[i].shape()) shape.push_back(extent.number().value());
        EXPECT_EQ(shape, expected[i].shape) << "result " << i;
    }
    const std::vector<Elements> computed = call.compute(results);
    EXPECT_THAT(call.operators(), ::testing::ElementsAre(GetParam().name));
    for (std::size_t i = 0; i < computed.size(); ++i) {
        EXPECT_EQ(computed[i].dtype, expected[i].dtype);
        EXPECT_THAT(computed[i].values,
                    ::testing::Pointwise(::testing::NanSensitiveDoubleNear(1e-5), expected[i].values))
            << "result " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(All, WebnnOperator, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(WebnnOperators, EveryRowOfTheTableIsCalled) {
    std::set<std::string> rows, called;
    for (const OpRow& row : op_rows()) rows.emplace(row.idl);
    for (const OperatorCase& one : all_cases()) EXPECT_TRUE(called.insert(one.name).second) << one.name;
    EXPECT_THAT(called, ::testing::ContainerEq(rows));
}

}  // namespace
}  // namespace testing
}  // namespace headrace::webnn
