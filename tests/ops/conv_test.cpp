#include <gmock/gmock.h>

#include "ops/images.h"

namespace headrace::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using List = std::vector<std::int64_t>;

/// The definition, over nchw and oihw, by a check of every pixel.
std::vector<double> convolve(const TestTensor& input, const TestTensor& filter, const Window& w,
                             std::int64_t height, std::int64_t width) {
    const auto x = input.as<double>(), f = filter.as<double>();
    const auto xs = input.type.sizes(), fs = filter.type.sizes();
    std::vector<double> out;
    for (std::int64_t n = 0; n < xs[0]; ++n)
        for (std::int64_t o = 0; o < fs[0]; ++o)
            for (std::int64_t y = 0; y < height; ++y)
                for (std::int64_t z = 0; z < width; ++z) {
                    double sum = 0;
                    for (std::int64_t i = 0; i < fs[1] * fs[2] * fs[3]; ++i) {
                        const std::int64_t c = i / (fs[2] * fs[3]), ky = i / fs[3] % fs[2], kx = i % fs[3];
                        const std::int64_t row = y * w.strides[0] + ky * w.dilations[0] - w.padding[0];
                        const std::int64_t column = z * w.strides[1] + kx * w.dilations[1] - w.padding[2];
                        if (row < 0 || row >= xs[2] || column < 0 || column >= xs[3]) continue;
                        const std::int64_t channel = o / (fs[0] / w.groups) * fs[1] + c;
                        sum += x[static_cast<std::size_t>(((n * xs[1] + channel) * xs[2] + row) * xs[3] +
                                                          column)] *
                               f[static_cast<std::size_t>(o * fs[1] * fs[2] * fs[3] + i)];
                    }
                    out.push_back(sum);
                }
    return out;
}

TEST(Conv2d, SumsAWindow) {
    EXPECT_THAT(values("conv2d", {tensor(DType::f32, {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}),
                                  tensor(DType::f32, {1, 1, 2, 2}, {1, 10, 100, 1000})}),
                ElementsAre(1 + 20 + 400 + 5000, 2 + 30 + 500 + 6000));
}

TEST(Conv2d, MatchesItsDefinitionInEveryFloatType) {
    const Window w{{1, 2, 0, 3}, {2, 1}, {1, 2}, 1};
    for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
        const auto x = scattered(t, {2, 3, 6, 5}), f = scattered(t, {4, 3, 3, 2}, 5);
        const auto result = run("conv2d", {x, f}, w.attrs());
        ASSERT_EQ(result[0].type.shape, (Shape{2, 4, 4, 6}));
        EXPECT_EQ(result[0].as<double>(), convolve(x, f, w, 4, 6)) << name_of(t);
    }
}

TEST(Conv2d, SplitsChannelsIntoGroups) {
    for (std::int64_t groups : {2, 3, 6}) {
        const Window w{{1, 0, 0, 1}, {1, 2}, {2, 1}, groups};
        const auto x = scattered(DType::f32, {1, 6, 5, 6}),
                   f = scattered(DType::f32, {12, 6 / groups, 2, 3}, 3);
        const auto expected = convolve(x, f, w, 4, 3);
        EXPECT_EQ(values<double>("conv2d", {x, f}, w.attrs()), expected) << groups;
        const auto nhwc =
            run("conv2d", {permuted(x, kToNhwc), f}, with(w.attrs(), "input_layout", std::string("nhwc")));
        EXPECT_EQ(permuted(nhwc[0], kToNchw).as<double>(), expected) << groups;
    }
}

TEST(Conv2d, TakesEveryLayout) {
    const auto x = scattered(DType::f32, {2, 3, 4, 5}), f = scattered(DType::f32, {4, 3, 2, 3}, 1);
    const auto bias = tensor(DType::f32, {4}, {1, 2, 3, 4});
    const auto expected = run("conv2d", {x, f, bias})[0];
    for (const auto& [layout, axes] : {std::pair{"oihw", std::array{0, 1, 2, 3}},
                                       {"hwio", {2, 3, 1, 0}},
                                       {"ohwi", {0, 2, 3, 1}},
                                       {"ihwo", {1, 2, 3, 0}}}) {
        const NamedAttrs attrs{{"filter_layout", std::string(layout)}};
        EXPECT_EQ(values("conv2d", {x, permuted(f, axes), bias}, attrs), expected.as<float>()) << layout;
        const auto nhwc = run("conv2d", {permuted(x, kToNhwc), permuted(f, axes), bias},
                              with(attrs, "input_layout", std::string("nhwc")));
        EXPECT_EQ(nhwc[0].type.shape, (Shape{2, 3, 3, 4}));
        EXPECT_EQ(permuted(nhwc[0], kToNchw).as<float>(), expected.as<float>()) << layout;
    }
}

TEST(Conv2d, OfOnlyPaddingIsTheBias) {
    // With a dilation of 9 only the centre row and column of the filter could meet the image, and they do
    // not.
    const NamedAttrs attrs{{"padding", List{5, 5, 5, 5}}, {"dilations", List{10, 10}}};
    EXPECT_THAT(values("conv2d",
                       {tensor(DType::f32, {1, 1, 1, 1}, {7}), tensor(DType::f32, {1, 1, 2, 2}, {1, 1, 1, 1}),
                        tensor(DType::f32, {1}, {0.5})},
                       attrs),
                Each(0.5f));
}

