// Calls with wrong arguments, in wrong orders and after the end: each gets an error, and none a crash.
#include <gmock/gmock.h>

#include <fstream>
#include <functional>

#include "checkout.h"
#include "doors/wasi_nn/chat_host.h"
#include "temporary_folder.h"

namespace headrace::wasi_nn_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class WasiNnMisuse : public EachLibrary {};
HR_EACH_LIBRARY(WasiNnMisuse);

constexpr std::uint32_t kNowhere = 4711;

TEST_P(WasiNnMisuse, NullPointersAreInvalidArguments) {
    const Host host(*library);
    const std::uint32_t graph = host.load(), context = host.open(graph);
    void* ctx = host.ctx();
    const std::string path = model_path();
    const auto size = static_cast<std::uint32_t>(path.size());
    std::uint32_t number = 0;
    SizedBytes part{nullptr, 10};
    struct {
        SizedBytes* buf;
        std::uint32_t size;
    } no_parts{nullptr, 1}, no_bytes{&part, 1};
    Tensor tensor(GetParam(), "Hello"), no_data(GetParam(), "Hello");
    Buffer buffer(GetParam(), 100), no_buffer(GetParam(), 100);
    void* nothing = no_buffer.without_data();
    library->set_input(ctx, context, 0, "Hello");
    library->compute(ctx, context);

    EXPECT_EQ(library->init_backend(nullptr), 1);
    EXPECT_EQ(library->init_backend_with_config(nullptr, "{}", 2), 1);
    void* other = nullptr;
    EXPECT_EQ(library->init_backend_with_config(&other, nullptr, 2), 1);
    EXPECT_EQ(other, nullptr);
    EXPECT_EQ(library->deinit_backend(nullptr), 1);
    EXPECT_EQ(library->load(ctx, nullptr, 5, 0, &number), 1);
    EXPECT_EQ(library->load(ctx, &no_parts, 5, 0, &number), 1);
    EXPECT_EQ(library->load(ctx, &no_bytes, 5, 0, &number), 1);
    EXPECT_EQ(library->load(ctx, &no_bytes, 5, 0, nullptr), 1);
    EXPECT_EQ(library->load_by_name(ctx, nullptr, size, &number), 1);
    EXPECT_EQ(library->load_by_name(ctx, path.data(), 0, &number), 1);
    EXPECT_EQ(library->load_by_name(ctx, path.data(), size, nullptr), 1);
    EXPECT_EQ(library->load_by_name_with_config(ctx, path.data(), size, nullptr, 2, &number), 1);
    EXPECT_EQ(library->init_execution_context(ctx, graph, nullptr), 1);
    EXPECT_EQ(library->init_execution_context_with_session_id(ctx, nullptr, &number), 1);
    EXPECT_EQ(library->init_execution_context_with_session_id(ctx, "", &number), 1);
    EXPECT_EQ(library->init_execution_context_with_session_id(ctx, "anna", nullptr), 1);
    EXPECT_EQ(library->raw_set_input(ctx, context, 0, nullptr), 1);
    EXPECT_EQ(library->raw_set_input(ctx, context, 0, no_data.without_data()), 1);
    for (const std::uint32_t index : {0u, 1u}) {
        EXPECT_EQ(library->raw_get_output(ctx, context, index, nullptr, &number), 1);
        EXPECT_EQ(library->raw_get_output(ctx, context, index, nothing, &number), 1);
        EXPECT_EQ(library->raw_get_output(ctx, context, index, buffer.get(), nullptr), 1);
        EXPECT_EQ(library->raw_get_output_single(ctx, context, index, nothing, &number), 1);
        EXPECT_EQ(library->raw_get_output_single(ctx, context, index, buffer.get(), nullptr), 1);
    }
    EXPECT_EQ(library->raw_get_statistics(ctx, nullptr, &number), 1);
    EXPECT_EQ(library->raw_get_statistics(ctx, buffer.get(), nullptr), 1);
    const auto run = [&](void* input, void* output, std::uint32_t* written) {
        return library->raw_run_inference(ctx, context, 0, input, output, written, nullptr, 0);
    };
    EXPECT_EQ(run(nullptr, buffer.get(), &buffer.size), 1);
    EXPECT_EQ(run(no_data.without_data(), buffer.get(), &buffer.size), 1);
    EXPECT_EQ(run(tensor.get(), nothing, &number), 1);
    EXPECT_EQ(run(tensor.get(), buffer.get(), nullptr), 1);
}

