#include <gtest/gtest.h>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

using Extents = std::vector<std::int64_t>;

/// Signals [batch, channels, samples] whose convolutions are images of one row.
struct Signals : TinyGraph {
    ValueId x = input("x", {2, 3, 10}), w = constant("w", {3, 3, 1, 3});

    ValueId reshape(ValueId id, Extents extents) { return op("reshape", {id}, {{"new_shape", extents}}); }
    ValueId as_image(ValueId id) { return reshape(id, {2, 3, 1, 10}); }
    ValueId as_signal(ValueId id) { return reshape(id, {2, 3, 10}); }
    ValueId conv(ValueId id) { return op("conv2d", {as_image(id), w}, {{"padding", Extents{0, 0, 1, 1}}}); }
    ValueId number(float value, Shape shape = {}) {
        return constant<float>(shape.empty() ? "c" : "", DType::f32, std::move(shape), {value});
    }

    /// The formula of y after the pass, which must compute the same, with the convolution itself called so.
    std::string delay(ValueId y) {
        output("y", y);
        Graph graph = finish();
        const Graph before = graph;
        counts = run_pass("sink_reshapes", graph);
        expect_same_results(before, graph, 1e-5);
        std::string text = formula(graph, "y");
        for (const std::string conv :
             {"conv2d(reshape(x) {new_shape=[2, 3, 1, 10]}, w) {padding=[0, 0, 1, 1]}"})
            for (auto at = text.find(conv); at != std::string::npos; at = text.find(conv))
                text.replace(at, conv.size(), "conv");
        return text;
    }
    Counts counts;
};

TEST(DelayReshapes, MovesThemPastActivationsAndArithmeticWithNumbers) {
    Signals t;
    const ValueId y = t.op("mul", {t.number(2), t.op("gelu", {t.as_signal(t.conv(t.x))})});
    EXPECT_EQ(t.delay(y), "reshape(mul(c, gelu(conv))) {new_shape=[2, 3, 10]}");
    EXPECT_EQ(t.counts, (Counts{{"reshapes_delayed", 2}}));
}

TEST(DelayReshapes, LetsConvolutionsMeet) {
    Signals t;
    const ValueId first = t.op("relu", {t.as_signal(t.conv(t.x))});
    EXPECT_EQ(t.delay(t.as_signal(t.conv(first))),
              "reshape(conv2d(relu(conv), w) {padding=[0, 0, 1, 1]}) {new_shape=[2, 3, 10]}");
}

TEST(DelayReshapes, AddsImagesBeforeTheyBecomeSignals) {
    Signals t;
    const ValueId a = t.as_signal(t.conv(t.x)), b = t.as_signal(t.op("relu", {t.conv(t.x)}));
    EXPECT_EQ(t.delay(t.op("add", {a, t.op("tanh", {b})})).substr(0, 25), "reshape(add(conv, tanh(re");
}

TEST(DelayReshapes, TransposesTheImageInPlaceOfTheSignal) {
    {
        Signals t;
        const ValueId y = t.op("transpose", {t.as_signal(t.conv(t.x))}, {{"permutation", Extents{0, -1, 1}}});
        EXPECT_EQ(t.delay(y), "reshape(transpose(conv) {permutation=[0, 2, 3, 1]}) {new_shape=[2, 10, 3]}");
    }
    {
        Signals t;
        EXPECT_EQ(t.delay(t.op("transpose", {t.as_signal(t.conv(t.x))})),
                  "reshape(transpose(conv) {permutation=[2, 3, 1, 0]}) {new_shape=[10, 3, 2]}");
    }
    Signals t;  // no row is dropped
    const ValueId whole = t.reshape(t.conv(t.x), {2, 30});
    EXPECT_EQ(t.delay(t.op("transpose", {whole})).substr(0, 18), "transpose(reshape(");
}

TEST(DelayReshapes, LeavesThoseThatOthersReadOrThatSizesDependOn) {
    {
        Signals t;
        const ValueId signal = t.as_signal(t.conv(t.x));
        t.output("signal", signal);
        EXPECT_EQ(t.delay(t.op("relu", {signal})).substr(0, 12), "relu(reshape");
    }
    {
        Signals t;
        const ValueId slope = t.constant("slope", {3, 1});
        EXPECT_EQ(t.delay(t.op("mul", {t.as_signal(t.conv(t.x)), slope})).substr(0, 11), "mul(reshape");
    }
    {
        Signals t;  // the number has more dimensions than the image
        EXPECT_EQ(
            t.delay(t.op("mul", {t.as_signal(t.conv(t.x)), t.number(2, {1, 1, 1, 1, 1})})).substr(0, 11),
            "mul(reshape");
    }
    {
        Signals t;  // one row for each of several
        const ValueId row = t.reshape(t.op("conv2d", {t.input("i", {1, 3, 1, 10}), t.w}), {1, 3, 8});
        EXPECT_EQ(t.delay(t.op("add", {row, t.input("rows", {4, 3, 8})})).substr(0, 11), "add(reshape");
    }
    Signals t;  // no image
    EXPECT_EQ(t.delay(t.op("relu", {t.as_image(t.x)})).substr(0, 12), "relu(reshape");
}

}  // namespace
}  // namespace headrace::testing
