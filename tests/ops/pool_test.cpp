#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "ops/images.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using List = std::vector<std::int64_t>;

constexpr const char* kPools[] = {"average_pool2d", "l2_pool2d", "max_pool2d"};

TestTensor image(DType dtype, std::int64_t height, std::int64_t width) {
    std::vector<double> values(static_cast<std::size_t>(height * width));
    std::iota(values.begin(), values.end(), 1);
    return tensor(dtype, {1, 1, height, width}, values);
}

/// The definition, over nchw, by a check of every pixel.
std::vector<double> pool(std::string_view op, const TestTensor& input, const Window& w,
                         std::array<std::int64_t, 2> size, std::int64_t height, std::int64_t width) {
    const auto x = input.as<double>();
    const auto s = input.type.sizes();
    std::vector<double> out;
    for (std::int64_t plane = 0; plane < s[0] * s[1]; ++plane)
        for (std::int64_t y = 0; y < height; ++y)
            for (std::int64_t z = 0; z < width; ++z) {
                std::vector<double> window;
                for (std::int64_t k = 0; k < size[0] * size[1]; ++k) {
                    const std::int64_t row = y * w.strides[0] + k / size[1] * w.dilations[0] - w.padding[0];
                    const std::int64_t column =
                        z * w.strides[1] + k % size[1] * w.dilations[1] - w.padding[2];
                    if (row >= 0 && row < s[2] && column >= 0 && column < s[3])
                        window.push_back(x[static_cast<std::size_t>((plane * s[2] + row) * s[3] + column)]);
                }
                if (op == "max_pool2d") out.push_back(*std::max_element(window.begin(), window.end()));
                if (op == "average_pool2d")
                    out.push_back(std::accumulate(window.begin(), window.end(), 0.0) /
                                  static_cast<double>(window.size()));
                if (op == "l2_pool2d")
                    out.push_back(
                        std::sqrt(std::inner_product(window.begin(), window.end(), window.begin(), 0.0)));
            }
    return out;
}

NamedAttrs window(List size, NamedAttrs more = {}) {
    more.emplace_back("window_dimensions", std::move(size));
    return more;
}

TEST(Pool2d, CoversTheWholeImageByDefault) {
    const auto x = image(DType::f32, 2, 2);
    EXPECT_THAT(values("average_pool2d", {x}), ElementsAre(2.5));
    EXPECT_THAT(values("max_pool2d", {x}), ElementsAre(4));
    EXPECT_THAT(values("l2_pool2d", {tensor(DType::f32, {1, 1, 1, 2}, {3, 4})}), ElementsAre(5));
}

TEST(Pool2d, LeavesPaddingOutOfTheMean) {
    EXPECT_THAT(
        values("average_pool2d", {image(DType::f32, 2, 2)}, window({2, 2}, {{"padding", List{1, 0, 1, 0}}})),
        ElementsAre(1, 1.5, 2, 2.5));
}

TEST(Pool2d, MatchesItsDefinitionInEveryFloatTypeAndLayout) {
    Window w{{2, 1, 0, 3}, {2, 1}, {1, 2}, 1};
    for (const char* op : kPools)
        for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
            const auto x = scattered(t, {2, 3, 7, 6});
            const NamedAttrs attrs =
                window({3, 3}, {{"padding", w.padding}, {"strides", w.strides}, {"dilations", w.dilations}});
            const auto expected = tensor(t, {2, 3, 4, 5}, pool(op, x, w, {3, 3}, 4, 5)).as<double>();
            const auto result = run(op, {x}, attrs);
            ASSERT_EQ(result[0].type.shape, (Shape{2, 3, 4, 5}));
            EXPECT_EQ(result[0].as<double>(), expected) << op << " of " << name_of(t);
            const auto nhwc = run(op, {permuted(x, kToNhwc)}, with(attrs, "layout", std::string("nhwc")));
            EXPECT_EQ(permuted(nhwc[0], kToNchw).as<double>(), expected) << op << " of " << name_of(t);
        }
}

TEST(Pool2d, MayKeepWindowsThatStickOut) {
    const auto x = image(DType::f32, 3, 3);
    const auto pooled = [&](NamedAttrs more) {
        more.emplace_back("strides", List{2, 2});
        return values("max_pool2d", {x}, window({2, 2}, std::move(more)));
    };
    EXPECT_THAT(pooled({}), ElementsAre(5));
    EXPECT_THAT(pooled({{"output_shape_rounding", std::string("ceil")}}), ElementsAre(5, 6, 8, 9));
    EXPECT_THAT(pooled({{"output_sizes", List{2, 1}}}), ElementsAre(5, 8));
    EXPECT_THAT(pooled({{"output_sizes", List{1, 1}}, {"output_shape_rounding", std::string("ceil")}}),
                ElementsAre(5));
}

