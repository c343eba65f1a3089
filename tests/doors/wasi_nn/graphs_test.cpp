// Graphs of tensors, as guests load and run them.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "doors/wasi_nn/graph_host.h"
#include "temporary_folder.h"

namespace headrace::wasi_nn_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class WasiNnGraphs : public EachGraphLibrary {
protected:
    Output get(const Host& host, std::uint32_t context, std::uint32_t index,
               std::uint32_t capacity = 4096) const {
        return library->get_output(host.ctx(), context, index, capacity);
    }
    int compute(const Host& host, std::uint32_t context) const {
        return library->compute(host.ctx(), context);
    }
};
HR_EACH_GRAPH_LIBRARY(WasiNnGraphs);

TEST_P(WasiNnGraphs, ComputeEveryOutputOfTheInputs) {
    const Host host(*library);
    const std::uint32_t context = host.open(load(host, sum_and_product()));
    ASSERT_EQ(set(host, context, 0, {1, 2, 3, 4}, {2, 2}), 0) << failure(host);
    ASSERT_EQ(set(host, context, 1, {10, 100}, {2}), 0) << failure(host);
    ASSERT_EQ(compute(host, context), 0) << failure(host);
    EXPECT_THAT(values_of(get(host, context, 0)), ElementsAre(11, 102, 13, 104));
    EXPECT_THAT(values_of(get(host, context, 1)), ElementsAre(10, 200, 30, 400));
}

TEST_P(WasiNnGraphs, TakeTheShapesThatAreFedAndKeepOtherInputs) {
    const Host host(*library);
    const std::uint32_t context = host.open(load(host, sum_and_product()));
    ASSERT_EQ(set(host, context, 1, {1, 1}, {2}), 0);
    for (const std::uint32_t rows : {3u, 1u, 70u, 2u}) {
        ASSERT_EQ(set(host, context, 0, std::vector<float>(rows * 2, 5), {rows, 2}), 0) << failure(host);
        ASSERT_EQ(compute(host, context), 0) << failure(host);
        const Output sum = get(host, context, 0);
        EXPECT_EQ(sum.code, 0);
        EXPECT_EQ(values_of(sum), std::vector<float>(rows * 2, 6));
        EXPECT_THAT(description(host, context), HasSubstr(R"("computed":[)" + std::to_string(rows) + ",2]"));
    }
}

TEST_P(WasiNnGraphs, TellTheirInputsAndOutputs) {
    const Host host(*library);
    const std::uint32_t context = host.open(load(host, sum_and_product()));
    EXPECT_EQ(description(host, context),
              R"({"inputs":[{"name":"x","shape":[-1,2],"type":"f32"},{"name":"w","shape":[2],"type":"f32"}],)"
              R"("kind":"graph","outputs":[{"name":"sum","shape":[-1,2],"type":"f32"},)"
              R"({"name":"product","shape":[-1,2],"type":"f32"}]})");
}

/// y = x + x, or not x.
std::string of_type(int type) {
    const std::string op = type == kBool ? onnx::node("Not", {"x"}, "y") : onnx::node("Add", {"x", "x"}, "y");
    return onnx::model_of({op}, {value("x", type, {"n"})}, {value("y", type, {"n"})});
}

