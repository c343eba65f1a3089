// run_inference as programs call it that were compiled against headers with 6 and 7 arguments.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include "checkout.h"
#include "doors/wasi_nn/chat_host.h"

namespace headrace::wasi_nn_test {
namespace {

using testing::StartsWith;

class WasiNnArguments : public EachLibrary {
protected:
    using Six = int (*)(void*, std::uint32_t, std::uint32_t, void*, void*, std::uint32_t*);
    using Seven = int (*)(void*, std::uint32_t, std::uint32_t, void*, void*, std::uint32_t*, const char*);

    void SetUp() override {
        EachLibrary::SetUp();
        if (IsSkipped()) return;
        host.emplace(*library);
        context = host->open(host->load());
    }
    void TearDown() override { host.reset(); }
    void* address() const { return reinterpret_cast<void*>(library->raw_run_inference); }
    /// What a caller of fewer arguments leaves where the others would be is not its choice.
    template <class Call>
    std::string answer(Call call) {
        Tensor tensor(GetParam(), "What is 2+3?");
        Buffer buffer(GetParam(), 8192);
        const Output output = buffer.output(call(tensor.get(), buffer.get(), &buffer.size));
        return output.code == 0 ? output.text() : "error " + std::to_string(output.code);
    }
    std::optional<Host> host;
    std::uint32_t context = 0;
};
HR_EACH_LIBRARY(WasiNnArguments);

constexpr char kSevenWords[] = R"({"grammar": "root ::= \"seven\""})";

TEST_P(WasiNnArguments, SixNeedTheVariableAndReadNoOptions) {
    const EnvironmentVariable variable("HEADRACE_RUN_INFERENCE_ARGS", "6");
    const auto six = reinterpret_cast<Six>(address());
    EXPECT_THAT(answer([&](auto... rest) { return six(host->ctx(), context, 0, rest...); }),
                StartsWith("2+3=5"));
    // The worst that can be in the places of the missing arguments.
    EXPECT_THAT(answer([&](auto... rest) {
                    return library->raw_run_inference(host->ctx(), context, 0, rest...,
                                                      reinterpret_cast<const char*>(0x10), 0xffffffff);
                }),
                StartsWith("2+3=5"));
}

TEST_P(WasiNnArguments, SevenNeedTheVariableAndEndAtTheNulByte) {
    const EnvironmentVariable variable("HEADRACE_RUN_INFERENCE_ARGS", "7");
    const auto seven = reinterpret_cast<Seven>(address());
    EXPECT_EQ(answer([&](auto... rest) { return seven(host->ctx(), context, 0, rest..., kSevenWords); }),
              "seven");
    EXPECT_THAT(answer([&](auto... rest) { return seven(host->ctx(), context, 0, rest..., nullptr); }),
                StartsWith("2+3=5"));
    for (const std::uint32_t garbage : {0u, 3u, 0xffffffffu})
        EXPECT_EQ(answer([&](auto... rest) {
                      return library->raw_run_inference(host->ctx(), context, 0, rest..., kSevenWords,
                                                        garbage);
                  }),
                  "seven");
}

TEST_P(WasiNnArguments, EightCountTheOptions) {
    std::string options = std::string(kSevenWords) + "???";
    const auto size = static_cast<std::uint32_t>(sizeof kSevenWords - 1);
    EXPECT_EQ(answer([&](auto... rest) {
                  return library->raw_run_inference(host->ctx(), context, 0, rest..., options.data(), size);
              }),
              "seven");
    EXPECT_EQ(answer([&](auto... rest) {
                  return library->raw_run_inference(host->ctx(), context, 0, rest..., kSevenWords, size + 1);
              }),
              "seven")
        << "the NUL byte may be counted";
}

TEST_P(WasiNnArguments, TheHeaderOfSixAndSevenHasFunctionsOfItsOwn) {
    if (GetParam() != Abi::backend) GTEST_SKIP() << "only the pointer interface has had several";
    void* handle = dlopen((wasi_nn_folder() + "/libwasi_nn_backend.so").c_str(), RTLD_NOW);
    ASSERT_NE(handle, nullptr);
    const auto six = reinterpret_cast<Six>(dlsym(handle, "headrace_run_inference_6"));
    const auto seven = reinterpret_cast<Seven>(dlsym(handle, "headrace_run_inference_7"));
    ASSERT_TRUE(six && seven);
    EXPECT_THAT(answer([&](auto... rest) { return six(host->ctx(), context, 0, rest...); }),
                StartsWith("2+3=5"));
    EXPECT_EQ(answer([&](auto... rest) { return seven(host->ctx(), context, 0, rest..., kSevenWords); }),
              "seven");
    dlclose(handle);
}

}  // namespace
}  // namespace headrace::wasi_nn_test
