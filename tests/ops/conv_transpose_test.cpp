#include <gmock/gmock.h>

#include "ops/images.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using List = std::vector<std::int64_t>;

/// The definition: every input pixel adds a scaled filter to the output. nchw and iohw.
std::vector<double> convolve_transposed(const TestTensor& input, const TestTensor& filter, const Window& w,
                                        std::int64_t height, std::int64_t width) {
    const auto x = input.as<double>(), f = filter.as<double>();
    const auto xs = input.type.sizes(), fs = filter.type.sizes();
    const std::int64_t outputs = fs[1] * w.groups;
    std::vector<double> out(static_cast<std::size_t>(xs[0] * outputs * height * width));
    for (std::size_t p = 0; p < x.size(); ++p) {
        const auto at = static_cast<std::int64_t>(p);
        const std::int64_t column = at % xs[3], row = at / xs[3] % xs[2], c = at / xs[3] / xs[2] % xs[1];
        const std::int64_t n = at / xs[3] / xs[2] / xs[1];
        for (std::int64_t i = 0; i < fs[1] * fs[2] * fs[3]; ++i) {
            const std::int64_t o = i / (fs[2] * fs[3]), ky = i / fs[3] % fs[2], kx = i % fs[3];
            const std::int64_t y = row * w.strides[0] + ky * w.dilations[0] - w.padding[0];
            const std::int64_t z = column * w.strides[1] + kx * w.dilations[1] - w.padding[2];
            if (y < 0 || y >= height || z < 0 || z >= width) continue;
            const std::int64_t channel = c / (xs[1] / w.groups) * fs[1] + o;
            out[static_cast<std::size_t>(((n * outputs + channel) * height + y) * width + z)] +=
                x[p] * f[static_cast<std::size_t>(c * fs[1] * fs[2] * fs[3] + i)];
        }
    }
    return out;
}

TEST(ConvTranspose2d, AddsScaledFilters) {
    EXPECT_THAT(values("conv_transpose2d", {tensor(DType::f32, {1, 1, 1, 2}, {1, 10}),
                                            tensor(DType::f32, {1, 1, 1, 3}, {1, 2, 3})}),
                ElementsAre(1, 12, 23, 30));
}

TEST(ConvTranspose2d, MatchesItsDefinitionInEveryFloatType) {
    const Window w{{1, 0, 0, 2}, {3, 2}, {1, 2}, 2};
    for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
        const auto x = scattered(t, {2, 4, 3, 4}), f = scattered(t, {4, 3, 2, 3}, 5);
        const auto result = run("conv_transpose2d", {x, f}, with(w.attrs(), "output_padding", List{2, 1}));
        ASSERT_EQ(result[0].type.shape, (Shape{2, 6, 9, 10}));
        EXPECT_EQ(result[0].as<double>(), convolve_transposed(x, f, w, 9, 10)) << name_of(t);
    }
}

TEST(ConvTranspose2d, TakesEveryLayout) {
    const auto x = scattered(DType::f32, {2, 3, 4, 5}), f = scattered(DType::f32, {3, 4, 2, 3}, 1);
    const auto bias = tensor(DType::f32, {4}, {1, 2, 3, 4});
    const auto expected = run("conv_transpose2d", {x, f, bias})[0];
    for (const auto& [layout, axes] :
         {std::pair{"iohw", std::array{0, 1, 2, 3}}, {"hwoi", {2, 3, 1, 0}}, {"ohwi", {1, 2, 3, 0}}}) {
        const NamedAttrs attrs{{"filter_layout", std::string(layout)}};
        EXPECT_EQ(values("conv_transpose2d", {x, permuted(f, axes), bias}, attrs), expected.as<float>())
            << layout;
        const auto nhwc = run("conv_transpose2d", {permuted(x, kToNhwc), permuted(f, axes), bias},
                              with(attrs, "input_layout", std::string("nhwc")));
        EXPECT_EQ(permuted(nhwc[0], kToNchw).as<float>(), expected.as<float>()) << layout;
    }
}

TEST(ConvTranspose2d, TakesTheOutputSizeInsteadOfItsPadding) {
    const TensorType x = f32({1, 1, 3, 3}), f = f32({1, 1, 3, 3});
    const auto sizes = [&](List s) {
        return infer_error("conv_transpose2d", {x, f},
                           {{"strides", List{2, 2}}, {"output_sizes", std::move(s)}});
    };
    EXPECT_EQ(sizes({7, 8}), "");
    EXPECT_EQ(sizes({6, 8}), "ConvTranspose2d height: output_sizes has 6 but 7 to 8 are possible");
    EXPECT_EQ(sizes({7, 9}), "ConvTranspose2d width: output_sizes has 9 but 7 to 8 are possible");
    const auto x7 = scattered(DType::f32, {1, 1, 3, 3}), f7 = scattered(DType::f32, {1, 1, 3, 3}, 2);
    EXPECT_EQ(
        values("conv_transpose2d", {x7, f7}, {{"strides", List{2, 2}}, {"output_sizes", List{8, 7}}}),
        values("conv_transpose2d", {x7, f7}, {{"strides", List{2, 2}}, {"output_padding", List{1, 0}}}));
}

