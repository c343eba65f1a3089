#include <gtest/gtest.h>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

using Extents = std::vector<std::int64_t>;

struct Pad {
    Shape before{0, 0, 1, 0}, after{0, 0, 2, 1};
    NamedAttrs more = {};
};

/// A 3 x 3 convolution of a padded image of 4 channels, which pads what is to the left, too.
Graph padded(const Pad& p, NamedAttrs conv = {}, bool is_read_twice = false) {
    TinyGraph g;
    NamedAttrs attrs = p.more;
    attrs.emplace_back("beginning_padding", p.before);
    attrs.emplace_back("ending_padding", p.after);
    const ValueId x = g.op("pad", {g.input("x", {1, 4, 6, 5})}, attrs);
    conv.emplace_back("padding", Extents{0, 0, 1, 0});
    g.output("y", g.op("conv2d", {x, g.constant("w", {2, 4, 3, 3}), g.constant("b", {2})}, conv));
    if (is_read_twice) g.output("z", g.op("relu", {x}));
    return g.finish();
}

std::int64_t absorbed(Graph& graph, const PassContext& context = {}) {
    return run_pass("absorb_pads", graph, context).at("pads_absorbed");
}

void expect_pad_left(Graph graph, const PassContext& context = {}) {
    const std::string before = print(graph);
    EXPECT_EQ(absorbed(graph, context), 0);
    EXPECT_EQ(print(graph), before);
}

TEST(AbsorbPads, AddsZerosToAConvolutionsPadding) {
    Graph graph = padded({});
    const Graph before = graph;
    EXPECT_EQ(absorbed(graph), 1);
    EXPECT_EQ(formula(graph, "y"), "conv2d(x, w, b) {padding=[1, 2, 1, 1]}");
    expect_same_results(before, graph);
}

TEST(AbsorbPads, FindsRowsAndColumnsInImagesWithChannelsLast) {
    TinyGraph g;
    const ValueId x = g.op("pad", {g.input("x", {1, 6, 5, 4})},
                           {{"beginning_padding", Shape{0, 0, 1, 0}}, {"ending_padding", Shape{0, 2, 0, 0}}});
    g.output("y",
             g.op("conv2d", {x, g.constant("w", {2, 4, 3, 3})}, {{"input_layout", std::string("nhwc")}}));
    Graph graph = g.finish();
    const Graph before = graph;
    EXPECT_EQ(absorbed(graph), 1);
    EXPECT_EQ(formula(graph, "y"), "conv2d(x, w) {padding=[0, 2, 1, 0], input_layout=\"nhwc\"}");
    expect_same_results(before, graph);
}

TEST(AbsorbPads, KeepsAPadThatIsReadElsewhere) {
    Graph graph = padded({}, {}, true);
    const Graph before = graph;
    EXPECT_EQ(absorbed(graph), 1);
    EXPECT_EQ(graph.nodes.size(), 3U);
    expect_same_results(before, graph);
}

TEST(AbsorbPads, LeavesOtherMargins) {
    expect_pad_left(padded({.more = {{"mode", std::string("edge")}}}));
    expect_pad_left(padded({.more = {{"value", 1.0}}}));
    expect_pad_left(padded({.before = {1, 0, 1, 0}}));
    expect_pad_left(padded({.before = {0, 0, 3, 0}}));  // a window would lie in zeros alone
    expect_pad_left(padded({.before = {0, 0, 1, 2}}));  // with the convolution's own
}

TEST(AbsorbPads, LeavesGraphsOfOtherDevices) { expect_pad_left(padded({}), {.runs_on_cpu = false}); }

}  // namespace
}  // namespace headrace::testing