TEST_P(WasiNnGraphs, HaveEveryTypeOfTheInterface) {
    const Host host(*library);
    const TypeNumbers types = types_of(GetParam());
    struct Case {
        int onnx, number;
        std::string in, out;
        std::uint32_t count;
    };
    const auto same = [](int onnx, int number, auto in, auto out) {
        return Case{onnx, number, bytes_of(in), bytes_of(out), static_cast<std::uint32_t>(in.size())};
    };
    using std::vector;
    const std::vector<Case> cases = {
        same(kF16, types.f16, vector<std::uint16_t>{0x3C00}, vector<std::uint16_t>{0x4000}),  // 1 and 2
        same(kF32, types.f32, vector{1.5f, -2.f}, vector{3.f, -4.f}),
        same(kF64, types.f64, vector{1e200, 0.5}, vector{2e200, 1.0}),
        same(kU8, types.u8, vector<std::uint8_t>{3, 200}, vector<std::uint8_t>{6, 144}),
        same(kI8, types.u8, vector<std::int8_t>{-3}, vector<std::int8_t>{-6}),
        same(kBool, types.u8, vector<std::uint8_t>{0, 1, 2, 255}, vector<std::uint8_t>{1, 0, 0, 0}),
        same(kI32, types.i32, vector{-7}, vector{-14}),
        same(kU32, types.i32, vector<std::uint32_t>{3000000000}, vector<std::uint32_t>{1705032704}),
        same(kI64, types.i64, vector{std::int64_t{1} << 40}, vector{std::int64_t{1} << 41}),
        same(kU64, types.i64, vector{std::uint64_t{1} << 62}, vector{std::uint64_t{1} << 63}),
        same(kBf16, types.bf16, vector<std::uint16_t>{0x3F80, 0xC000}, vector{2.f, -4.f}),
    };
    for (const auto& [type, number, in, out, count] : cases) {
        SCOPED_TRACE(type);
        const std::uint32_t context = host.open(load(host, of_type(type)));
        ASSERT_EQ(set(host, context, 0, in, number, {count}), 0) << failure(host);
        ASSERT_EQ(compute(host, context), 0) << failure(host);
        EXPECT_EQ(get(host, context, 0).text(), out);
        for (int other = -1; other < 300; ++other) {
            const bool is_alias = GetParam() != Abi::backend && (other & 0xFF) == number;  // of one byte
            if (other == number || is_alias) continue;
            if (type == kBf16 && other == types.f32) continue;  // read as f32; the bytes decide
            if (type == kF32 && other == types.bf16) continue;
            EXPECT_EQ(set(host, context, 0, in, other, {count}), 1) << "as " << other;
        }
    }
}

TEST_P(WasiNnGraphs, RefuseTensorsThatDoNotSuitAnInput) {
    const Host host(*library);
    const std::uint32_t context = host.open(load(host, sum_and_product()));
    const std::vector<float> four(4);
    EXPECT_EQ(set(host, context, 0, four, {4}), 1);
    EXPECT_THAT(failure(host), HasSubstr("input 0, 'x' is f32 [?, 2]: the tensor's dimensions are [4]"));
    EXPECT_EQ(set(host, context, 0, four, {1, 4}), 1);
    EXPECT_EQ(set(host, context, 0, four, {2, 2, 1}), 1);
    EXPECT_EQ(set(host, context, 0, four, {}), 1);
    EXPECT_EQ(set(host, context, 0, four, std::vector<std::uint32_t>(100000, 1)), 1);
    EXPECT_THAT(failure(host), HasSubstr("100000 dimensions, and 8 are the most"));
    EXPECT_EQ(set(host, context, 0, bytes_of(four), types_of(GetParam()).i32, {2, 2}), 1);
    EXPECT_THAT(failure(host), HasSubstr("input 0, 'x' is f32 [?, 2]: the tensor is i32"));
    for (const std::uint32_t index : {2u, 1000u, UINT32_MAX})
        EXPECT_EQ(set(host, context, index, four, {2, 2}), 1) << index;
    EXPECT_THAT(failure(host), HasSubstr("there is no input 4294967295: the graph has 2"));
    if (GetParam() == Abi::backend) return;  // its tensors have no length
    for (const std::uint32_t rows : {0u, 1u, 3u, 1u << 29, UINT32_MAX}) {
        EXPECT_EQ(set(host, context, 0, four, {rows, 2}), 1) << rows;
        EXPECT_THAT(failure(host), HasSubstr("and it has 16 bytes"));
    }
}

