/// Constants that are too large to be packed in one piece.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/conv/packed_conv2d_f32.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/tensor/gru_f32.h"
#include "kernels/tensor/lstm_f32.h"
#include "ops/catalog.h"

namespace headrace {
namespace {

using Floats = std::vector<float>;

/// Numbers that tell each element from the others, one byte beyond where floats may lie.
struct Misaligned {
    Floats elements;
    std::vector<std::byte> bytes;

    explicit Misaligned(std::size_t count) : elements(count), bytes(count * sizeof(float) + 1) {
        for (std::size_t i = 0; i < count; ++i) elements[i] = static_cast<float>(i % 16000057);
        std::memcpy(bytes.data() + 1, elements.data(), count * sizeof(float));
    }
    const std::byte* data() const { return bytes.data() + 1; }
};

Floats packed_by(std::string_view op_name, std::string_view kernel_name, const NamedAttrs& attrs,
                 const std::vector<std::int64_t>& shape, const std::byte* data, std::size_t floats) {
    const OpDef& op = *find_op(op_name);
    const AttrBox box = op.make_attrs(attrs).value();
    for (const KernelDef& kernel : op.kernels) {
        if (kernel.name != kernel_name) continue;
        EXPECT_TRUE(kernel.packs_in_one_pass);
        Floats packed(floats, -1);
        kernel.pack({DType::f32, shape, data}, box.get(), reinterpret_cast<std::byte*>(packed.data()));
        return packed;
    }
    ADD_FAILURE() << "no kernel " << kernel_name;
    return {};
}

TEST(PackedInParts, MatricesAreAsInOnePiece) {
    constexpr std::size_t kRows = 1103, kColumns = 2053;
    const Misaligned b(kRows * kColumns);
    Floats expected(kernels::packed_bytes(kRows, kColumns) / sizeof(float), -1);
    kernels::pack(b.elements.data(), kColumns, 1, kRows, kColumns, expected.data());
    EXPECT_EQ(packed_by("matmul", "gemm_f32", {}, {kRows, kColumns}, b.data(), expected.size()), expected);

    Floats transposed(kernels::packed_bytes(kColumns, kRows) / sizeof(float), -1);
    kernels::pack(b.elements.data(), 1, kColumns, kColumns, kRows, transposed.data());
    EXPECT_EQ(packed_by("gemm", "gemm_f32", {{"b_transpose", true}}, {kRows, kColumns}, b.data(),
                        transposed.size()),
              transposed);
}

TEST(PackedInParts, FiltersAreAsInOnePiece) {
    constexpr std::size_t kOutputs = 520, kDepth = 256 * 9;
    const Misaligned filter(kOutputs * kDepth);
    for (const std::size_t groups : {1, 2, 20}) {
        const std::size_t size = kernels::packed_filters_size(kOutputs, groups, kDepth);
        Floats expected(size, -1);
        kernels::pack_filters(filter.elements.data(), kOutputs, groups, kDepth, expected.data());
        const NamedAttrs attrs{{"groups", static_cast<std::int64_t>(groups)}};
        EXPECT_EQ(packed_by("conv2d", "packed_conv2d_f32", attrs, {kOutputs, 256, 3, 3}, filter.data(), size),
                  expected)
            << groups;
    }
}

TEST(PackedInParts, RecurrentWeightsAreAsInOnePiece) {
    constexpr std::int64_t kHidden = 530, kDirections = 2;
    const NamedAttrs size{{"hidden_size", kHidden}};
    const Misaligned lstm(kDirections * 4 * kHidden * kHidden), gru(kDirections * 3 * kHidden * kHidden);
    Floats expected(kernels::packed_lstm_recurrent_bytes(kDirections, kHidden) / sizeof(float), -1);
    kernels::pack_lstm_recurrent(lstm.elements.data(), kDirections, kHidden, expected.data());
    EXPECT_EQ(packed_by("lstm_recurrence", "packed_lstm_f32", size, {kDirections, 4 * kHidden, kHidden},
                        lstm.data(), expected.size()),
              expected);

    expected.assign(kernels::packed_gru_recurrent_bytes(kDirections, kHidden) / sizeof(float), -1);
    kernels::pack_gru_recurrent(gru.elements.data(), kDirections, kHidden, expected.data());
    EXPECT_EQ(packed_by("gru_recurrence", "packed_gru_f32", size, {kDirections, 3 * kHidden, kHidden},
                        gru.data(), expected.size()),
              expected);
}

}  // namespace
}  // namespace headrace
