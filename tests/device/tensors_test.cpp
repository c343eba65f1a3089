/// Tensors between runs on a device: they stay there, and are right.
#include <gtest/gtest.h>

#include "device/test_device.h"
#include "engine/test_graph.h"
#include "headrace/tensor.h"
#include "headrace/webnn.h"

namespace headrace {
namespace {

using namespace testing;
using Values = std::vector<float>;

void write(Tensor& tensor, const Values& values) {
    tensor.write(values.data(), values.size() * sizeof(float));
}
Values read(const Tensor& tensor) {
    Values values(tensor.bytes() / sizeof(float));
    tensor.read(values.data(), tensor.bytes());
    return values;
}

TEST(DeviceTensors, AChainOfDispatchesCopiesNothing) {
    std::vector<Values> found;
    const Values weights = random_floats(32 * 32, 1), start = random_floats(16 * 32, 2);
    for (const std::string& device : {std::string("cpu"), test_device()}) {
        const webnn::MLContext context({.device = device});
        webnn::MLGraphBuilder builder(context);
        const auto x = builder.input("x", {DType::f32, {16, 32}});
        const auto w =
            builder.constant({DType::f32, {32, 32}}, weights.data(), weights.size() * sizeof(float));
        const auto graph = builder.build({{"y", builder.tanh(builder.matmul(x, w))}});
        const webnn::MLTensorDescriptor like{
            .dataType = DType::f32, .shape = {16, 32}, .readable = true, .writable = true};
        const webnn::MLTensor a = context.createTensor(like), b = context.createTensor(like);
        context.writeTensor(a, start.data(), start.size() * sizeof(float));
        for (int i = 0; i < 10; ++i) {
            context.dispatch(graph, {{"x", i % 2 ? b : a}}, {{"y", i % 2 ? a : b}});
            EXPECT_EQ(graph.runStats().copies, i == 0 && device != "cpu" ? 1 : 0) << device << " " << i;
        }
        Values& values = found.emplace_back(start.size());
        context.readTensor(a, values.data(), values.size() * sizeof(float));
    }
    expect_close(found[1], found[0], 1e-4f);
}

/// One step of a decoder: a row behind those of the cache, and what attention makes of all.
Graph step() {
    TestGraph g;
    const ValueId cache = g.input("cache", {7, 16}), row = g.input("row", {1, 16});
    const ValueId longer = g.op("concat", {cache, row}, {{"axis", std::int64_t{0}}});
    const ValueId seen =
        g.op("softmax", {g.op("matmul", {row, g.op("transpose", {longer})})}, {{"axis", std::int64_t{1}}});
    g.output("y", g.op("matmul", {seen, longer}));
    g.output("cache", g.op("slice", {longer},
                           {{"starts", std::vector<std::int64_t>{1, 0}},
                            {"sizes", std::vector<std::int64_t>{7, 16}}}));
    return g.finish();
}

TEST(DeviceTensors, ACacheGoesFromOutputToInputThere) {
    const Graph graph = step();
    Session here(compile(graph, {.threads = 1}));
    Session there(compile(graph, {.device = test_device(), .threads = 1}));
    Tensor caches[2]{{DType::f32, {7, 16}}, {DType::f32, {7, 16}}}, y(DType::f32, {1, 16});
    Tensor row(DType::f32, {1, 16});
    Values expected_cache(7 * 16);
    for (unsigned i = 0; i < 6; ++i) {
        const Values next = random_floats(16, i);
        const auto expected = run(here, {{7, 16}, {1, 16}}, {expected_cache, next});
        write(row, next);
        const InputView in[] = {caches[i % 2].input(), row.input()};
        const OutputView out[] = {y.output(), caches[1 - i % 2].output()};
        there.run(in, out);
        EXPECT_LE(there.stats().copied_bytes, 2u * 7 * 16 * 4) << "a part of another result goes by the host";
        expect_close(read(y), expected[0], 1e-5f);
        expect_close(read(caches[1 - i % 2]), expected[1], 1e-5f);
        expected_cache = expected[1];
    }
}

TEST(DeviceTensors, AreBroughtToASessionOnTheCpu) {
    TestGraph g;
    g.output("y", g.op("exp", {g.input("x", {8})}));
    const Graph graph = g.finish();
    Session here(compile(graph)), there(compile(graph, {.device = test_device()}));
    Tensor x(DType::f32, {8}), y(DType::f32, {8}), z(DType::f32, {8});
    write(x, Values(8, -1));
    const InputView first[] = {x.input()}, second[] = {y.input()};
    const OutputView middle[] = {y.output()}, last[] = {z.output()};
    there.run(first, middle);
    EXPECT_TRUE(y.is_on_device());
    here.run(second, last);
    EXPECT_EQ(here.stats().copies, 1);
    expect_close(read(z), Values(8, std::exp(std::exp(-1.0f))), 1e-6f);
}

}  // namespace
}  // namespace headrace