TEST_P(WasiNnGraphs, WantAllInputsBeforeTheyComputeAndAComputeBeforeOutputs) {
    const Host host(*library);
    const std::uint32_t context = host.open(load(host, sum_and_product()));
    EXPECT_EQ(compute(host, context), 1);
    EXPECT_THAT(failure(host), HasSubstr("input 0, 'x' is f32 [?, 2], was not set"));
    ASSERT_EQ(set(host, context, 0, {1, 2}, {1, 2}), 0);
    EXPECT_EQ(compute(host, context), 1);
    EXPECT_THAT(failure(host), HasSubstr("input 1, 'w' is f32 [2], was not set"));
    ASSERT_EQ(set(host, context, 1, {1, 2}, {2}), 0);
    EXPECT_EQ(get(host, context, 0).code, 1) << "nothing was computed";
    ASSERT_EQ(compute(host, context), 0);
    EXPECT_EQ(get(host, context, 0).code, 0);
    EXPECT_EQ(get(host, context, 2).code, 1);
    EXPECT_THAT(failure(host), HasSubstr("there is no output 2: the graph has 2"));
    ASSERT_EQ(set(host, context, 0, {1, 2}, {1, 2}), 0);
    EXPECT_EQ(get(host, context, 0).code, 1) << "the inputs are others";
    EXPECT_EQ(set(host, context, 0, {1, 2}, {2}), 1);
    EXPECT_EQ(compute(host, context), 0) << "an input that was refused changes nothing";
}

TEST_P(WasiNnGraphs, WriteAnOutputWholeOrNotAtAll) {
    const Host host(*library);
    const std::uint32_t context = host.open(load(host, sum_and_product()));
    ASSERT_EQ(set(host, context, 0, {1, 2, 3, 4}, {2, 2}), 0);
    ASSERT_EQ(set(host, context, 1, {1, 1}, {2}), 0);
    ASSERT_EQ(compute(host, context), 0);
    for (const std::uint32_t capacity : {0u, 1u, 15u}) {
        const Output output = get(host, context, 0, capacity);
        EXPECT_EQ(output.code, library->numbers.too_large) << capacity;
        EXPECT_EQ(output.size, 16u);
        EXPECT_EQ(output.bytes, std::string(capacity + 16, '#')) << "nothing was written";
    }
    const Output exact = get(host, context, 0, 16), larger = get(host, context, 0, 20);
    EXPECT_EQ(exact.code, 0);
    EXPECT_EQ(larger.bytes.substr(16), std::string(20, '#')) << "no NUL byte follows a tensor";
}

TEST_P(WasiNnGraphs, WriteNoText) {
    const Host host(*library);
    const std::uint32_t context = host.open(load(host, sum_and_product()));
    EXPECT_EQ(library->compute_single(host.ctx(), context), library->numbers.unsupported);
    EXPECT_EQ(library->get_output_single(host.ctx(), context, 0).code, library->numbers.unsupported);
    EXPECT_EQ(library->run_inference(host.ctx(), context, "Hello").code, library->numbers.unsupported);
    EXPECT_THAT(failure(host), HasSubstr("a graph of tensors writes no text"));
    EXPECT_EQ(library->fini_single(host.ctx(), context), 0) << "there is nothing to give up";
    EXPECT_EQ(library->cancel_inference(host.ctx(), context), 0);
}

TEST_P(WasiNnGraphs, AreReadByTheEncodingsOfOnnxAndAutodetection) {
    const Host host(*library);
    std::uint32_t graph = 77;
    for (const std::uint32_t encoding : {1u, 5u, 6u})
        EXPECT_EQ(try_load(host, sum_and_product(), &graph, encoding), 0) << failure(host);
    graph = 77;
    for (const std::uint32_t encoding : {0u, 2u, 3u, 4u, 7u, UINT32_MAX})
        EXPECT_EQ(try_load(host, sum_and_product(), &graph, encoding), 2) << encoding;
    EXPECT_EQ(graph, 77u);
    EXPECT_EQ(try_load(host, "no model", &graph, 1), 1);
    EXPECT_EQ(try_load(host, "no model", &graph, 6), 1);
    EXPECT_THAT(failure(host), HasSubstr("the bytes do not begin as GGUF does, and as an ONNX model: "));
    EXPECT_EQ(try_load(host, onnx::model({onnx::node("NoSuchOperator", {"x"}, "y")}), &graph),
              library->numbers.unsupported);
    EXPECT_THAT(failure(host), HasSubstr("NoSuchOperator"));
}

