// Runs that end before their end, in the middle of a node.
#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "ops/arithmetic.h"
#include "test_graph.h"

namespace headrace {
namespace {

using namespace testing;
using Clock = std::chrono::steady_clock;
using List = std::vector<std::int64_t>;

struct Operand {
    Shape shape;
    DType dtype = DType::f32;
    std::function<double(std::size_t)> element = {};  ///< absent: small numbers without an order
};

/// One op that would take from seconds to minutes.
struct LongCase {
    std::string name, op;
    std::vector<Operand> operands;
    NamedAttrs attrs;
};
void PrintTo(const LongCase& c, std::ostream* out) { *out << c.name; }

std::vector<std::byte> bytes_of_operand(const Operand& operand) {
    const List shape = TensorType{operand.dtype, operand.shape}.sizes();
    std::size_t count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
    std::vector<std::byte> bytes(headrace::bytes_of(operand.dtype, static_cast<std::int64_t>(count)));
    std::uint32_t random = 1;
    for (std::size_t i = 0; i < count; ++i) {
        random = random * 1664525u + 1013904223u;
        const double value = operand.element ? operand.element(i) : (random >> 8) / double{1 << 24} - 0.5;
        visit_dtype(operand.dtype, [&]<class T>() {
            const T converted = ops::convert<T>(value);
            std::memcpy(bytes.data() + i * sizeof converted, &converted, sizeof converted);
        });
    }
    return bytes;
}

class Prepared {
public:
    explicit Prepared(const LongCase& c)
        : executable_(compile(graph_of(c), {.threads = 2})), session_(executable_) {
        for (const Operand& operand : c.operands) {
            shapes_.push_back(TensorType{operand.dtype, operand.shape}.sizes());
            inputs_.push_back(bytes_of_operand(operand));
        }
        for (std::size_t i = 0; i < inputs_.size(); ++i)
            views_.push_back({c.operands[i].dtype, shapes_[i], inputs_[i].data()});
    }

    std::vector<std::byte> run(const RunOptions& options) {
        std::vector<std::byte> output;
        session_.run(
            views_,
            [&](const std::vector<List>& shapes) {
                const DType dtype = executable_.outputs()[0].dtype;
                std::int64_t count = 1;
                for (const std::int64_t extent : shapes[0]) count *= extent;
                output.resize(headrace::bytes_of(dtype, count));
                return std::vector<OutputView>{{output.data(), output.size()}};
            },
            options);
        return output;
    }
    std::string implementation() const { return session_.stats().nodes.at(0).implementation; }

private:
    static Graph graph_of(const LongCase& c) {
        TestGraph g;
        std::vector<ValueId> operands;
        for (const Operand& operand : c.operands)
            operands.push_back(g.input("x" + std::to_string(operands.size()), operand.shape, operand.dtype));
        g.output("y", g.op(c.op, operands, c.attrs));
        return g.finish();
    }

