#include "headrace/webnn.h"

#include <gtest/gtest.h>

#include <thread>

#include <iterator>
#include <set>
#include <sstream>

#include "doors/webnn/op_table.h"
#include "engine/test_graph.h"
#include "ops/catalog.h"

namespace headrace::webnn {
namespace {

MLContext cpu() { return MLContext({.accelerated = false}); }

using headrace::testing::message_of;

TEST(Webnn, BuildsDispatchesAndReadsBack) {
    const MLContext context = cpu();
    MLGraphBuilder builder(context);
    const MLOperand x = builder.input("x", {DType::f32, {2, 2}});
    const float weights[] = {1, 2, 3, 4};
    const MLOperand w = builder.constant({DType::f32, {2, 2}}, weights, sizeof(weights));
    const MLOperand y = builder.op1("relu", {builder.op1("matmul", {x, w})});
    EXPECT_EQ(y.dataType(), DType::f32);
    ASSERT_EQ(y.shape().size(), 2u);
    const MLGraph graph = builder.build({{"y", y}});
    const MLTensor in = context.createTensor({DType::f32, {2, 2}, false, true});
    const MLTensor out = context.createTensor({DType::f32, {2, 2}, true, false});
    const float values[] = {1, 0, 0, -1};
    context.writeTensor(in, values, sizeof(values));
    context.dispatch(graph, {{"x", in}}, {{"y", out}});
    float result[4];
    context.readTensor(out, result, sizeof(result));
    EXPECT_EQ(std::vector<float>(result, result + 4), (std::vector<float>{1, 2, 0, 0}));
}

TEST(Webnn, OperatorsAndOptionsGoByTheSpecificationsNames) {
    const MLContext context = cpu();
    MLGraphBuilder builder(context);
    const MLOperand x = builder.input("x", {DType::f32, {1, 1, 2, 2}});
    const float one = 2;
    const MLOperand w = builder.constant({DType::f32, {1, 1, 1, 1}}, &one, sizeof(one));
    const MLOperand pooled = builder.averagePool2d(builder.relu(builder.conv2d(x, w)),
                                                   {{"windowDimensions", std::vector<std::int64_t>{2, 2}}});
    const MLOperand y = builder.reduceSum(pooled, {{"keepDimensions", true}});
    ASSERT_EQ(y.shape().size(), 4u);
    const MLGraph graph = builder.build({{"y", builder.reshape(builder.transpose(y), {1})}});
    const float values[] = {1, -5, 3, 4};
    float result = 0;
    const std::vector<std::int64_t> shape{1, 1, 2, 2};
    const InputView in[] = {{DType::f32, shape, values}};
    const OutputView out[] = {{&result, sizeof(result)}};
    graph.run(in, out);
    EXPECT_EQ(result, 4.0f);
    MLGraphBuilder other(context);
    const MLOperand z = other.input("z", {DType::f32, {2}});
    EXPECT_NE(message_of(
                  [&] {
                      other.reduceSum(z, {{"keepDimension", true}}, "total");
                  },
                  Code::invalid_argument)
                  .find("reduce_sum (total): unknown attribute 'keep_dimension'"),
              std::string::npos);
}

TEST(Webnn, ScalarConstantsKeepSixtyFourBits) {
    const MLContext context = cpu();
    MLGraphBuilder builder(context);
    const MLOperand x = builder.input("x", {DType::i64, {1}});
    const std::int64_t big = (std::int64_t{1} << 62) + 1;
    const MLGraph graph = builder.build({{"y", builder.op1("add", {x, builder.constant(DType::i64, big)})}});
    const std::int64_t one = 1;
    std::int64_t y = 0;
    const std::vector<std::int64_t> shape{1};
    const InputView in[] = {{DType::i64, shape, &one}};
    const OutputView out[] = {{&y, sizeof(y)}};
    graph.run(in, out);
    EXPECT_EQ(y, big + 1);
}

TEST(Webnn, ADestroyedGraphSaysSo) {
    const MLContext context = cpu();
    MLGraphBuilder builder(context);
    MLGraph graph = builder.build({{"y", builder.op1("relu", {builder.input("x", {DType::f32, {1}})})}});
    graph.destroy();
    EXPECT_EQ(message_of([&] { graph.run({}, {}); }, Code::invalid_state), "the graph has been destroyed");
}

TEST(Webnn, AStatePersistsBetweenDispatchesUntilItIsReset) {
    const MLContext context({.accelerated = false});
    MLGraphBuilder builder(context);
    const std::vector<float> start{10, 20, 30, 40};
    const MLOperand total = builder.state("total", {DType::f32, {4}}, start.data(), 16);
    const MLOperand x = builder.input("x", {DType::f32, {2}});
    const MLGraph graph = builder.build({{"y", builder.identity(builder.accumulate(total, x, 1))}});
    const std::vector<float> one{1, 2};
    std::vector<float> y(4);
    const std::vector<std::int64_t> shape{2};
    const auto run = [&] { graph.run({{{DType::f32, shape, one.data()}}}, {{{y.data(), 16}}}); };
    run();
    run();
    EXPECT_EQ(y, (std::vector<float>{10, 22, 34, 40}));
    std::vector<float> held(4);
    graph.readState("total", held.data(), 16);
    EXPECT_EQ(held, y);
    graph.resetStates();
    run();
    EXPECT_EQ(y, (std::vector<float>{10, 21, 32, 40}));
    graph.writeState("total", std::vector<float>(4, 0).data(), 16);
    run();
    EXPECT_EQ(y, (std::vector<float>{0, 1, 2, 0}));
    EXPECT_EQ(graph.states()[0].name, "total");
    EXPECT_THROW(graph.readState("totals", held.data(), 16), Exception);
    EXPECT_THROW(graph.writeState("total", held.data(), 12), Exception);
}

TEST(Webnn, ConcurrentDispatchesOfAGraphWithStatesTakeTurns) {
    const MLContext context({.accelerated = false});
    MLGraphBuilder builder(context);
    const MLOperand total = builder.state("total", {DType::i64, {1}});
    const MLOperand x = builder.input("x", {DType::i64, {1}});
    const MLGraph graph = builder.build({{"y", builder.accumulate(total, x)}});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            const std::vector<std::int64_t> shape{1};
            const std::int64_t one = 1;
            std::int64_t y = 0;
            for (int i = 0; i < 100; ++i) graph.run({{{DType::i64, shape, &one}}}, {{{&y, 8}}});
        });
    for (auto& thread : threads) thread.join();
    std::int64_t sum = 0;
    graph.readState("total", &sum, 8);
    EXPECT_EQ(sum, 400);
}