TEST_P(WasiNnGraphs, RunOnTheCpuWhereThereIsNoGpuAndOnNoTpu) {
    const Host host(*library);
    std::uint32_t graph = 0;
    EXPECT_EQ(try_load(host, sum_and_product(), &graph, 1, 1), 0) << failure(host);
    EXPECT_EQ(try_load(host, sum_and_product(), &graph, 1, 2), library->numbers.unsupported);
    EXPECT_EQ(try_load(host, sum_and_product(), &graph, 1, 3), 1);
    EXPECT_THAT(failure(host), HasSubstr("the targets are"));
}

TEST_P(WasiNnGraphs, AndLanguageModelsAreLoadedAtOnce) {
    if (!std::filesystem::exists(model_path())) GTEST_SKIP() << model_path() << " does not exist";
    const Host host(*library, R"({"n_threads": 1, "n_ctx": 512, "temperature": 0})");
    const std::uint32_t first = load(host, sum_and_product()), chat = host.load(),
                        second = load(host, of_type(kI32));
    EXPECT_EQ(std::set({first, chat, second}).size(), 3u);
    const std::uint32_t a = host.open(first), talk = host.open(chat), b = host.open(second);
    ASSERT_EQ(set(host, a, 0, {1, 2}, {1, 2}), 0);
    ASSERT_EQ(set(host, a, 1, {5, 5}, {2}), 0);
    ASSERT_EQ(set(host, b, 0, bytes_of(std::vector<std::int32_t>{4}), types_of(GetParam()).i32, {1}), 0);
    EXPECT_THAT(host.ask(talk, kQuestion), StartsWith(kAnswer));
    EXPECT_EQ(compute(host, a), 0);
    EXPECT_EQ(compute(host, b), 0);
    EXPECT_THAT(values_of(get(host, a, 0)), ElementsAre(6, 7));
    EXPECT_THAT(values_of<std::int32_t>(get(host, b, 0)), ElementsAre(8));
    EXPECT_EQ(description(host, talk), R"({"gives_vectors":false,"kind":"language_model"})");
    const auto statistics = nlohmann::json::parse(library->statistics(host.ctx()));
    EXPECT_EQ(statistics["graphs"][0]["id"], chat);
    EXPECT_EQ(statistics["tensor_graphs"][0]["id"], first);
    EXPECT_EQ(statistics["tensor_graphs"][0]["runs"], 1);
    EXPECT_EQ(library->unload(host.ctx(), first), 0);
    EXPECT_THAT(host.ask(talk, kQuestion), StartsWith(kAnswer)) << "the others stay";
    EXPECT_EQ(compute(host, b), 0);
}

TEST_P(WasiNnGraphs, AreGoneForAllTheirContextsWhenTheyAreUnloaded) {
    const Host host(*library);
    const std::uint32_t graph = load(host, sum_and_product()), context = host.open(graph);
    ASSERT_EQ(set(host, context, 0, {1, 2}, {1, 2}), 0);
    EXPECT_EQ(library->unload(host.ctx(), graph), 0);
    EXPECT_EQ(library->unload(host.ctx(), graph), library->numbers.not_found);
    EXPECT_EQ(set(host, context, 1, {1, 2}, {2}), library->numbers.not_found);
    EXPECT_EQ(compute(host, context), library->numbers.not_found);
    EXPECT_EQ(get(host, context, 0).code, library->numbers.not_found);
    std::uint32_t other = 0;
    EXPECT_EQ(library->init_execution_context(host.ctx(), graph, &other), library->numbers.not_found);
}

