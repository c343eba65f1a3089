#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "checkout.h"
#include "doors/wasi_nn/library.h"
#include "environment.h"

namespace headrace::wasi_nn_test {

/// The tiny chat model of the repository. One thread: more only wait for each other on a busy machine.
inline std::string model_path() {
    if (const char* path = std::getenv("HEADRACE_CHAT_MODEL")) return path;
    return checkout_path("models/tiny-chat-q8_0.gguf");
}
inline constexpr std::string_view kModelConfig = R"({"n_threads": 1, "n_ctx": 1024, "temperature": 0})";
inline constexpr std::string_view kQuestion = "What is 2+3?", kAnswer = "2+3=5";

/// One backend of a library, closed at the end.
class Host {
public:
    explicit Host(const Library& library, std::string_view config = {}) : library_(library) {
        EXPECT_EQ(library.init_backend_with_config(&ctx_, config.data(), std::uint32_t(config.size())), 0);
    }
    ~Host() {
        if (ctx_) library_.deinit_backend(ctx_);
    }
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    void* ctx() const { return ctx_; }
    void* release() { return std::exchange(ctx_, nullptr); }

    int try_load(std::string_view name, std::string_view config, std::uint32_t* graph) const {
        return library_.load_by_name_with_config(ctx_, name.data(), std::uint32_t(name.size()), config.data(),
                                                 std::uint32_t(config.size()), graph);
    }
    std::uint32_t load(std::string_view config = kModelConfig) const {
        std::uint32_t graph = 77;
        EXPECT_EQ(try_load(model_path(), config, &graph), 0);
        return graph;
    }
    std::uint32_t open(std::uint32_t graph) const {
        std::uint32_t context = 0;
        EXPECT_EQ(library_.init_execution_context(ctx_, graph, &context), 0);
        return context;
    }
    std::uint32_t open_session(const char* name) const {
        std::uint32_t context = 0;
        EXPECT_EQ(library_.init_execution_context_with_session_id(ctx_, name, &context), 0);
        return context;
    }
    /// The answer, or "error N".
    std::string ask(std::uint32_t context, std::string_view prompt, std::string_view options = {}) const {
        const Output output = library_.run_inference(ctx_, context, prompt, options);
        return output.code == 0 ? output.text() : "error " + std::to_string(output.code);
    }

private:
    const Library& library_;
    void* ctx_ = nullptr;
};

/// Tests that run once with each library.
class EachLibrary : public testing::TestWithParam<Abi> {
protected:
    void SetUp() override {
        if (wasi_nn_folder().empty())
            GTEST_SKIP() << "language models are not built: llama.cpp is not set up";
        if (!std::filesystem::exists(model_path())) GTEST_SKIP() << model_path() << " does not exist";
        library.emplace(GetParam());
    }
    std::optional<Library> library;
};

#define HR_EACH_LIBRARY(suite)                                                                         \
    INSTANTIATE_TEST_SUITE_P(Abi, suite,                                                               \
                             testing::Values(wasi_nn_test::Abi::backend, wasi_nn_test::Abi::llamacpp), \
                             [](const auto& info) { return name_of(info.param); })

}  // namespace headrace::wasi_nn_test
