/// Every op of the catalog, every sample: packed kernel and ggml lowering against the reference kernel.
#include <cstdio>
#include <set>

#include "kernels/gemm/bf16_gemm_f32.h"
#include "kernels/gemm/block_gemm_int8.h"
#include "kernels/int8/byte_quads.h"
#include "sample_outcome.h"

namespace headrace {
namespace {

using namespace testing;

class OpSample : public ::testing::TestWithParam<Case> {};

TEST_P(OpSample, LoweringAndKernelAgreeWithTheReference) {
    const Built built = build(GetParam());
    const Outcome reference = execute(built, {.threads = 1, .packed_kernels = false, .native_ops = false});
    EXPECT_EQ(reference.implementation, "reference");
    for (const CompileOptions& options :
         {CompileOptions{.threads = 2, .packed_kernels = false},
          CompileOptions{.threads = 2, .native_ops = false}, CompileOptions{.threads = 2}}) {
        const Outcome other = execute(built, options);
        SCOPED_TRACE(other.implementation);
        for (std::size_t i = 0; i < other.outputs.size(); ++i)
            expect_same(built.graph.value(built.graph.outputs[i].second).type, other.outputs[i],
                        reference.outputs[i], GetParam().sample.tolerance);
    }
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
    return std::string(info.param.op->name) + "_" + std::to_string(info.param.index);
}

INSTANTIATE_TEST_SUITE_P(Catalog, OpSample, ::testing::ValuesIn(all_cases()), case_name);

/// Some kernels are for processors with certain instructions only.
bool is_for_this_processor(std::string_view kernel) {
    if (kernel.find("bf16") != kernel.npos) return kernels::has_bf16_gemm();
    if (kernel.starts_with("quad_")) return kernels::has_byte_quads();
    return kernel != "block_gemm_int8" || kernels::has_block_gemm_int8(BlockFormat::q8_0);
}

/// Without this, a predicate that always said no would make the comparison above one of equals.
TEST(Catalog, EveryLoweringAndEveryKernelRunsSomeSample) {
    std::set<std::string> used;
    for (const Case& c : all_cases()) {
        const Built built = build(c);
        for (const bool kernels : {false, true}) {
            const CompileOptions options{.packed_kernels = kernels, .native_ops = !kernels};
            used.insert(std::string(c.op->name) + " " + execute(built, options).implementation);
        }
    }
    for (const OpDef* op : all_ops()) {
        const std::string name(op->name);
        if (op->lower) {
            EXPECT_TRUE(used.contains(name + " ggml")) << name;
        }
        for (const KernelDef& kernel : op->kernels) {
            if (!is_for_this_processor(kernel.name)) {
                std::printf("%s %s: not run, this processor has no instructions for it\n", name.c_str(),
                            std::string(kernel.name).c_str());
                continue;
            }
            EXPECT_TRUE(used.contains(name + " " + std::string(kernel.name))) << name << " " << kernel.name;
        }
    }
}

TEST(Catalog, EveryOpHasASampleAndASummary) {
    for (const OpDef* op : all_ops()) {
        // Bodies are no values that could be drawn: control_flow_test.cpp runs those.
        const bool has_bodies = op->control != Control::none;
        EXPECT_TRUE(has_bodies || (op->samples && !op->samples().empty())) << op->name;
        EXPECT_FALSE(op->summary.empty()) << op->name;
    }
}

}  // namespace
}  // namespace headrace