TEST_P(WasiNnGraphs, OfAnotherGuestAreNotThere) {
    const Host host(*library), other(*library);
    const std::uint32_t graph = load(host, sum_and_product()), context = host.open(graph);
    std::uint32_t number = 0;
    EXPECT_EQ(library->init_execution_context(other.ctx(), graph, &number), library->numbers.not_found);
    EXPECT_EQ(set(other, context, 0, {1, 2}, {1, 2}), library->numbers.not_found);
    EXPECT_EQ(library->unload(other.ctx(), graph), library->numbers.not_found);
    EXPECT_EQ(set(host, context, 0, {1, 2}, {1, 2}), 0);
}

TEST_P(WasiNnGraphs, ServeManyContextsAtTheSameTime) {
    const Host host(*library);
    const std::uint32_t graph = load(host, sum_and_product());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            const std::uint32_t context = host.open(graph);
            for (int i = 0; i < 50; ++i) {
                const auto rows = static_cast<std::uint32_t>(1 + (i + t) % 5);
                EXPECT_EQ(set(host, context, 0, std::vector<float>(rows * 2, float(t)), {rows, 2}), 0);
                EXPECT_EQ(set(host, context, 1, {float(i), 1}, {2}), 0);
                EXPECT_EQ(compute(host, context), 0);
                EXPECT_EQ(values_of(get(host, context, 0))[0], float(t + i));
            }
            EXPECT_EQ(library->close_execution_context(host.ctx(), context), 0);
            EXPECT_EQ(compute(host, context), library->numbers.not_found);
        });
    for (std::thread& thread : threads) thread.join();
}

class WasiNnGraphFiles : public EachGraphLibrary {
protected:
    void SetUp() override {
        EachGraphLibrary::SetUp();
        if (IsSkipped()) return;
        std::filesystem::create_directories(root());
        std::ofstream(root() / "sums.onnx", std::ios::binary) << sum_and_product();
        std::ofstream(folder_.path() / "outside.onnx", std::ios::binary) << sum_and_product();
        std::filesystem::copy_file(checkout_path("tests/engine/golden/v1.hrg"), root() / "golden.hrg");
        std::ofstream(root() / "json.json")
            << R"({"format": "webnn-graph-json", "version": 1, "name": "g", "inputs": {"x": {"dataType": "float32",
                "shape": [2]}}, "consts": {}, "nodes": [{"id": "y", "op": "add", "inputs": ["x", "x"], "options": {}}],
                "outputs": {"y": "y"}})";
        std::ofstream(root() / "text.webnn")
            << "webnn_graph \"g\" v1 {\n  inputs {\n    x: f32[2];\n  }\n  nodes {\n    y = add(x, x);\n  }\n"
               "  outputs { y; }\n}\n";
        std::ofstream(root() / "wrong.onnx") << "no model";
        std::filesystem::copy_file(root() / "sums.onnx", root() / ".onnx");
        std::filesystem::create_directories(root() / "folder.onnx");
    }
    std::filesystem::path root() const { return folder_.path() / "root"; }
    std::string config() const {
        return nlohmann::json{{"model_root", root().string()},
                              {"model_aliases", {{"mine", (folder_.path() / "outside.onnx").string()}}}}
            .dump();
    }
    std::uint32_t load_file(const Host& host, std::string_view name, std::string_view options = "") const {
        std::uint32_t graph = 77;
        EXPECT_EQ(host.try_load(name, options, &graph), 0) << name << failure(host);
        return graph;
    }
    std::vector<float> doubled(const Host& host, std::uint32_t graph) const {
        const std::uint32_t context = host.open(graph);
        EXPECT_EQ(set(host, context, 0, {3, 4}, {2}), 0) << failure(host);
        EXPECT_EQ(library->compute(host.ctx(), context), 0) << failure(host);
        return values_of(library->get_output(host.ctx(), context, 0));
    }

    const TemporaryFolder folder_;
};
HR_EACH_GRAPH_LIBRARY(WasiNnGraphFiles);

