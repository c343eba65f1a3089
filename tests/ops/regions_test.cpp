#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TestTensor counted(std::int64_t height, std::int64_t width) {
    std::vector<double> x;
    for (std::int64_t i = 0; i < height * width; ++i) x.push_back(static_cast<double>(i));
    return tensor(DType::f32, {1, 1, height, width}, x);
}

TEST(RoiAlign, TakesPointsBetweenElements) {
    const auto roi = tensor(DType::f32, {1, 4}, {0.5, 0.5, 2.5, 2.5});
    const auto image = tensor<std::int64_t>(DType::i64, {1}, {0});
    EXPECT_THAT(values("roi_align", {counted(4, 4), roi, image},
                       {{"height", 2}, {"width", 2}, {"sampling_ratio", 1}}),
                ElementsAre(2.5, 3.5, 6.5, 7.5));
    EXPECT_THAT(values("roi_align", {counted(4, 4), roi, image},
                       {{"height", 1}, {"width", 1}, {"sampling_ratio", 2}, {"half_pixel", false}}),
                ElementsAre(7.5));
}

TEST(RoiAlign, ReadsNothingOutsideTheImages) {
    const auto roi = tensor(DType::f32, {2, 4}, {-90, -90, -80, -80, 0, 0, 1e30, std::nan("")});
    const auto image = tensor<std::int64_t>(DType::i64, {2}, {77, -5});
    EXPECT_EQ(values("roi_align", {counted(4, 4), roi, image})[0], 0);
}

TEST(RoiAlign, OfManyPointsIsNotComputedWhileAModelIsRead) {
    const OpDef& op = *find_op("roi_align");
    const TensorType x{DType::f32, {1, 1, 4, 4}}, regions{DType::f32, {1, 4}}, images{DType::i64, {1}};
    const std::vector<const TensorType*> operands{&x, &regions, &images};
    const auto flops = [&](std::int64_t ratio) {
        const AttrBox attrs = op.make_attrs({{"sampling_ratio", ratio}}).value();
        const auto out = op.infer(Operands(operands), attrs.get()).value();
        return op.cost(Operands(operands), out, attrs.get()).flops;
    };
    EXPECT_EQ(flops(4), 4 * flops(2));
    EXPECT_GT(flops(4096), 5e8);
}

TEST(RoiAlign, NamesWhatDoesNotFit) {
    const TensorType x{DType::f32, {1, 2, 4, 4}}, images{DType::i64, {3}};
    EXPECT_THAT(infer_error("roi_align", {x, TensorType{DType::f32, {2, 4}}, images}),
                HasSubstr("2 regions and 3"));
    EXPECT_THAT(infer_error("roi_align", {x, TensorType{DType::f32, {3, 5}}, images}),
                HasSubstr("4 columns"));
    EXPECT_THAT(infer_error("roi_align", {x, TensorType{DType::f32, {3, 4}}, images}, {{"height", 0}}),
                HasSubstr("at least 1"));
}

TEST(RoiMaxPool, TakesTheLargestOfEachCell) {
    const auto roi = tensor(DType::f32, {2, 5}, {0, 0, 0, 3, 3, 0, 9, 9, 12, 12});
    EXPECT_THAT(values("roi_max_pool", {counted(4, 4), roi}, {{"height", 2}, {"width", 1}}),
                ElementsAre(7, 15, 0, 0));
}

TEST(SampleRegions, TakesPointsAtRowsAndColumns) {
    const auto rows = tensor(DType::f32, {1, 3}, {0.5, 3, 3.1}),
               columns = tensor(DType::f32, {1, 2}, {1, 2.25});
    const auto image = tensor<std::int64_t>(DType::i64, {1}, {0});
    EXPECT_THAT(values("sample_regions", {counted(4, 4), rows, columns, image}, {{"outside", -1.0}}),
                ElementsAre(3, 4.25, 13, 14.25, -1, -1));
    EXPECT_THAT(values("sample_regions", {counted(4, 4), rows, columns, image}, {{"mode", "nearest"}}),
                ElementsAre(5, 6, 13, 14, 0, 0));
}

TEST(SampleRegions, ReadsNothingOutsideTheImages) {
    const auto places = tensor(DType::f32, {2, 2}, {std::nan(""), -1e30, 1e30, 0});
    const auto image = tensor<std::int64_t>(DType::i64, {2}, {77, -5});
    EXPECT_THAT(values("sample_regions", {counted(4, 4), places, places, image}, {{"outside", 5.0}}),
                ElementsAre(5, 5, 5, 5, 5, 5, 5, 0));
}

TEST(SampleRegions, NamesWhatDoesNotFit) {
    const TensorType x{DType::f32, {1, 2, 4, 4}}, rows{DType::f32, {3, 5}}, images{DType::i64, {3}};
    EXPECT_THAT(infer_error("sample_regions", {x, rows, TensorType{DType::f32, {2, 5}}, images}),
                HasSubstr("3 numbers of images and places of 2 regions"));
    EXPECT_THAT(infer_error("sample_regions", {TensorType{DType::f32, {1, 2, 0, 4}}, rows, rows, images}),
                HasSubstr("have no elements"));
}

}  // namespace
}  // namespace headrace::testing
