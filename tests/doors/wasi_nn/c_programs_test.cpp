// Programs in C, over the public headers and as WAMR calls the libraries: what they print says which call
// went wrong.
#include <gmock/gmock.h>

#include <array>
#include <cstdio>

#include "checkout.h"
#include "doors/wasi_nn/chat_host.h"
#include "temporary_folder.h"

namespace headrace::wasi_nn_test {
namespace {

class WasiNnHeader : public EachLibrary {};
HR_EACH_LIBRARY(WasiNnHeader);

/// more: arguments behind the model.
void expect_success(const std::string& program, const std::string& environment = {},
                    const std::string& more = {}) {
    const std::string command = environment + test_program_folder() + "/wasi_nn_" + program + " '" +
                                model_path() + "' " + more + " 2>&1";
    FILE* output = popen(command.c_str(), "r");
    ASSERT_NE(output, nullptr);
    std::string printed;
    std::array<char, 4096> part{};
    while (fgets(part.data(), part.size(), output)) printed += part.data();
    EXPECT_EQ(pclose(output), 0) << printed;
    EXPECT_THAT(printed, testing::HasSubstr("all calls from C as they should be"));
}

TEST_P(WasiNnHeader, ServesAProgramInC) {
    expect_success(GetParam() == Abi::backend ? "backend_header" : "llamacpp_header");
}

class WasiNnLibraries : public testing::Test {
protected:
    void SetUp() override {
        if (wasi_nn_folder().empty())
            GTEST_SKIP() << "language models are not built: llama.cpp is not set up";
        if (!std::filesystem::exists(model_path())) GTEST_SKIP() << model_path() << " does not exist";
    }
    const std::string found_ = "LD_LIBRARY_PATH='" + wasi_nn_folder() + "' ";
};

TEST_F(WasiNnLibraries, AreFoundAndCalledByNameAsWamrDoes) { expect_success("wamr_host", found_); }

TEST_F(WasiNnLibraries, ServeHostsOfTheBackendWhoseNameOneOfThemHas) {
    expect_success("upstream_host", found_ + "HEADRACE_RUN_INFERENCE_ARGS=6 ");
}

TEST_F(WasiNnLibraries, ServeWhatPublicTestsOfThatBackendGoThrough) {
    const TemporaryFolder folder;
    const std::string other = (folder.path() / "other.gguf").string();
    std::filesystem::copy_file(model_path(), other);
    expect_success("upstream_cases", found_, "'" + other + "' '" + folder.path().string() + "'");
}

}  // namespace
}  // namespace headrace::wasi_nn_test
