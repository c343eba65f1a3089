// What a host allows its guests.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "doors/wasi_nn/graph_host.h"
#include "temporary_folder.h"

namespace headrace::wasi_nn_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class WasiNnGraphLimits : public EachGraphLibrary {};
HR_EACH_GRAPH_LIBRARY(WasiNnGraphLimits);

/// y = x x x ... of squares, for much longer than a test may take.
std::string endless() {
    std::vector<std::string> nodes;
    std::string last = "x";
    for (int i = 0; i < 5000; ++i) {
        const std::string next = i == 4999 ? "y" : "y" + std::to_string(i);
        nodes.push_back(onnx::node("MatMul", {last, "x"}, next));
        last = next;
    }
    return onnx::model_of(nodes, {value("x", kF32, {"n", "n"})}, {value("y", kF32, {"n", "n"})});
}

/// y = x in the shape of another input.
std::string expanded() {
    return onnx::model_of({onnx::node("Expand", {"x", "shape"}, "y")},
                          {value("x", kF32, {"1"}), value("shape", kI64, {"1"})}, {value("y", kF32, {"m"})});
}

TEST_P(WasiNnGraphLimits, EndARunThatTakesTooLong) {
    const Host host(*library, R"({"max_compute_ms": 20})");
    const std::uint32_t context = host.open(load(host, endless()));
    constexpr std::uint32_t kMuch = 400;
    ASSERT_EQ(set(host, context, 0, std::vector<float>(kMuch * kMuch), {kMuch, kMuch}), 0);
    EXPECT_EQ(library->compute(host.ctx(), context), library->numbers.timed_out);
    EXPECT_THAT(failure(host), HasSubstr("the graph ran longer than 20 ms, the host's max_compute_ms"));
    EXPECT_EQ(library->get_output(host.ctx(), context, 0).code, 1);
}

TEST_P(WasiNnGraphLimits, CancelEndsARunOfAnotherThread) {
    const Host host(*library);
    const std::uint32_t context = host.open(load(host, endless()));
    constexpr std::uint32_t kMuch = 400;
    ASSERT_EQ(set(host, context, 0, std::vector<float>(kMuch * kMuch), {kMuch, kMuch}), 0);
    std::atomic<bool> ended = false;
    std::thread cancelling([&] {
        while (!ended) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            EXPECT_EQ(library->cancel_inference(host.ctx(), context), 0);
        }
    });
    EXPECT_EQ(library->compute(host.ctx(), context), library->numbers.cancelled);
    ended = true;
    cancelling.join();
    ASSERT_EQ(set(host, context, 0, {2}, {1, 1}), 0);
    EXPECT_EQ(library->compute(host.ctx(), context), 0) << "the context goes on working";
}

TEST_P(WasiNnGraphLimits, HoldTheTensorsAndActivationsOfAGraph) {
    const Host host(*library, R"({"max_graph_bytes": 1000000})");
    const std::uint32_t graph = load(host, expanded()), context = host.open(graph);
    const auto shape = [&](std::int64_t elements) {
        return set(host, context, 1, bytes_of(std::vector{elements}), types_of(GetParam()).i64, {1});
    };
    ASSERT_EQ(set(host, context, 0, {7}, {1}), 0);
    for (const std::int64_t elements : {std::int64_t{300000}, std::int64_t{1} << 33, std::int64_t{1} << 60}) {
        ASSERT_EQ(shape(elements), 0);
        EXPECT_NE(library->compute(host.ctx(), context), 0) << elements;
    }
    ASSERT_EQ(shape(300000), 0);
    EXPECT_EQ(library->compute(host.ctx(), context), library->numbers.no_memory);
    EXPECT_THAT(failure(host), HasSubstr("are in use of the 1000000 that may be"));
    ASSERT_EQ(shape(2), 0);
    EXPECT_EQ(library->compute(host.ctx(), context), 0) << failure(host);
    EXPECT_THAT(values_of(library->get_output(host.ctx(), context, 0)), ElementsAre(7, 7));

    const std::uint32_t sums = load(host, sum_and_product()), other = host.open(sums);
    EXPECT_EQ(set(host, other, 0, std::vector<float>(300000), {150000, 2}), library->numbers.no_memory);
    EXPECT_EQ(set(host, other, 0, {1, 2}, {1, 2}), 0);
}