TEST(ConvTranspose2d, KeepsSymbolicSizes) {
    const Dim n = Dim::symbolic("n"), h = Dim::symbolic("h", 2, 10);
    const auto doubled =
        infer("conv_transpose2d", {f32({n, 3, h, 8}), f32({3, 4, 2, 2})}, {{"strides", List{2, 2}}});
    EXPECT_EQ(doubled.value()[0].shape[0], n);
    EXPECT_EQ(doubled.value()[0].shape[2].min_size(), 4);
    EXPECT_EQ(doubled.value()[0].shape[2].max_size(), 20);
    EXPECT_EQ(
        infer("conv_transpose2d", {f32({n, 3, h, 8}), f32({3, 4, 3, 3})}, {{"padding", List{1, 1, 1, 1}}})
            .value()[0],
        f32({n, 4, h, 8}));
    const Dim longest = Dim::of(Expression(h) * 2 + 2);
    const auto sized = [&](std::int64_t kernel) {
        return infer_error("conv_transpose2d", {f32({n, 3, h, 8}), f32({3, 4, kernel, 2})},
                           {{"strides", List{2, 2}}, {"output_sizes", Shape{longest, 16}}});
    };
    EXPECT_EQ(sized(3), "");
    EXPECT_THAT(sized(2), HasSubstr("output_sizes has (2*h+2) but 2*h to (2*h+1) are possible"));
}

TEST(ConvTranspose2d, TakesFiltersOfOpenExtents) {
    const Dim i = Dim::symbolic("i"), o = Dim::symbolic("o"), k = Dim::symbolic("k", 0),
              n = Dim::symbolic("n", 0);
    const NamedAttrs attrs{{"strides", List{2, 1}}, {"groups", std::int64_t{2}}, {"dilations", List{1, 3}}};
    const std::vector<std::optional<TensorType>> open{f32({1, 4, n, 8}), f32({i, o, k, 3}), f32({6})};
    EXPECT_EQ(infer("conv_transpose2d", open, attrs).value()[0].str(),
              "f32[1, 2*o, (2*Max(1, n)+k - 2), 14]");
    EXPECT_THAT(conditions("conv_transpose2d", open, attrs),
                ElementsAre("4 = i", "i = 2*(i//2)", "6 = 2*o", "k >= 1"));
    EXPECT_EQ(infer_error("conv_transpose2d", {f32({1, 4, 8, 8}), f32({4, 1, Dim::symbolic("z", 0, 0), 1})}),
              "ConvTranspose2d height: the filter has z elements");
}

TEST(ConvTranspose2d, RejectsWhatDoesNotFit) {
    const TensorType x = f32({1, 4, 5, 5}), f = f32({4, 2, 3, 3});
    const auto error = [](const TensorType& input, const TensorType& filter, const NamedAttrs& attrs = {}) {
        return infer_error("conv_transpose2d", {input, filter}, attrs);
    };
    EXPECT_THAT(error(f32({4, 5, 5}), f), HasSubstr("ConvTranspose2d input must be 4D, got rank 3"));
    EXPECT_THAT(error(x, f32({4, 2, 3})), HasSubstr("ConvTranspose2d filter must be 4D, got rank 3"));
    EXPECT_EQ(error(x, f32({3, 2, 3, 3})), "ConvTranspose2d filter has 3 input channels but input has 4");
    EXPECT_EQ(error(x, f, {{"groups", std::int64_t{3}}}),
              "ConvTranspose2d input channels 4 must be divisible by groups 3");
    EXPECT_THAT(error(x, f, {{"groups", std::int64_t{-1}}}), HasSubstr("groups is -1"));
    EXPECT_EQ(error(x, f, {{"output_padding", List{1, 0}}}),
              "ConvTranspose2d height: output_padding 1 must be less than the stride 1");
    EXPECT_THAT(error(x, f, {{"padding", List{4, 4, 0, 0}}}), HasSubstr("padding 8 leaves nothing of 7"));
    EXPECT_THAT(error(x, f, {{"strides", List{2}}}), HasSubstr("strides must have 2 values"));
    EXPECT_THAT(error(x, f32({4, 2, 0, 3})), HasSubstr("the filter has 0 elements"));
    EXPECT_EQ(infer_error("conv_transpose2d", {x, f, f32({4})}, {{"groups", std::int64_t{4}}}),
              "bias has shape [4] but there are 8 output channels");
}

}  // namespace
}  // namespace headrace::testing
