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
        {"bf16_gemm_f32 of fused_matmul", "223bb4e874b1576e"},
        {"block_gemm_int8 of fused_matmul", "f57d28432c1842bf"},
        {"conv2d_f32_ordered of conv2d", "dfe6734425cfaa07"},
        {"conv2d_f32_ordered of fused_conv2d", "90c20ec2973b958b"},
        {"gemm_f32 of fused_matmul", "2549e2e9b126b007"},
        {"gemm_f32 of gemm", "141b98a3017002b3"},
        {"gemm_f32 of matmul", "1d3705a358df6d08"},
        {"f16_gemm_f32 of fused_matmul", "6ee55f18bbd126ee"},
        {"nhwc_conv_transpose2d_f32 of conv_transpose2d", "1ab9becf4c544099"},
        {"nhwc_conv2d_f32 of conv2d", "a2752b711fb313e4"},
        {"nhwc_conv2d_f32 of fused_conv2d", "a2752b711fb313e4"},
        {"nhwc_depthwise_conv2d_f32 of conv2d", "8f39442c8569c4ab"},
        {"nhwc_depthwise_conv2d_f32 of fused_conv2d", "9933c0fb17e01f71"},
        {"nhwc_winograd_conv2d_f32 of conv2d", "7930395812982d4c"},
        {"nhwc_winograd_conv2d_f32 of fused_conv2d", "7930395812982d4c"},
        {"packed_conv2d_f32 of conv2d", "4c03b389fced8c3c"},
        {"packed_conv2d_f32 of fused_conv2d", "03eadcea2f72ce1e"},
        {"packed_gru_f32 of gru_recurrence", "0c4a1d9630f271c6"},
        {"packed_lstm_f32 of lstm_recurrence", "a54aade6479d904f"},
        {"int8_conv2d of quantized_conv2d", "ca754f36189ed24d"},
        {"int8_depthwise_conv2d of quantized_conv2d", "5d0979d457a0d6e6"},
        {"int8_winograd_conv2d of quantized_conv2d", "c5b07400e1f3c1cd"},
        {"int8_matmul of dequantized_matmul", "a133eb0073f52398"},
        {"int8_matmul of matmul_integer", "a133eb0073f52398"},
        {"int8_matmul of quantized_matmul", "a133eb0073f52398"},
        {"nhwc_bf16_conv2d of fused_conv2d", "9ed70d2b742fb4f7"},
        {"nhwc_bf16_winograd_conv2d of fused_conv2d", "e3445ff4702d9797"},
        {"packed_lstm_bf16 of lstm_recurrence", "5b6f2a66101c29cc"},
        {"quad_conv2d of quantized_conv2d", "1c119cb3934bd9de"},
        {"quad_depthwise_conv2d of quantized_conv2d", "836751d4cf3cac10"},
        {"quad_matmul of dequantized_matmul", "61dea4b0a5f47a9a"},
        {"quad_matmul of matmul_integer", "61dea4b0a5f47a9a"},
        {"quad_matmul of quantized_matmul", "61dea4b0a5f47a9a"}};
    kernels::testing::for_each_target([&] {
        for (const auto& [name, digest] : digests())
            EXPECT_EQ(digest, expected.contains(name) ? expected.at(name) : "")
                << name << ": raise kPackingVersion (it is " << kPackingVersion
                << "), or files of earlier starts give wrong results; then note the new digest here";
    });
}

}  // namespace
}  // namespace headrace