TEST_P(WasiNnGraphLimits, HoldWhatEachContextKeepsOfAGraph) {
    std::vector<std::string> nodes;
    std::string last = "x";
    for (int i = 0; i < 1000; ++i) {
        const std::string next = i == 999 ? "y" : "y" + std::to_string(i);
        nodes.push_back(onnx::node(i % 2 ? "Sin" : "Tanh", {last}, next));
        last = next;
    }
    const std::string chain = onnx::model_of(nodes, {value("x", kF32, {"n"})}, {value("y", kF32, {"n"})});
    const Host host(*library, R"({"max_graph_bytes": 20000000})");
    const std::uint32_t graph = load(host, chain);
    std::vector<std::uint32_t> contexts;
    int code = 0;
    while (code == 0 && contexts.size() < 100) {
        contexts.push_back(host.open(graph));
        ASSERT_EQ(set(host, contexts.back(), 0, {1}, {1}), 0);
        code = library->compute(host.ctx(), contexts.back());
    }
    EXPECT_EQ(code, library->numbers.no_memory);
    EXPECT_THAT(failure(host), HasSubstr("for what a session keeps of its graph are too many"));
    EXPECT_LT(contexts.size(), 40u);
    EXPECT_EQ(library->close_execution_context(host.ctx(), contexts.front()), 0);
    EXPECT_EQ(library->compute(host.ctx(), contexts.back()), 0) << "a closed context gives it back";
}

TEST_P(WasiNnGraphLimits, HoldTheBytesOfAModel) {
    const TemporaryFolder folder;
    const std::string small = sum_and_product(), large = endless(), path = folder / "large.onnx";
    std::ofstream(path, std::ios::binary) << large;
    const Host host(*library, R"({"max_model_bytes": 10000})");
    std::uint32_t graph = 77;
    EXPECT_EQ(try_load(host, large, &graph), library->numbers.too_large);
    EXPECT_THAT(failure(host), HasSubstr("the host's max_model_bytes is 10000"));
    EXPECT_EQ(host.try_load(path, "", &graph), library->numbers.too_large);
    if (std::filesystem::exists(model_path())) {
        EXPECT_EQ(host.try_load(model_path(), "", &graph), library->numbers.too_large);
    }
    EXPECT_EQ(graph, 77u);
    EXPECT_EQ(try_load(host, small, &graph), 0);
}

TEST_P(WasiNnGraphLimits, HoldTheNumberOfGraphs) {
    const Host host(*library, R"({"max_graphs": 2})");
    const std::uint32_t first = load(host, sum_and_product());
    load(host, sum_and_product());
    std::uint32_t graph = 77;
    EXPECT_EQ(try_load(host, sum_and_product(), &graph), library->numbers.busy);
    EXPECT_THAT(failure(host), HasSubstr("2 graphs are loaded, the host's max_graphs; unload one"));
    EXPECT_EQ(graph, 77u);
    EXPECT_EQ(library->unload(host.ctx(), first), 0);
    EXPECT_EQ(try_load(host, sum_and_product(), &graph), 0);
}

TEST_P(WasiNnGraphLimits, HoldTheNumberOfContextsWhichUnloadingGivesBack) {
    const Host host(*library, R"({"max_contexts": 3})");
    const std::uint32_t graph = load(host, sum_and_product()), other = load(host, sum_and_product());
    const std::uint32_t first = host.open(graph);
    host.open(graph);
    host.open(other);
    std::uint32_t context = 77;
    EXPECT_EQ(library->init_execution_context(host.ctx(), graph, &context), library->numbers.busy);
    EXPECT_THAT(failure(host), HasSubstr("3 contexts are open, the host's max_contexts; close one"));
    EXPECT_EQ(library->close_execution_context(host.ctx(), first), 0);
    host.open(graph);
    EXPECT_EQ(library->init_execution_context(host.ctx(), graph, &context), library->numbers.busy);
    EXPECT_EQ(library->unload(host.ctx(), graph), 0);
    host.open(other);
    host.open(other);
    EXPECT_EQ(library->init_execution_context(host.ctx(), other, &context), library->numbers.busy);
}