TEST_P(WasiNnGraphFiles, OfEveryFormAreLoadedByName) {
    const Host host(*library, config());
    EXPECT_THAT(doubled(host, load_file(host, "json.json")), ElementsAre(6, 8));
    EXPECT_THAT(doubled(host, load_file(host, "text.webnn")), ElementsAre(6, 8));
    for (const char* name : {"sums.onnx", "mine", "../root/sums.onnx", ".onnx"}) {
        const std::uint32_t context = host.open(load_file(host, name));
        EXPECT_THAT(description(host, context), HasSubstr("product"));
    }
}

TEST_P(WasiNnGraphFiles, KeepAStateInEachContext) {
    const Host host(*library, config());
    const std::uint32_t graph = load_file(host, "golden.hrg");
    const std::uint32_t a = host.open(graph), b = host.open(graph);
    const auto total = [&](std::uint32_t context) {
        EXPECT_EQ(set(host, context, 0, std::vector<float>(32), {1, 32}), 0) << failure(host);
        EXPECT_EQ(library->compute(host.ctx(), context), 0) << failure(host);
        return values_of(library->get_output(host.ctx(), context, 2));
    };
    EXPECT_THAT(total(a), ElementsAre(2, 3, 4, 5));
    EXPECT_THAT(total(a), ElementsAre(3, 4, 5, 6));
    EXPECT_THAT(total(b), ElementsAre(2, 3, 4, 5)) << "its own";
}

TEST_P(WasiNnGraphFiles, AreConfinedAndToldOfAsTheGuestNamesThem) {
    const Host host(*library, config());
    std::uint32_t graph = 77;
    EXPECT_EQ(host.try_load("../outside.onnx", "", &graph), library->numbers.outside_root);
    EXPECT_EQ(host.try_load((folder_.path() / "outside.onnx").string(), "", &graph),
              library->numbers.outside_root);
    EXPECT_EQ(host.try_load("missing.onnx", "", &graph), 103);
    EXPECT_EQ(host.try_load("folder.onnx", "", &graph), 103);
    EXPECT_EQ(host.try_load("wrong.onnx", "", &graph), 1);
    EXPECT_THAT(failure(host), AllOf(HasSubstr("wrong.onnx"), testing::Not(HasSubstr(root().string()))));
    EXPECT_EQ(graph, 77u);
}

TEST_P(WasiNnGraphFiles, TakeDimensionsAndThreadsFromTheLoad) {
    const Host host(*library, config());
    const std::uint32_t context =
        host.open(load_file(host, "sums.onnx", R"({"dimensions": {"n": 3}, "threads": 1})"));
    EXPECT_THAT(description(host, context), HasSubstr(R"("name":"x","shape":[3,2])"));
    EXPECT_EQ(set(host, context, 0, {1, 2}, {1, 2}), 1);
    const struct {
        const char *file, *options, *said;
    } wrong[] = {
        {"sums.onnx", R"({"dimensions": {"n": 0}})", "the dimension 'n' of a graph is an integer from 1"},
        {"sums.onnx", R"({"dimensions": 3})", "dimensions is an object"},
        {"sums.onnx", R"({"threads": "many"})", "threads of a graph is an integer"},
        {"sums.onnx", R"({"device": "rpc://10.0.0.1:50052"})", "'device' is no parameter of a graph"},
        {"sums.onnx", "{", "not valid JSON"},
        {"json.json", R"({"dimensions": {"n": 3}})", "dimensions are of ONNX models"},
    };
    std::uint32_t graph = 0;
    for (const auto& [file, options, said] : wrong) {
        EXPECT_EQ(host.try_load(file, options, &graph), 1) << options;
        EXPECT_THAT(failure(host), HasSubstr(said));
    }
}

}  // namespace
}  // namespace headrace::wasi_nn_test