/// Every call on a backend's handle, with arguments that are right otherwise.
std::vector<std::pair<std::string, std::function<int(void*)>>> calls(const Library& library,
                                                                     std::uint32_t graph,
                                                                     std::uint32_t context) {
    const auto number = std::make_shared<std::uint32_t>(0);
    return {
        {"load_by_name",
         [=, &library](void* ctx) {
             const std::string path = model_path();
             return library.load_by_name(ctx, path.data(), std::uint32_t(path.size()), number.get());
         }},
        {"unload", [=, &library](void* ctx) { return library.unload(ctx, graph); }},
        {"init_execution_context",
         [=, &library](void* ctx) { return library.init_execution_context(ctx, graph, number.get()); }},
        {"init_execution_context_with_session_id",
         [=, &library](void* ctx) {
             return library.init_execution_context_with_session_id(ctx, "anna", number.get());
         }},
        {"close_execution_context",
         [=, &library](void* ctx) { return library.close_execution_context(ctx, context); }},
        {"set_input", [=, &library](void* ctx) { return library.set_input(ctx, context, 0, "Hello"); }},
        {"compute", [=, &library](void* ctx) { return library.compute(ctx, context); }},
        {"get_output", [=, &library](void* ctx) { return library.get_output(ctx, context, 0).code; }},
        {"metadata", [=, &library](void* ctx) { return library.get_output(ctx, context, 1).code; }},
        {"compute_single", [=, &library](void* ctx) { return library.compute_single(ctx, context); }},
        {"get_output_single",
         [=, &library](void* ctx) { return library.get_output_single(ctx, context, 0).code; }},
        {"fini_single", [=, &library](void* ctx) { return library.fini_single(ctx, context); }},
        {"cancel_inference", [=, &library](void* ctx) { return library.cancel_inference(ctx, context); }},
        {"run_inference",
         [=, &library](void* ctx) { return library.run_inference(ctx, context, "Hello").code; }},
    };
}

TEST_P(WasiNnMisuse, EveryCallRefusesABackendThatIsNone) {
    void* closed = nullptr;
    {
        Host host(*library);
        closed = host.ctx();
        host.open(host.load());
    }
    int local = 0;
    for (void* ctx :
         {closed, static_cast<void*>(&local), reinterpret_cast<void*>(-1), static_cast<void*>(nullptr)}) {
        for (const auto& [name, call] : calls(*library, 0, 1)) EXPECT_EQ(call(ctx), 1) << name;
        EXPECT_EQ(library->deinit_backend(ctx), 1);
    }
}

TEST_P(WasiNnMisuse, EveryCallRefusesAGraphAndAContextThatAreNone) {
    const Host host(*library);
    host.open(host.load());
    for (const auto& [name, call] : calls(*library, kNowhere, kNowhere)) {
        if (name == "load_by_name" || name == "init_execution_context_with_session_id") continue;
        EXPECT_EQ(call(host.ctx()), library->numbers.not_found) << name;
    }
}

TEST_P(WasiNnMisuse, NothingCanBeOpenedBeforeALoad) {
    const Host host(*library);
    for (const auto& [name, call] : calls(*library, 0, 1)) {
        if (name == "load_by_name") continue;
        EXPECT_EQ(call(host.ctx()), library->numbers.not_found) << name;
    }
}

TEST_P(WasiNnMisuse, AContextWithoutInputHasNoAnswer) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    EXPECT_EQ(library->get_output(host.ctx(), context, 0).code, 1);
    EXPECT_EQ(library->get_output(host.ctx(), context, 1).code, 1) << "no call has failed yet";
    EXPECT_EQ(library->compute_single(host.ctx(), context), 1);
    EXPECT_EQ(library->compute(host.ctx(), context), 1);
    EXPECT_THAT(library->get_output(host.ctx(), context, 1).text(),
                StartsWith(R"({"error":{"code":"invalid_state","message":"input 0)"));
    EXPECT_EQ(library->fini_single(host.ctx(), context), 0) << "there is nothing to give up";
    EXPECT_EQ(library->cancel_inference(host.ctx(), context), 0);
    EXPECT_EQ(library->set_input(host.ctx(), context, 2, "?"), 1);
    EXPECT_EQ(library->set_input(host.ctx(), context, 1, R"({"n_predict": 1})"), 0);
    EXPECT_EQ(library->compute(host.ctx(), context), 1) << "parameters are no prompt";
    EXPECT_EQ(library->set_input(host.ctx(), context, 0, "Hello"), 0);
    EXPECT_EQ(library->get_output(host.ctx(), context, 0).code, 1) << "nothing was computed";
    EXPECT_EQ(library->compute(host.ctx(), context), 0);
    EXPECT_EQ(library->get_output(host.ctx(), context, 0).code, 0);
    EXPECT_EQ(library->get_output(host.ctx(), context, 2).code, 1);
    EXPECT_EQ(library->get_output_single(host.ctx(), context, 2).code, 1);
}

