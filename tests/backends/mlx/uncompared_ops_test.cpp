// What the device takes and ggml's own test compares with nothing, since ggml's CPU does not take it: the
// same operands in another form give the same values.
#include <gmock/gmock.h>

#include "backends/mlx/ggml_graph.h"

namespace headrace::mlx {
namespace {

std::vector<std::uint8_t> in_f16(const std::vector<float>& values) {
    return quantized(GGML_TYPE_F16, values, static_cast<std::int64_t>(values.size()));
}
std::vector<float> rounded_to_f16(std::vector<float> values) {
    for (float& v : values) v = ggml_fp16_to_fp32(ggml_fp32_to_fp16(v));
    return values;
}
void set_bytes(ggml_tensor* t, const std::vector<std::uint8_t>& bytes) {
    ggml_backend_tensor_set(t, bytes.data(), 0, bytes.size());
}

class ActivationsInF16 : public ::testing::TestWithParam<ggml_type> {
protected:
    using Op = ggml_tensor* (*)(ggml_context*, ggml_tensor*, ggml_tensor*);

    /// `op` of a matrix of the type, columns x rows, and activations of which the last dimension is `count`.
    std::vector<float> compute(Op op, ggml_type activations, std::int64_t inner, std::int64_t count) {
        const BackendHandle backend = mlx_backend();
        Workbench bench(backend.get());
        ggml_tensor* w = ggml_new_tensor_2d(bench.c(), GetParam(), 256, 24);
        ggml_tensor* x = ggml_new_tensor_2d(bench.c(), activations, inner, count);
        ggml_tensor* y = op(bench.c(), w, x);
        EXPECT_TRUE(ggml_backend_supports_op(backend.get(), y));
        bench.output(y);
        bench.allocate();
        const std::vector<float> weights = random_values(256 * 24);
        set_bytes(w, GetParam() == GGML_TYPE_F32
                         ? std::vector<std::uint8_t>(
                               reinterpret_cast<const std::uint8_t*>(weights.data()),
                               reinterpret_cast<const std::uint8_t*>(weights.data() + 256 * 24))
                         : quantized(GetParam(), weights, 256));
        const std::vector<float> values = rounded_to_f16(random_values(inner * count, 2));
        if (activations == GGML_TYPE_F16)
            set_bytes(x, in_f16(values));
        else
            set(x, values);
        EXPECT_EQ(bench.compute(), GGML_STATUS_SUCCESS);
        return get(y);
    }
};

TEST_P(ActivationsInF16, GiveTheProductOfTheSameValuesInF32) {
    for (const std::int64_t rows : {1, 5, 40})
        EXPECT_EQ(compute(ggml_mul_mat, GGML_TYPE_F16, 256, rows),
                  compute(ggml_mul_mat, GGML_TYPE_F32, 256, rows))
            << rows << " rows";
}

TEST_P(ActivationsInF16, GiveTheOuterProductOfTheSameValuesInF32) {
    EXPECT_EQ(compute(ggml_out_prod, GGML_TYPE_F16, 3, 24), compute(ggml_out_prod, GGML_TYPE_F32, 3, 24));
}

INSTANTIATE_TEST_SUITE_P(Types, ActivationsInF16,
                         ::testing::Values(GGML_TYPE_F32, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,
                                           GGML_TYPE_Q4_K, GGML_TYPE_MXFP4, GGML_TYPE_NVFP4, GGML_TYPE_Q2_0,
                                           GGML_TYPE_IQ2_XXS),
                         [](const auto& info) { return std::string(ggml_type_name(info.param)); });

class RowsInBlocksThatTheCpuDoesNotWrite : public ::testing::TestWithParam<ggml_type> {};

TEST_P(RowsInBlocksThatTheCpuDoesNotWrite, AreThoseOfGgmlsReference) {
    const BackendHandle backend = mlx_backend();
    Workbench bench(backend.get());
    ggml_tensor* cache = ggml_new_tensor_2d(bench.c(), GetParam(), 256, 4);
    ggml_tensor* rows = ggml_new_tensor_2d(bench.c(), GGML_TYPE_F32, 256, 1);
    ggml_tensor* number = ggml_new_tensor_1d(bench.c(), GGML_TYPE_I64, 1);
    ggml_tensor* y = ggml_set_rows(bench.c(), cache, rows, number);
    ASSERT_TRUE(ggml_backend_supports_op(backend.get(), y));
    bench.output(y);
    bench.allocate();
    ggml_backend_buffer_clear(bench.memory.get(), 0);
    const std::vector<float> values = random_values(256);
    set(rows, values);
    const std::int64_t third = 2;
    ggml_backend_tensor_set(number, &third, 0, sizeof third);
    ASSERT_EQ(bench.compute(), GGML_STATUS_SUCCESS);
    std::vector<std::uint8_t> written(ggml_row_size(GetParam(), 256)), expected(written.size());
    ggml_backend_tensor_get(cache, written.data(), 2 * written.size(), written.size());
    ggml_quantize_init(GetParam());
    ggml_get_type_traits(GetParam())->from_float_ref(values.data(), expected.data(), 256);
    EXPECT_EQ(written, expected);
}

INSTANTIATE_TEST_SUITE_P(Types, RowsInBlocksThatTheCpuDoesNotWrite,
                         ::testing::Values(GGML_TYPE_IQ2_S, GGML_TYPE_IQ3_S, GGML_TYPE_IQ3_XXS),
                         [](const auto& info) { return std::string(ggml_type_name(info.param)); });

/// Values of width x height x channels x count, as memory has them with the channels first.
std::vector<float> channels_first(const std::vector<float>& values,
                                  const std::array<std::int64_t, 4>& extents) {
    const auto [width, height, channels, count] = extents;
    std::vector<float> moved(values.size());
    for (std::int64_t n = 0; n < count; ++n)
        for (std::int64_t c = 0; c < channels; ++c)
            for (std::int64_t at = 0; at < width * height; ++at)
                moved[(n * width * height + at) * channels + c] =
                    values[(n * channels + c) * width * height + at];
    return moved;
}

std::vector<float> convolve(ggml_backend_t backend, bool has_channels_first) {
    constexpr std::array<std::int64_t, 4> kImage{9, 7, 4, 2}, kKernel{3, 2, 4, 5};
    Workbench bench(backend);
    const auto operand = [&](const std::array<std::int64_t, 4>& n) {
        ggml_context* c = bench.c();
        if (!has_channels_first) return ggml_new_tensor_4d(c, GGML_TYPE_F32, n[0], n[1], n[2], n[3]);
        return ggml_permute(c, ggml_new_tensor_4d(c, GGML_TYPE_F32, n[2], n[0], n[1], n[3]), 2, 0, 1, 3);
    };
    ggml_tensor *kernel = operand(kKernel), *image = operand(kImage);
    ggml_tensor* y = ggml_conv_2d_direct(bench.c(), kernel, image, 2, 1, 1, 0, 1, 2);
    bench.output(y);
    bench.allocate();
    unsigned seed = 0;
    for (const auto& [t, extents] : {std::pair{kernel, kKernel}, std::pair{image, kImage}}) {
        const std::vector<float> values = random_values(ggml_nelements(t), ++seed);
        set(t->view_src ? t->view_src : t, has_channels_first ? channels_first(values, extents) : values);
    }
    EXPECT_EQ(bench.compute(), GGML_STATUS_SUCCESS);
    return get(y);
}

TEST(Convolution, OfChannelsThatComeFirstInMemoryIsThatOfPlanes) {
    const BackendHandle mlx = mlx_backend(), cpu = cpu_backend();
    EXPECT_LT(largest_difference(convolve(mlx.get(), true), convolve(cpu.get(), false)), 1e-5);
}

}  // namespace
}  // namespace headrace::mlx