TEST(Webnn, ConcurrentDispatchesNeverTearATensor) {
    const MLContext context = cpu();
    MLGraphBuilder builder(context);
    constexpr std::int64_t kSide = 300;
    const MLOperand x = builder.input("x", {DType::f32, {kSide, kSide}});
    const MLGraph graph = builder.build({{"y", builder.relu(x)}});
    const MLTensor shared = context.createTensor({DType::f32, {kSide, kSide}, true, true});
    std::vector<std::thread> threads;
    std::atomic<int> torn = 0;
    for (int t = 1; t <= 4; ++t)
        threads.emplace_back([&, t] {
            std::vector<float> values(kSide * kSide, static_cast<float>(t));
            const MLTensor mine = context.createTensor({DType::f32, {kSide, kSide}, true, true});
            context.writeTensor(mine, values.data(), values.size() * 4);
            for (int i = 0; i < 30; ++i) {
                context.dispatch(graph, {{"x", mine}}, {{"y", shared}});
                context.readTensor(shared, values.data(), values.size() * 4);
                torn += std::count(values.begin(), values.end(), values[0]) != kSide * kSide;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(torn, 0);
}

TEST(Webnn, DispatchesThatSwapTensorsDoNotWaitForEachOther) {
    const MLContext context = cpu();
    MLGraphBuilder builder(context);
    const MLGraph graph = builder.build({{"y", builder.identity(builder.input("x", {DType::f32, {1000}}))}});
    const MLTensor a = context.createTensor({DType::f32, {1000}}),
                   b = context.createTensor({DType::f32, {1000}});
    std::thread there([&] {
        for (int i = 0; i < 500; ++i) context.dispatch(graph, {{"x", a}}, {{"y", b}});
    });
    for (int i = 0; i < 500; ++i) context.dispatch(graph, {{"x", b}}, {{"y", a}});
    there.join();
}

TEST(Webnn, FinishGivesAGraphForSessionsOfOnesOwn) {
    MLGraphBuilder builder(MLContext({.accelerated = false}));
    const MLOperand count = builder.state("count", {DType::f32, {1}});
    const MLOperand x = builder.input("x", {DType::f32, {1}});
    const Executable executable =
        compile(*builder.finish({{"y", builder.assign(count, builder.add(count, x))}}));
    Session a(executable), b(executable);
    const std::vector<std::int64_t> shape{1};
    const float one = 1;
    float y = 0;
    for (int i = 0; i < 3; ++i) a.run({{{DType::f32, shape, &one}}}, {{{&y, 4}}});
    EXPECT_EQ(y, 3);
    b.run({{{DType::f32, shape, &one}}}, {{{&y, 4}}});
    EXPECT_EQ(y, 1);
}

TEST(Webnn, AConstantTensorBecomesAConstantWithoutACopyAndOutlivesItself) {
    const MLContext context = cpu();
    const std::vector<float> values{1, -2, 3};
    MLTensor tensor = context.createConstantTensor({DType::f32, {3}}, values.data(), 12);
    MLGraphBuilder builder(context);
    const MLOperand x = builder.input("x", {DType::f32, {3}});
    const MLGraph graph = builder.build({{"y", builder.add(x, builder.constant(tensor))}});
    tensor.destroy();
    const std::vector<std::int64_t> shape{3};
    std::vector<float> y(3);
    graph.run({{{DType::f32, shape, values.data()}}}, {{{y.data(), 12}}});
    EXPECT_EQ(y, (std::vector<float>{2, -4, 6}));
    MLGraphBuilder other(context);
    EXPECT_THROW(other.constant(tensor), Exception);
    EXPECT_THROW(other.constant(context.createTensor({DType::f32, {3}})), Exception);
    EXPECT_THROW(context.createConstantTensor({DType::f32, {3}}, values.data(), 8), Exception);
    float out = 0;
    EXPECT_THROW(context.readTensor(tensor, &out, 4), Exception);
}

TEST(Webnn, ADestroyedContextRefusesEveryCall) {
    const MLContext context = cpu();
    MLGraphBuilder builder(context);
    const MLOperand x = builder.input("x", {DType::f32, {3}});
    const MLTensor tensor = context.createTensor({DType::f32, {3}, true, true});
    context.destroy();
    const auto refused = [](auto&& call) {
        return message_of(call, Code::invalid_state).find("the context has been destroyed") !=
               std::string::npos;
    };
    float values[3] = {};
    EXPECT_TRUE(refused([&] { builder.build({{"y", builder.relu(x)}}); }));
    EXPECT_TRUE(refused([&] { MLGraphBuilder another(context); }));
    EXPECT_TRUE(refused([&] { context.createTensor({DType::f32, {3}}); }));
    EXPECT_TRUE(refused([&] { context.readTensor(tensor, values, 12); }));
    EXPECT_TRUE(refused([&] { context.writeTensor(tensor, values, 12); }));
}

TEST(OpTable, RowsAreSortedAndEveryParameterExists) {
    const auto& rows = op_rows();
    for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_LT(rows[i - 1].name, rows[i].name);
    for (const OpRow& row : rows) {
        std::istringstream words{std::string(row.parameters)};
        const auto count = std::distance(std::istream_iterator<std::string>(words), {});
        for (const MLSignature& s : signatures()) {
            if (s.name == row.name) {
                EXPECT_EQ(static_cast<long>(s.parameters.size()), count) << row.name;
            }
        }
    }
}

TEST(OpTable, EveryAttributeAndOperandOfAnOfferedOpIsReachable) {
    for (const MLSignature& s : signatures()) {
        const OpDef* op = find_op(s.name);
        ASSERT_NE(op, nullptr) << s.name;
        std::set<std::string> targets;
        for (const MLParameter& p : s.parameters) targets.insert(p.target);
        for (const OperandRule& rule : op->operands)
            EXPECT_TRUE(targets.contains(std::string(rule.name))) << s.name << " " << rule.name;
        for (const Field& field : op->fields)
            EXPECT_TRUE(targets.contains(std::string(field.name))) << s.name << " " << field.name;
    }
}

TEST(SupportLimits, NameEveryOperandWithItsTypes) {
    for (const auto& [name, operands] : support_limits().operators)
        for (const auto& [operand, limits] : operands)
            EXPECT_FALSE(limits.dataTypes.empty()) << name << " " << operand;
}

}  // namespace
}  // namespace headrace::webnn