TEST_P(WasiNnMisuse, AnyOrderOfCallsLeavesTheBackendUsable) {
    // Each call follows each other one; contexts and graphs are closed and unloaded on the way.
    const Host host(*library, R"({"n_threads": 1, "n_ctx": 512, "n_predict": 2, "log_level": "none"})");
    const std::size_t count = calls(*library, 0, 0).size();
    for (std::size_t first = 0; first < count; ++first) {
        for (std::size_t second = 0; second < count; ++second) {
            const std::uint32_t graph = host.load(R"({"replace": "false"})"), context = host.open(graph);
            const auto list = calls(*library, graph, context);
            list[first].second(host.ctx());
            const int code = list[second].second(host.ctx());
            EXPECT_TRUE(code == 0 || code == 1 || code == library->numbers.busy || code == 100 ||
                        code == library->numbers.not_found)
                << list[first].first << ", " << list[second].first << ": " << code;
            library->close_execution_context(host.ctx(), context);
            library->unload(host.ctx(), graph);
        }
    }
    EXPECT_EQ(
        host.ask(host.open(host.load()), "Hello", R"({"grammar": "root ::= \"fine\"", "n_predict": 9})"),
        "fine");
}

TEST_P(WasiNnMisuse, AWholeAnswerWaitsForNoPieces) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load());
    ASSERT_EQ(library->set_input(host.ctx(), context, 0, "Tell me a story."), 0);
    ASSERT_EQ(library->compute_single(host.ctx(), context), 0);
    EXPECT_EQ(library->compute(host.ctx(), context), library->numbers.busy);
    EXPECT_EQ(library->fini_single(host.ctx(), context), 0);
}

