#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(BatchNormalization, UsesTheGivenStatistics) {
    for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64})
        EXPECT_THAT(values("batch_normalization",
                           {tensor(t, {1, 2, 2}, {1, 5, 10, 14}), tensor(t, {2}, {3, 10}),
                            tensor(t, {2}, {3, 15}), tensor(t, {2}, {4, 2}), tensor(t, {2}, {0.5, -1})},
                           {{"epsilon", 1.0}}),
                    ElementsAre(-3.5, 4.5, -1, 1))
            << name_of(t);
}

TEST(BatchNormalization, TakesAnyAxisAsChannels) {
    const auto mean = tensor(DType::f32, {2}, {1, 2}), variance = tensor(DType::f32, {2}, {1, 4});
    const auto x = tensor(DType::f32, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    const auto on = [&](std::int64_t axis) {
        return values("batch_normalization", {x, mean, variance}, {{"axis", axis}, {"epsilon", 0.0}});
    };
    EXPECT_THAT(on(0), ElementsAre(0, 1, 2, 3, 1.5, 2, 2.5, 3));
    EXPECT_THAT(on(1), ElementsAre(0, 1, 0.5, 1, 4, 5, 2.5, 3));
    EXPECT_THAT(on(2), ElementsAre(0, 0, 2, 1, 4, 2, 6, 3));
    EXPECT_EQ(on(-1), on(2));
    EXPECT_EQ(on(1), values("batch_normalization", {x, mean, variance}, {{"epsilon", 0.0}}));
}

TEST(BatchNormalization, TakesBiasWithoutScale) {
    EXPECT_THAT(values("batch_normalization",
                       {tensor(DType::f32, {2}, {3, 4}), tensor(DType::f32, {2}, {1, 1}),
                        tensor(DType::f32, {2}, {4, 9}), std::nullopt, tensor(DType::f32, {2}, {10, 20})},
                       {{"axis", std::int64_t{0}}, {"epsilon", 0.0}}),
                ElementsAre(11, 21));
}

TEST(BatchNormalization, RejectsVectorsOfAnotherLength) {
    EXPECT_EQ(infer_error("batch_normalization", {f32({2, 3}), f32({2}), f32({3})}),
              "mean has shape [2] but must have shape [3]");
    EXPECT_EQ(infer_error("batch_normalization", {f32({2, 3}), f32({3}), f32({3, 1})}),
              "variance has shape [3, 1] but must have shape [3]");
    EXPECT_THAT(infer_error("batch_normalization", {f32({2, 3}), f32({3}), f32({3}), std::nullopt, f32({1})}),
                HasSubstr("bias has shape [1]"));
    EXPECT_EQ(infer_error("batch_normalization", {f32({3}), f32({3}), f32({3})}),
              "Axis 1 out of bounds for rank 1");
    EXPECT_THAT(infer_error("batch_normalization", {f32({2, 3}), f32({3})}), HasSubstr("at least 3 needed"));
}

TEST(InstanceNormalization, NormalizesEveryPlaneApart) {
    const auto x = tensor(DType::f32, {2, 2, 1, 2}, {1, 3, 10, 30, -4, -8, 5, 5});
    EXPECT_THAT(
        values("instance_normalization",
               {x, tensor(DType::f32, {2}, {2, 1}), tensor(DType::f32, {2}, {0, 0.5})}, {{"epsilon", 1e-12}}),
        ElementsAre(-2, 2, -0.5, 1.5, 2, -2, 0.5, 0.5));
}

TEST(InstanceNormalization, TakesChannelsLast) {
    // The same planes as above, interleaved.
    const auto x = tensor(DType::f64, {2, 1, 2, 2}, {1, 10, 3, 30, -4, 5, -8, 5});
    EXPECT_THAT(values<double>("instance_normalization",
                               {x, tensor(DType::f64, {2}, {2, 1}), tensor(DType::f64, {2}, {0, 0.5})},
                               {{"epsilon", 0.0}, {"layout", std::string("nhwc")}}),
                ElementsAre(-2, -0.5, 2, 1.5, 2, ::testing::IsNan(), -2, ::testing::IsNan()));
}

TEST(InstanceNormalization, OfImagesWithoutPixelsIsEmpty) {
    for (const char* layout : {"nchw", "nhwc"})
        for (const Shape& shape : {Shape{2, 3, 0, 3}, Shape{0, 3, 2, 3}})
            EXPECT_TRUE(values("instance_normalization", {tensor(DType::f32, shape, {})},
                               {{"layout", std::string(layout)}})
                            .empty());
}

TEST(InstanceNormalization, RejectsOtherRanksAndLengths) {
    EXPECT_THAT(infer_error("instance_normalization", {f32({2, 3, 4})}), HasSubstr("rank"));
    EXPECT_EQ(infer_error("instance_normalization", {f32({2, 3, 4, 5}), f32({5})}),
              "scale has shape [5] but must have shape [3]");
    EXPECT_EQ(infer_error("instance_normalization", {f32({2, 3, 4, 5}), std::nullopt, f32({3})},
                          {{"layout", std::string("nhwc")}}),
              "bias has shape [3] but must have shape [5]");
    EXPECT_THAT(infer_error("instance_normalization", {f32({2, 3, 4, 5})}, {{"layout", std::string("chwn")}}),
                HasSubstr("layout"));
}

}  // namespace
}  // namespace headrace::testing