    Executable executable_;
    Session session_;
    std::vector<List> shapes_;
    std::vector<std::vector<std::byte>> inputs_;
    std::vector<InputView> views_;
};

std::string name_of_case(const ::testing::TestParamInfo<LongCase>& info) { return info.param.name; }

class LongNode : public ::testing::TestWithParam<LongCase> {};

TEST_P(LongNode, EndsSoonAfterItsCallerWantsItToStop) {
    Prepared prepared(GetParam());
    for (const int threads : {1, 2}) {
        const auto wish = Clock::now() + std::chrono::milliseconds(50);
        const RunOptions options{.threads = threads, .should_stop = [&] { return Clock::now() > wish; }};
        EXPECT_THAT(message_of([&] { prepared.run(options); }, Code::cancelled),
                    ::testing::HasSubstr("the run was stopped by its caller"));
        const std::chrono::duration<double> late = Clock::now() - wish;
        RecordProperty("late_ms_" + std::to_string(threads), static_cast<int>(late.count() * 1000));
        EXPECT_LT(late.count(), 10);
    }
}

/// Two boxes that lie side by side are both kept, and each is compared with all before.
double side_by_side(std::size_t i) {
    const double begin = static_cast<double>(i / 4) * 2;
    return i % 4 < 2 ? begin : begin + 1;
}

std::vector<LongCase> long_cases() {
    const Operand image{{1, 1, 2000, 2000}};
    const NamedAttrs window{{"window_dimensions", List{1001, 1001}}};
    const Operand last{{1, 2000, 2000, 1}};
    NamedAttrs window_of_last = window;
    window_of_last.emplace_back("layout", std::string("nhwc"));
    return {
        {"MaxPool", "max_pool2d", {image}, window},
        {"AveragePool", "average_pool2d", {image}, window},
        {"MaxPoolOfChannelsLast", "max_pool2d", {last}, window_of_last},
        {"MaxPoolOfBytes", "max_pool2d", {{last.shape, DType::u8}}, window_of_last},
        {"Convolution", "conv2d", {{{1, 1, 1600, 1600}}, {{1, 1, 801, 801}}}, {}},
        {"TransposedConvolution", "conv_transpose2d", {{{1, 1, 2000, 2000}}, {{1, 1, 101, 101}}}, {}},
        {"Product", "matmul", {{{5000, 5000}}, {{5000, 5000}}}, {}},
        {"ProductOfDoubles", "matmul", {{{2500, 2500}, DType::f64}, {{2500, 2500}, DType::f64}}, {}},
        {"ProductOfHalfFloats", "matmul", {{{5000, 5000}, DType::f16}, {{5000, 5000}, DType::f16}}, {}},
        {"Attention",
         "scaled_dot_product_attention",
         {{{1, 1, 40000, 64}}, {{1, 1, 40000, 64}}, {{1, 1, 40000, 64}}},
         {}},
        {"Sort", "sort", {{{1 << 24}}}, {{"axis", std::int64_t{0}}}},
        {"Unique", "unique", {{{1 << 23}}}, {}},
        {"NonMaxSuppression",
         "non_max_suppression",
         {{{1, 150000, 4}, DType::f32, side_by_side},
          {{1, 1, 150000}},
          {{1}, DType::i64, [](std::size_t) { return 150000.0; }},
          {{1}, DType::f32, [](std::size_t) { return 0.5; }}},
         {}},
        {"Lstm",
         "lstm",
         {{{20000, 1, 8}}, {{1, 2048, 8}}, {{1, 2048, 512}}},
         {{"hidden_size", std::int64_t{512}}}},
        {"Inverse", "matrix_inverse", {{{1500, 1500}, DType::f64}}, {}},
    };
}
INSTANTIATE_TEST_SUITE_P(All, LongNode, ::testing::ValuesIn(long_cases()), &name_of_case);

class NodeInPieces : public ::testing::TestWithParam<LongCase> {};

TEST_P(NodeInPieces, GivesTheSameAsInOne) {
    Prepared prepared(GetParam());
    const auto whole = prepared.run({.threads = 2});
    for (const int threads : {1, 2}) {
        int asked = 0;
        const auto pieces = prepared.run({.threads = threads, .should_stop = [&] { return ++asked < 0; }});
        EXPECT_GT(asked, 2) << prepared.implementation() << " was one piece";
        ASSERT_EQ(pieces.size(), whole.size());
        const auto *a = reinterpret_cast<const float*>(whole.data()),
                   *b = reinterpret_cast<const float*>(pieces.data());
        for (std::size_t i = 0; i < whole.size() / sizeof(float); ++i) ASSERT_NEAR(a[i], b[i], 1e-3) << i;
    }
}

std::vector<LongCase> cases_in_pieces() {
    return {
        {"MaxPool", "max_pool2d", {{{1, 3, 300, 301}}}, {{"window_dimensions", List{51, 51}}}},
        {"AveragePool",
         "average_pool2d",
         {{{1, 3, 300, 301}}},
         {{"window_dimensions", List{51, 51}}, {"padding", List{3, 2, 5, 7}}}},
        {"MaxPoolOfChannelsLast",
         "max_pool2d",
         {{{1, 300, 301, 3}}},
         {{"window_dimensions", List{51, 51}}, {"layout", std::string("nhwc")}}},
        {"Convolution", "conv2d", {{{2, 24, 67, 71}}, {{40, 24, 5, 5}}}, {{"padding", List{2, 2, 2, 2}}}},
        {"GroupsOfAConvolution",
         "conv2d",
         {{{2, 64, 131, 71}}, {{64, 8, 5, 5}}},
         {{"padding", List{2, 2, 2, 2}}, {"groups", std::int64_t{8}}}},
        {"TransposedConvolution", "conv_transpose2d", {{{2, 48, 97, 101}}, {{48, 33, 5, 5}}}, {}},
        {"Product", "matmul", {{{611, 633}}, {{633, 655}}}, {}},
        {"Products", "matmul", {{{7, 233, 411}}, {{7, 411, 255}}}, {}},
        {"Attention",
         "scaled_dot_product_attention",
         {{{2, 3, 801, 64}}, {{2, 3, 801, 64}}, {{2, 3, 801, 64}}},
         {}},
    };
}
INSTANTIATE_TEST_SUITE_P(All, NodeInPieces, ::testing::ValuesIn(cases_in_pieces()), &name_of_case);

TEST(StoppedRun, TakesItsFailuresWithIt) {
    TestGraph g;
    const ValueId index = g.input("index", {1}, DType::i32);
    g.output("checked", g.op("checked_indices", {index}, {{"extents", Shape{4}}}));
    const ValueId x = g.input("x", {1, 1, 600, 600}), filter = g.input("filter", {1, 1, 61, 61});
    g.output("y", g.op("conv2d", {x, filter}));
    Session session(compile(g.finish(), {.threads = 1}));
    const std::vector<float> image(600 * 600), window(61 * 61);
    std::int32_t number = 4, result = 0;
    std::vector<float> y(540 * 540);
    const std::vector<List> shapes{{1}, {1, 1, 600, 600}, {1, 1, 61, 61}};
    const std::vector<InputView> inputs{{DType::i32, shapes[0], &number},
                                        {DType::f32, shapes[1], image.data()},
                                        {DType::f32, shapes[2], window.data()}};
    const std::vector<OutputView> outputs{{&result, sizeof result}, {y.data(), y.size() * sizeof(float)}};
    int asked = 0;
    const RunOptions stops{.should_stop = [&] { return ++asked > 4; }};
    EXPECT_THAT(message_of([&] { session.run(inputs, outputs, stops); }, Code::cancelled),
                ::testing::HasSubstr("the run was stopped by its caller"));
    number = 3;
    session.run(inputs, outputs);
    EXPECT_EQ(result, 3);
}

}  // namespace
}  // namespace headrace