TEST_P(WasiNnMisuse, FailedRequestsSayWhyAtOutputOne) {
    const Host host(*library);
    const std::uint32_t context = host.open(host.load(R"({"n_threads": 1, "n_ctx": 256})"));
    EXPECT_EQ(host.ask(context, "Hello", R"({"grammar": "root ::= ("})"), "error 1");
    EXPECT_THAT(library->get_output(host.ctx(), context, 1).text(),
                StartsWith(R"({"error":{"code":"invalid_argument","message":)"));
    EXPECT_EQ(host.ask(context, std::string(20000, 'x')), "error 102");
    EXPECT_THAT(library->get_output(host.ctx(), context, 1).text(), HasSubstr(R"("prompt_too_long")"));
    EXPECT_EQ(host.ask(context, "Hello", R"({"stop_patterns": ["(a"], "strict": true})"), "error 1");
    EXPECT_THAT(library->get_output(host.ctx(), context, 1).text(), HasSubstr("stop pattern"));
    EXPECT_EQ(library->get_output(host.ctx(), context, 0).code, 1) << "a failed request has no answer";
}

TEST_P(WasiNnMisuse, FailedCallsWithoutAContextSayWhyAtContextZero) {
    const Host host(*library, R"({"max_concurrent": 1})");
    const auto reason = [&] { return library->get_output(host.ctx(), 0, 1).text(); };
    EXPECT_EQ(library->get_output(host.ctx(), 0, 1).code, library->numbers.not_found) << "nothing has failed";
    std::uint32_t graph = 0, context = 0;
    EXPECT_EQ(host.try_load("/nowhere.gguf", "", &graph), 103);
    EXPECT_THAT(reason(),
                AllOf(StartsWith(R"({"error":{"code":"not_found","message":)"), HasSubstr("/nowhere.gguf")));
    EXPECT_EQ(host.try_load(model_path(), R"({"draft_model": "/no/draft.gguf"})", &graph), 103);
    EXPECT_THAT(reason(), HasSubstr("/no/draft.gguf"));
    if (GetParam() == Abi::llamacpp) {
        EXPECT_EQ(host.try_load(model_path(), "{", &graph), 1);
        EXPECT_THAT(reason(), HasSubstr("not valid JSON: line 1, column 2"));
    }
    EXPECT_EQ(library->load_by_name(host.ctx(), "", 0, &graph), 1);
    EXPECT_THAT(reason(), HasSubstr("name is NULL or empty"));
    std::string bytes = "GGUF and nothing else";
    SizedBytes part{reinterpret_cast<std::uint8_t*>(bytes.data()), static_cast<std::uint32_t>(bytes.size())};
    struct {
        SizedBytes* buf;
        std::uint32_t size;
    } model{&part, 1}, parts{&part, 2};
    EXPECT_EQ(library->load(host.ctx(), &model, 2, 0, &graph), 2);
    EXPECT_THAT(reason(), HasSubstr("encoding 2 is not read"));
    EXPECT_EQ(library->load(host.ctx(), &parts, 5, 0, &graph), 1);
    EXPECT_THAT(reason(), HasSubstr("one builder"));
    EXPECT_EQ(library->load(host.ctx(), &model, 5, 0, &graph), 1);
    EXPECT_THAT(reason(), AllOf(HasSubstr(R"("the model in memory: )"), Not(HasSubstr("/proc"))));
    EXPECT_EQ(library->load(host.ctx(), nullptr, 5, 0, &graph), 1);
    EXPECT_THAT(reason(), HasSubstr("the builder is NULL or empty"));
    graph = host.load();
    host.open(graph);
    EXPECT_EQ(library->raw_set_input(host.ctx(), 1, 0, nullptr), 1);
    EXPECT_THAT(reason(), HasSubstr("the tensor or its data is NULL"));
    EXPECT_EQ(library->init_execution_context(host.ctx(), graph, &context), library->numbers.busy);
    EXPECT_THAT(reason(), AllOf(HasSubstr(R"("busy")"), HasSubstr("max_concurrent")));
    EXPECT_EQ(library->compute(host.ctx(), kNowhere), library->numbers.not_found);
    EXPECT_THAT(reason(), HasSubstr("there is no execution context 4711"));
}

TEST_P(WasiNnMisuse, WhatIsWrongWithARequestIsLoggedWithItsSessionAndNumber) {
    const TemporaryFolder folder;
    const std::string file = folder / "log";
    {
        const Host host(*library,
                        R"({"log_format": "json", "log_level": "warn", "log_file": ")" + file + R"("})");
        host.load();
        const std::uint32_t context = host.open_session("ada");
        host.ask(context, "Hello", R"({"min_p": 4})");
        host.ask(context, "Hello", R"({"grammar": "root ::= ("})");
        EXPECT_EQ(library->set_input(host.ctx(), context, 2, "?"), 1);
    }
    const Host other(*library, R"({"log_level": "info"})");  // the log goes to stderr again
    std::ifstream stream(file);
    std::string line, warned, refused, called;
    while (std::getline(stream, line)) {
        if (line.find("min_p") != line.npos) warned = line;
        if (line.find("grammar") != line.npos) refused = line;
        if (line.find("there is no input 2") != line.npos) called = line;
    }
    EXPECT_THAT(warned, AllOf(HasSubstr(R"("level":"warn")"), HasSubstr(R"("session":"ada","request":)")));
    EXPECT_THAT(refused, AllOf(HasSubstr(R"("level":"error")"), HasSubstr(R"("session":"ada")")));
    EXPECT_THAT(called, AllOf(HasSubstr(R"("level":"error")"), HasSubstr(R"("session":"ada")")));
}

TEST_P(WasiNnMisuse, LoadsThatFailSayWhichKind) {
    const Host host(*library, kModelConfig);
    std::uint32_t graph = 77;
    EXPECT_EQ(host.try_load("/nowhere.gguf", "", &graph), 103);
    EXPECT_EQ(host.try_load(checkout_path("README.md"), "", &graph), 1);
    EXPECT_EQ(host.try_load(checkout_path(), "", &graph), 103) << "a folder is no file";
    if (GetParam() == Abi::llamacpp) {  // the other takes the defaults: hosts_test.cpp
        EXPECT_EQ(host.try_load(model_path(), "{", &graph), 1) << "malformed JSON";
        EXPECT_EQ(host.try_load(model_path(), "[1]", &graph), 1);
    }
    EXPECT_EQ(host.try_load(std::string("a\0b", 3), "", &graph), 103) << "ends at the NUL byte";
    EXPECT_EQ(graph, 77u);
    EXPECT_EQ(host.load(), 0u);
}

}  // namespace
}  // namespace headrace::wasi_nn_test
