// The programs in C over the public headers: what they print says which call went wrong.
#include <gmock/gmock.h>

#include <array>
#include <cstdio>

#include "checkout.h"
#include "doors/wasi_nn/chat_host.h"

namespace headrace::wasi_nn_test {
namespace {

class WasiNnHeader : public EachLibrary {};
HR_EACH_LIBRARY(WasiNnHeader);

TEST_P(WasiNnHeader, ServesAProgramInC) {
    const std::string name = GetParam() == Abi::backend ? "backend_header" : "llamacpp_header";
    const std::string command = test_program_folder() + "/wasi_nn_" + name + " '" + model_path() + "' 2>&1";
    FILE* program = popen(command.c_str(), "r");
    ASSERT_NE(program, nullptr);
    std::string printed;
    std::array<char, 4096> part{};
    while (fgets(part.data(), part.size(), program)) printed += part.data();
    EXPECT_EQ(pclose(program), 0) << printed;
    EXPECT_THAT(printed, testing::HasSubstr("all calls from C as they should be"));
}

}  // namespace
}  // namespace headrace::wasi_nn_test
