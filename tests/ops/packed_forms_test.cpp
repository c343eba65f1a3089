/// The forms that kernels pack weights in, which files of earlier starts hold, too.
#include <gtest/gtest.h>

#include <map>

#include "base/content_hash.h"
#include "engine/sample_graph.h"
#include "kernels/each_target.h"
#include "plan/packed_cache.h"

namespace headrace {
namespace {

using namespace testing;

/// One digest per kernel of what it makes of the constant of the first sample that it computes.
std::map<std::string, std::string> digests() {
    std::map<std::string, std::string> packed;
    for (const Case& c : all_cases()) {
        const Graph graph = build(c).graph;
        for (const Node& node : graph.nodes) {
            const auto types = graph.operand_types(node);
            const Operands in(types);
            const auto mask = graph.constant_mask(node);
            const std::unique_ptr<bool[]> constants(new bool[mask.size()]);
            std::copy(mask.begin(), mask.end(), constants.get());
            for (const KernelDef& kernel : node.op->kernels) {
                if (kernel.packed_operand < 0 ||
                    !kernel.applies(in, {constants.get(), mask.size()}, node.attrs.get()))
                    continue;
                const Value& value = graph.value(node.inputs[kernel.packed_operand]);
                const std::string name = fmt::format("{} of {}", kernel.name, node.op->name);
                if (packed.contains(name)) continue;
                std::string form(kernel.packed_bytes(in, node.attrs.get()), '\0');
                const auto shape = value.type.sizes();
                kernel.pack({value.type.dtype, shape, value.constant->bytes.data(), value.type.format},
                            node.attrs.get(), reinterpret_cast<std::byte*>(form.data()));
                packed[name] = fmt::format("{:016x}", content_hash(form.data(), form.size()).low);
            }
        }
    }
    return packed;
}

TEST(PackedForms, ChangeOnlyWithTheirVersion) {
    const std::map<std::string, std::string> expected{
        {"bf16_gemm_f32 of fused_matmul", "cc52f7ea1260c6a2"},
        {"block_gemm_int8 of fused_matmul", "0e698aee34b2bb78"},
        {"conv2d_f32_ordered of conv2d", "1dbec83bab9e5dda"},
        {"conv2d_f32_ordered of fused_conv2d", "ca00a8d3d1d78254"},
        {"gemm_f32 of fused_matmul", "282e4a9287205caa"},
        {"gemm_f32 of gemm", "878552e168ba038f"},
        {"gemm_f32 of matmul", "c29e154db25912ba"},
        {"half_gemm_f32 of fused_matmul", "cd74a16150ce0297"},
        {"nhwc_conv_transpose2d_f32 of conv_transpose2d", "8fb1946abeac2758"},
        {"nhwc_conv2d_f32 of conv2d", "8816f231d1d5410c"},
        {"nhwc_conv2d_f32 of fused_conv2d", "8816f231d1d5410c"},
        {"nhwc_depthwise_conv2d_f32 of conv2d", "9907c13d8cd1dc8a"},
        {"nhwc_depthwise_conv2d_f32 of fused_conv2d", "ab55102e95ef3964"},
        {"nhwc_winograd_conv2d_f32 of conv2d", "5d010b03349e48da"},
        {"nhwc_winograd_conv2d_f32 of fused_conv2d", "5d010b03349e48da"},
        {"packed_conv2d_f32 of conv2d", "c3b70eb6f5282ecf"},
        {"packed_conv2d_f32 of fused_conv2d", "39e4b81a9d08dc1d"},
        {"packed_lstm_f32 of lstm_recurrence", "ecb9fbbcbdd3d01a"}};
    kernels::testing::for_each_target([&] {
        for (const auto& [name, digest] : digests())
            EXPECT_EQ(digest, expected.contains(name) ? expected.at(name) : "")
                << name << ": raise kPackingVersion (it is " << kPackingVersion
                << "), or files of earlier starts give wrong results; then note the new digest here";
    });
}

}  // namespace
}  // namespace headrace