TEST_P(WasiNnGraphLimits, KeepAGuestThatFloodsLoopsAndLeaksFromHurtingAnother) {
    const Host host(*library), hostile(*library, R"({"max_compute_ms": 20, "max_graphs": 3, "max_contexts": 5,
                                                     "max_graph_bytes": 20000000})");
    const std::uint32_t context = host.open(load(host, sum_and_product()));
    const std::uint32_t loop = load(hostile, endless()), looping = hostile.open(loop);
    constexpr std::uint32_t kMuch = 400;
    std::atomic<bool> ended = false;
    std::thread flooding([&] {
        std::uint32_t number = 0;
        for (int leaked = 0; !ended; ++leaked) {
            EXPECT_EQ(try_load(hostile, sum_and_product(), &number), leaked < 2 ? 0 : library->numbers.busy);
            EXPECT_EQ(library->init_execution_context(hostile.ctx(), loop, &number),
                      leaked < 4 ? 0 : library->numbers.busy);
            EXPECT_EQ(set(hostile, looping, 0, std::vector<float>(kMuch * kMuch), {kMuch, kMuch}), 0);
            EXPECT_EQ(library->compute(hostile.ctx(), looping), library->numbers.timed_out);
            EXPECT_EQ(
                set(hostile, looping, 0, std::vector<float>(36 * kMuch * kMuch), {6 * kMuch, 6 * kMuch}),
                library->numbers.no_memory);
        }
    });
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(set(host, context, 0, {float(i), 2}, {1, 2}), 0);
        EXPECT_EQ(set(host, context, 1, {1, 1}, {2}), 0);
        EXPECT_EQ(library->compute(host.ctx(), context), 0);
        EXPECT_THAT(values_of(library->get_output(host.ctx(), context, 0)), ElementsAre(i + 1, 3));
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ended = true;
    flooding.join();
    host.open(load(host, sum_and_product()));
}

TEST_P(WasiNnGraphLimits, MayForbidModelsThatGuestsBring) {
    const TemporaryFolder folder;
    const std::string path = folder / "sums.onnx";
    std::ofstream(path, std::ios::binary) << sum_and_product();
    const Host host(*library, R"({"guest_bytes": false})");
    std::uint32_t graph = 77;
    for (const std::uint32_t encoding : {1u, 5u, 6u}) {
        EXPECT_EQ(try_load(host, sum_and_product(), &graph, encoding), library->numbers.outside_root);
        EXPECT_EQ(try_load(host, "GGUF", &graph, encoding), library->numbers.outside_root);
    }
    EXPECT_THAT(failure(host), HasSubstr("by name alone (guest_bytes)"));
    EXPECT_EQ(host.try_load(path, "", &graph), 0);
}

TEST_P(WasiNnGraphLimits, AreTheHostsAndNotALoads) {
    const TemporaryFolder folder;
    const std::string path = folder / "sums.onnx";
    std::ofstream(path, std::ios::binary) << sum_and_product();
    const Host host(*library, R"({"max_graphs": 1})");
    std::uint32_t graph = 77;
    EXPECT_EQ(host.try_load(path, R"({"max_graphs": 9})", &graph), 1);
    EXPECT_THAT(failure(host), HasSubstr("'max_graphs' is no parameter of a graph"));
    for (const char* wrong :
         {R"({"max_graphs": 0})", R"({"max_contexts": "x"})", R"({"max_compute_ms": -1})"}) {
        void* ctx = nullptr;
        EXPECT_EQ(library->init_backend_with_config(&ctx, wrong, std::uint32_t(strlen(wrong))), 1) << wrong;
    }
}

}  // namespace
}  // namespace headrace::wasi_nn_test
