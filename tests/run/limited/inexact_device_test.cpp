/// Devices that would round what they multiply, and ops that a check has found to be wrong.
#include "run/device_arithmetic.h"

#include <gmock/gmock.h>

#include "engine/device_check.h"
#include "environment.h"
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
    const ProductForms forms = arithmetic_of(must_find(device)).products;
    EXPECT_EQ(forms.of(8, false), ProductForm::mat_mul);
    EXPECT_EQ(forms.of(9, false), ProductForm::convolution);
    EXPECT_EQ(forms.of(1000, false), ProductForm::convolution);
    EXPECT_EQ(forms.of(2, true), ProductForm::convolution);
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

TEST(InexactDevice, ADeviceMayRoundProductsOfSomeRowsAlone) {
    LimitedDevice device(
        {.rounds_products = true, .rounded_from = 4, .rounded_to = 16});  // as CUDA's by TF32
    const ProductForms forms = arithmetic_of(must_find(device)).products;
    for (const auto& [rows, form] : {std::pair(1, ProductForm::mat_mul),
                                     {3, ProductForm::mat_mul},
                                     {4, ProductForm::convolution},
                                     {16, ProductForm::convolution},
                                     {17, ProductForm::mat_mul},
                                     {4000, ProductForm::mat_mul}}) {
        EXPECT_EQ(forms.of(rows, false), form) << rows;
        EXPECT_EQ(forms.of(rows, true), form) << rows << ", of batches";
    }
    for (const std::int64_t rows : {1, 3, 4, 8, 16, 17, 33})
        for (const bool is_batch : {false, true}) {
            const Graph graph = product_of(is_batch ? Shape{2, rows, 7} : Shape{rows, 7}, {7, 3});
            const Ran there = run_filled(graph, {.device = device.name(), .threads = 1});
            const Ran here = run_filled(graph, {.threads = 1});
            EXPECT_THAT(there.devices(), ElementsAre(device.name()));
            EXPECT_LT(largest_difference(there, here), 1e-6) << rows;
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
    EXPECT_FALSE(found.has_exact_convolutions);
    EXPECT_FALSE(found.has_exact_outer_products);
    const Ran there = run_filled(product_of({20, 7}, {7, 3}), {.device = device.name(), .threads = 1});
    EXPECT_THAT(there.devices(), ElementsAre("CPU"));
}

TEST(InexactDevice, AnOpThatACheckFoundWrongIsNotGivenToTheDevice) {
    const TemporaryFolder folder;
    const EnvironmentVariable cache("XDG_CACHE_HOME", folder.path());
    LimitedDevice device;
    const Graph graph = product_of({5, 7}, {7, 3});
    ASSERT_TRUE(distrust(must_find(device), {"matmul"}).ok());
    EXPECT_THAT(run_filled(graph, {.device = device.name(), .threads = 1}).devices(), ElementsAre("CPU"));
    ASSERT_TRUE(distrust(must_find(device), {}).ok());
    EXPECT_THAT(run_filled(graph, {.device = device.name(), .threads = 1}).devices(),
                ElementsAre(device.name()));
}

TEST(InexactDevice, ACheckNamesTheOpsThatItGetsWrongAndHasThemRunOnTheCpu) {
    const TemporaryFolder folder;
    const EnvironmentVariable cache("XDG_CACHE_HOME", folder.path());
    LimitedDevice device({.wrong_ops = {GGML_OP_SQRT, GGML_OP_RMS_NORM}});
    const auto checks = must(check_device(device.name()));
    std::vector<std::string> wrong;
    for (const OpCheck& check : checks)
        if (check.wrong) wrong.push_back(check.op);
    EXPECT_THAT(wrong, ::testing::IsSupersetOf({"sqrt", "layer_normalization"}));
    EXPECT_LT(wrong.size(), 20u);
    EXPECT_GT(checks.size(), 40u);
    TestGraph g;
    g.output("y", g.op("abs", {g.op("sqrt", {g.op("abs", {g.input("x", {3})})})}));
    const Ran ran = run_filled(g.finish(), {.device = device.name(), .threads = 1});
    EXPECT_THAT(ran.devices(), ElementsAre(device.name(), "CPU", device.name()));
    EXPECT_THAT(arithmetic_of(must_find(device)).distrusted, ::testing::Contains("sqrt"));
    EXPECT_FALSE(check_device("cpu").ok());
    ASSERT_TRUE(distrust(must_find(device), {}).ok());
}

}  // namespace
}  // namespace headrace