TEST(Conv2d, OfNoImagesIsEmpty) {
    EXPECT_EQ(
        run("conv2d", {tensor(DType::f32, {0, 1, 3, 3}, {}), scattered(DType::f32, {2, 1, 2, 2})})[0].type,
        f32({0, 2, 2, 2}));
}

TEST(Conv2d, KeepsSymbolicBatchesAndSizes) {
    const Dim n = Dim::symbolic("n"), h = Dim::symbolic("h", 8, 64);
    const NamedAttrs same{{"padding", List{1, 1, 1, 1}}};
    EXPECT_EQ(infer("conv2d", {f32({n, 3, h, 8}), f32({4, 3, 3, 3})}, same).value()[0], f32({n, 4, h, 8}));
    const auto halved = infer("conv2d", {f32({n, 3, h, 8}), f32({4, 3, 2, 2})}, {{"strides", List{2, 2}}});
    EXPECT_EQ(halved.value()[0].shape[2].min_size(), 4);
    EXPECT_EQ(halved.value()[0].shape[2].max_size(), 32);
}

TEST(Conv2d, RejectsWhatDoesNotFit) {
    const TensorType x = f32({1, 4, 5, 5}), f = f32({6, 4, 3, 3});
    EXPECT_THAT(infer_error("conv2d", {f32({4, 5, 5}), f}), HasSubstr("Conv2d input must be 4D, got rank 3"));
    EXPECT_THAT(infer_error("conv2d", {x, f32({4, 3, 3})}),
                HasSubstr("Conv2d filter must be 4D, got rank 3"));
    EXPECT_EQ(infer_error("conv2d", {x, f}, {{"groups", std::int64_t{3}}}),
              "Conv2d input channels 4 must be divisible by groups 3");
    EXPECT_EQ(infer_error("conv2d", {x, f}, {{"groups", std::int64_t{2}}}),
              "Conv2d filter has 4 input channels but 4 input channels in 2 groups need 2");
    EXPECT_EQ(infer_error("conv2d", {x, f32({5, 2, 3, 3})}, {{"groups", std::int64_t{2}}}),
              "Conv2d output channels 5 must be divisible by groups 2");
    EXPECT_THAT(infer_error("conv2d", {x, f}, {{"groups", std::int64_t{0}}}), HasSubstr("groups is 0"));
    EXPECT_EQ(infer_error("conv2d", {x, f, f32({4})}),
              "bias has shape [4] but the filter has 6 output channels");
    EXPECT_EQ(infer_error("conv2d", {x, f}, {{"padding", List{1, 1}}}),
              "padding must have 4 values, got [1, 1]");
    EXPECT_THAT(infer_error("conv2d", {x, f}, {{"strides", List{0, 1}}}),
                HasSubstr("strides must be from 1"));
    EXPECT_THAT(infer_error("conv2d", {x, f}, {{"dilations", List{1, 1LL << 40}}}),
                HasSubstr("dilations must be"));
    EXPECT_THAT(infer_error("conv2d", {x, f}, {{"padding", List{0, -1, 0, 0}}}),
                HasSubstr("padding must be from 0"));
    EXPECT_THAT(infer_error("conv2d", {x, f32({6, 4, 6, 3})}), HasSubstr("Conv2d height"));
    EXPECT_THAT(infer_error("conv2d", {x, f32({6, 4, 3, 6})}), HasSubstr("Conv2d width"));
    EXPECT_THAT(infer_error("conv2d", {x, f32({6, 4, 3, 0})}), HasSubstr("Conv2d width"));
    const Dim c = Dim::symbolic("c");
    EXPECT_THAT(conditions("conv2d", {f32({1, c, 5, 5}), f32({6, 4, 3, 3})}), ElementsAre("c = 4"));
    EXPECT_THAT(infer_error("conv2d", {f32({1, Dim::symbolic("c", 5, 9), 5, 5}), f32({6, 4, 3, 3})}),
                HasSubstr("4 input channels in each of 1 groups but input has c"));
    EXPECT_EQ(infer("conv2d", {x, f32({6, 4, c, 3})}).value()[0].str(), "f32[1, 6, (-c+6), 3]");
    EXPECT_THAT(conditions("conv2d", {x, f32({6, c, 3, 3})}), ElementsAre("c = 4"));
}

TEST(Conv2d, PacksConstantFiltersIntoTheKernelsLayout) {
    const OpDef& def = *find_op("conv2d");
    const auto f = scattered(DType::f32, {5, 3, 2, 4}), packed_from = permuted(f, {2, 3, 1, 0});
    const TensorType x = f32({1, 3, 8, 8});
    const std::array types{&x, &packed_from.type};
    const auto attrs = def.make_attrs({{"filter_layout", std::string("hwio")}}).value();
    const bool constant[] = {false, true}, variable[] = {false, false};
    const auto find = [&](std::span<const bool> constants) -> const KernelDef* {
        for (const KernelDef& k : def.kernels)
            if (k.applies(Operands(types), constants, attrs.get())) return &k;
        return nullptr;
    };
    EXPECT_EQ(find(variable), nullptr);
    const KernelDef* kernel = find(constant);
    ASSERT_NE(kernel, nullptr);
    ASSERT_EQ(kernel->packed_operand, 1);
    std::vector<std::byte> packed(kernel->packed_bytes(Operands(types), attrs.get()));
    const auto shape = packed_from.type.sizes();
    kernel->pack({DType::f32, shape, packed_from.bytes.data()}, attrs.get(), packed.data());
    EXPECT_EQ(packed, f.bytes);
}

}  // namespace
}  // namespace headrace::testing
