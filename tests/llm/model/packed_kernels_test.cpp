#include "llm/model/packed_kernels.h"
#include "checkout.h"

#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "llm/model/model.h"

namespace headrace::llm {
namespace {

TEST(PackedKernels, AreOfferedWhereTheyBeatGgmls) {
    if (!std::filesystem::exists(packed_library())) GTEST_SKIP() << "libggml-headrace.so was not built";
    start_llama();
    const bool better = ggml_cpu_has_avx2() && !ggml_cpu_has_amx_int8();
    EXPECT_EQ(ggml_backend_reg_by_name("HEADRACE") != nullptr, better);
    const std::size_t count = ggml_backend_reg_count();
    offer_packed_kernels();
    EXPECT_EQ(ggml_backend_reg_count(), count) << "offered twice";
}

}  // namespace
}  // namespace headrace::llm
