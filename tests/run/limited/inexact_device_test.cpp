/// Devices that would round what they multiply, and ops that a check has found to be wrong.
#include "run/device_arithmetic.h"

#include <gmock/gmock.h>

#include "engine/device_check.h"
#include "run/limited/filled_run.h"
#include "run/limited/limited_device.h"
#include "temporary_folder.h"

namespace headrace {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Device must_find(const LimitedDevice& device) { return must(find_device(device.name())); }

Graph product_of(Shape a, Shape b) {
    TestGraph g;
    g.output("y", g.op("matmul", {g.input("a", std::move(a)), g.input("b", std::move(b))}));
    return g.finish();
}

std::vector<float> floats_of(const Ran& ran) {
    const auto* first = reinterpret_cast<const float*>(ran.outputs[0].data());
    return {first, first + ran.outputs[0].size() / sizeof(float)};
}

double largest_difference(const Ran& a, const Ran& b) {
    const auto x = floats_of(a), y = floats_of(b);
    double largest = 0;
    for (std::size_t i = 0; i < x.size(); ++i) largest = std::max<double>(largest, std::abs(x[i] - y[i]));
    return largest;
}

TEST(InexactDevice, OfADeviceThatMultipliesExactlyIsGgmlsOwn) {
    LimitedDevice device;
    EXPECT_EQ(arithmetic_of(must_find(device)), DeviceArithmetic{});
    EXPECT_EQ(device.bytes_in_use(), 0u);
    EXPECT_THAT(device.violations(), IsEmpty());
}

TEST(InexactDevice, ADeviceThatRoundsFactorsMultipliesByConvolutionsOrOuterProducts) {
    LimitedDevice device({.rounds_products = true});
    EXPECT_EQ(arithmetic_of(must_find(device)).products, ProductForm::convolution);
    const std::pair<Shape, Shape> shapes[] = {{{5, 7}, {7, 3}},
                                              {{20, 7}, {7, 3}},
                                              {{2, 20, 7}, {2, 7, 3}},
                                              {{2, 20, 7}, {7, 3}},
                                              {{20, 7}, {2, 7, 3}}};
    for (const auto& [a, b] : shapes) {
        const Graph graph = product_of(a, b);
        const Ran there = run_filled(graph, {.device = device.name(), .threads = 1});
        const Ran here = run_filled(graph, {.threads = 1});
        EXPECT_THAT(there.devices(), ElementsAre(device.name()));
        EXPECT_LT(largest_difference(there, here), 1e-6);
    }
    EXPECT_THAT(device.violations(), IsEmpty());
}

// Rows of more than 8 are rounded by the device, in its own product alone.
TEST(InexactDevice, MultipliesInItsOwnWayWhereItMayBeFast) {
    LimitedDevice device({.rounds_products = true});
    const Graph graph = product_of({20, 7}, {7, 3});
    const CompileOptions fast{.device = device.name(), .threads = 1, .precision = Precision::fast};
    const Ran there = run_filled(graph, fast), here = run_filled(graph, {.threads = 1});
    EXPECT_THAT(there.devices(), ElementsAre(device.name()));
    EXPECT_GT(largest_difference(there, here), 1e-6);
    EXPECT_LT(largest_difference(there, here), 1e-2);
    EXPECT_TRUE(compile(graph, fast).stats().is_fast);
    EXPECT_FALSE(compile(graph, {.device = device.name()}).stats().is_fast);
    EXPECT_THAT(device.violations(), IsEmpty());
}

TEST(InexactDevice, IsFastWhereNoFormIsExact) {
    LimitedDevice device({.refused_ops = {GGML_OP_CONV_2D, GGML_OP_OUT_PROD}, .rounds_products = true});
    const Ran there = run_filled(product_of({20, 7}, {7, 3}),
                                 {.device = device.name(), .threads = 1, .precision = Precision::fast});
    EXPECT_THAT(there.devices(), ElementsAre(device.name()));
}

TEST(InexactDevice, AnExactOneIsNoFasterForBeingAllowedToRound) {
    LimitedDevice device;
    const Graph graph = product_of({20, 7}, {7, 3});
    const CompileOptions fast{.device = device.name(), .threads = 1, .precision = Precision::fast};
    EXPECT_FALSE(compile(graph, fast).stats().is_fast);
    EXPECT_EQ(largest_difference(run_filled(graph, fast), run_filled(graph, {.device = device.name()})), 0);
}

TEST(InexactDevice, WhatNoFormGivesExactlyStaysOnTheCpu) {
    LimitedDevice device({.refused_ops = {GGML_OP_CONV_2D, GGML_OP_OUT_PROD}, .rounds_products = true});
    const DeviceArithmetic found = arithmetic_of(must_find(device));
    EXPECT_FALSE(found.has_exact_products);
    const Ran there = run_filled(product_of({20, 7}, {7, 3}), {.device = device.name(), .threads = 1});
    EXPECT_THAT(there.devices(), ElementsAre("CPU"));
}

TEST(InexactDevice, AnOpThatACheckFoundWrongIsNotGivenToTheDevice) {
    const TemporaryFolder folder;
    setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
    LimitedDevice device;
    const Graph graph = product_of({5, 7}, {7, 3});
    ASSERT_TRUE(distrust(must_find(device), {"matmul"}).ok());
    EXPECT_THAT(run_filled(graph, {.device = device.name(), .threads = 1}).devices(), ElementsAre("CPU"));
    ASSERT_TRUE(distrust(must_find(device), {}).ok());
    EXPECT_THAT(run_filled(graph, {.device = device.name(), .threads = 1}).devices(),
                ElementsAre(device.name()));
    unsetenv("XDG_CACHE_HOME");
}

TEST(InexactDevice, ACheckNamesTheOpsThatItGetsWrongAndHasThemRunOnTheCpu) {
    const TemporaryFolder folder;
    setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
    LimitedDevice device({.wrong_ops = {GGML_OP_SQRT, GGML_OP_NORM}});
    const auto checks = must(check_device(device.name()));
    std::vector<std::string> wrong;
    for (const OpCheck& check : checks)
        if (check.wrong) wrong.push_back(check.op);
    EXPECT_THAT(wrong, ::testing::IsSupersetOf({"sqrt", "layer_normalization"}));
    EXPECT_LT(wrong.size(), 12u);
    EXPECT_GT(checks.size(), 40u);
    TestGraph g;
    g.output("y", g.op("abs", {g.op("sqrt", {g.op("abs", {g.input("x", {3})})})}));
    const Ran ran = run_filled(g.finish(), {.device = device.name(), .threads = 1});
    EXPECT_THAT(ran.devices(), ElementsAre(device.name(), "CPU", device.name()));
    EXPECT_THAT(arithmetic_of(must_find(device)).distrusted, ::testing::Contains("sqrt"));
    EXPECT_FALSE(check_device("cpu").ok());
    ASSERT_TRUE(distrust(must_find(device), {}).ok());
    unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace headrace