TEST(Pool2d, OfAWindowWithoutPixelsIsDefined) {
    const NamedAttrs attrs = window({1, 1}, {{"padding", List{0, 0, 1, 0}}});
    const auto x = tensor(DType::f32, {1, 1, 1, 1}, {-3});
    EXPECT_THAT(values("average_pool2d", {x}, attrs), ElementsAre(0, -3));
    EXPECT_THAT(values("l2_pool2d", {x}, attrs), ElementsAre(0, 3));
    EXPECT_THAT(values("max_pool2d", {x}, attrs), ElementsAre(-INFINITY, -3));
    EXPECT_THAT(values<int>("max_pool2d", {tensor(DType::i8, {1, 1, 1, 1}, {-3})}, attrs),
                ElementsAre(-128, -3));
}

TEST(MaxPool2d, TakesIntegersExactly) {
    const std::int64_t large = (std::int64_t{1} << 60) + 1;
    const auto x = tensor<std::int64_t>(DType::i64, {1, 1, 1, 3}, {large, large - 1, -large});
    EXPECT_THAT(values<std::int64_t>("max_pool2d", {x}, window({1, 2})), ElementsAre(large, large - 1));
    for (DType t : {DType::i8, DType::u8, DType::i16, DType::i32, DType::u32, DType::u64})
        EXPECT_THAT(values<int>("max_pool2d", {image(t, 2, 3)}), ElementsAre(6)) << name_of(t);
}

TEST(MaxPool2d, KeepsNaNAndInfinity) {
    const auto x = tensor(DType::f32, {1, 1, 1, 4}, {NAN, 1, -INFINITY, -INFINITY});
    EXPECT_THAT(values("max_pool2d", {x}, window({1, 2})), ElementsAre(::testing::IsNan(), 1, -INFINITY));
    const auto last = tensor(DType::f32, {1, 1, 1, 2}, {1, NAN});
    EXPECT_THAT(values("max_pool2d", {last}), ElementsAre(::testing::IsNan()));
}

TEST(Pool2d, KeepsSymbolicSizes) {
    const Dim n = Dim::symbolic("n"), h = Dim::symbolic("h", 4, 9);
    const TensorType x{DType::f32, {n, 3, h, 8}};
    const auto pooled = infer("max_pool2d", {x}, window({2, 2}, {{"strides", List{2, 2}}})).value()[0];
    EXPECT_EQ(pooled.shape[0], n);
    EXPECT_EQ(pooled.shape[2].min_size(), 2);
    EXPECT_EQ(pooled.shape[2].max_size(), 4);
    EXPECT_EQ(pooled.shape[3], Dim(4));
    EXPECT_EQ(infer("max_pool2d", {x}).value()[0], (TensorType{DType::f32, {n, 3, 1, 1}}));
    const Dim half = Dim::of(Expression(h) / 2);
    const auto sized = [&](const Dim& height) {
        return window({2, 2}, {{"strides", List{2, 2}}, {"output_sizes", Shape{height, 4}}});
    };
    EXPECT_EQ(infer("max_pool2d", {x}, sized(half)).value()[0].shape[2], half);
    EXPECT_THAT(infer_error("max_pool2d", {x}, sized(h)), HasSubstr("output_sizes has h"));
}

TEST(Pool2d, RejectsWhatDoesNotFit) {
    const TensorType x{DType::f32, {1, 2, 5, 5}};
    for (const char* op : kPools)
        EXPECT_THAT(infer_error(op, {{{DType::f32, {2, 5, 5}}}}),
                    HasSubstr("Pool2d input must be 4D, got rank 3"));
    EXPECT_THAT(infer_error("average_pool2d", {{{DType::i32, {1, 2, 5, 5}}}}), HasSubstr("i32"));
    EXPECT_THAT(infer_error("max_pool2d", {x}, window({6, 5})), HasSubstr("Pool2d height"));
    EXPECT_THAT(infer_error("max_pool2d", {x}, window({5, 6})), HasSubstr("Pool2d width"));
    EXPECT_THAT(infer_error("max_pool2d", {x}, window({0, 1})),
                HasSubstr("window_dimensions must be from 1"));
    EXPECT_THAT(infer_error("max_pool2d", {x}, window({1})),
                HasSubstr("window_dimensions must have 2 values"));
    EXPECT_THAT(infer_error("max_pool2d", {x}, {{"padding", List{1}}}),
                HasSubstr("padding must have 4 values"));
    EXPECT_THAT(infer_error("max_pool2d", {x}, {{"strides", List{0, 1}}}),
                HasSubstr("strides must be from 1"));
    EXPECT_THAT(infer_error("max_pool2d", {x}, {{"dilations", List{1, 0}}}),
                HasSubstr("dilations must be from 1"));
    EXPECT_EQ(infer_error("max_pool2d", {x},
                          window({2, 2}, {{"strides", List{2, 2}}, {"output_sizes", List{4, 2}}})),
              "Pool2d height: output_sizes has 4 but 2 or 3 is possible");
    EXPECT_THAT(infer_error("max_pool2d", {x}, {{"layout", std::string("hwcn")}}), HasSubstr("layout"));
}

}  // namespace
}  // namespace headrace::testing
