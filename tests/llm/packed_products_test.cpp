#include "llm/packed_products.h"

#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "llm/model.h"

namespace headrace::llm {
namespace {

#ifndef HEADRACE_PACKED_LIBRARY
#define HEADRACE_PACKED_LIBRARY ""
#endif

TEST(PackedProducts, AreOfferedWhereTheyBeatGgmls) {
    if (!std::filesystem::exists(HEADRACE_PACKED_LIBRARY))
        GTEST_SKIP() << "libggml-headrace.so was not built";
    start_llama();
    const bool better = ggml_cpu_has_avx2() && !ggml_cpu_has_amx_int8();
    EXPECT_EQ(ggml_backend_reg_by_name("HEADRACE") != nullptr, better);
    const size_t count = ggml_backend_reg_count();
    offer_packed_products();
    EXPECT_EQ(ggml_backend_reg_count(), count) << "offered twice";
}

}  // namespace
}  // namespace headrace::llm
