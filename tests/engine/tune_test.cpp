#include "engine/tune.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "engine/executable.h"
#include "temporary_folder.h"
#include "test_graph.h"

namespace headrace {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

constexpr std::int64_t kRows = 9, kColumns = 40;

/// softmax(tanh(x · w)): a kernel of ours, ggml's op or the reference could compute each.
Graph network() {
    TestGraph g;
    const ValueId w = g.constant<float>({kColumns, kColumns}, random_floats(kColumns * kColumns, 1));
    const ValueId y = g.op("matmul", {g.input("x", {kRows, kColumns}), w});
    g.output("y", g.op("softmax", {g.op("tanh", {y})}, {{"axis", std::int64_t{1}}}));
    return g.finish();
}

struct TuneTest : ::testing::Test {
    TemporaryFolder temporary;
    fs::path folder = temporary.path() / "tuning";
    CompileOptions options{
        .threads = 2, .disabled_passes = {"fuse_matmul_epilogue"}, .tuning = folder.string()};
    std::vector<float> x = random_floats(kRows * kColumns, 2);

    std::vector<NodeStats> nodes(const Executable& executable) const {
        Session session(executable);
        session.output_shapes(std::vector<std::vector<std::int64_t>>{{kRows, kColumns}});
        return session.stats().nodes;
    }
    std::vector<float> result(const Executable& executable) const {
        Session session(executable);
        return run(session, {{kRows, kColumns}}, {x})[0];
    }
    /// Stores the choice for every node of the optimised network.
    void choose(const NodeChoice& choice) const {
        const Executable executable = compile(network(), options);
        Tuning tuning;
        for (const Node& node : executable.graph().nodes)
            tuning.set(kind_of(executable.graph(), node, 2), choice);
        must(write_tuning(tuning_file(folder.string()), tuning));
    }
};

TEST_F(TuneTest, StoredChoicesDecideAndAnswersStayTheSame) {
    const Executable by_rule = compile(network(), options);
    const auto expected = result(by_rule);
    for (const NodeStats& node : nodes(by_rule)) EXPECT_FALSE(node.is_tuned) << node.title;
    for (const std::string implementation : {"ggml", "reference"}) {
        choose({.implementation = implementation, .one_thread = implementation == "reference"});
        const Executable by_time = compile(network(), options);
        for (const NodeStats& node : nodes(by_time)) {
            EXPECT_TRUE(node.is_tuned) << node.title;
            EXPECT_EQ(node.implementation, implementation) << node.title;
        }
        const auto y = result(by_time);
        for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-5f);
    }
}

TEST_F(TuneTest, ChoicesHoldForTheirNumberOfThreadsAndWhereTheyAreWanted) {
    choose({.implementation = "reference"});
    options.threads = 1;
    EXPECT_FALSE(nodes(compile(network(), options))[0].is_tuned);
    options.threads = 2;
    EXPECT_TRUE(nodes(compile(network(), options))[0].is_tuned);
    options.tuning = "off";
    EXPECT_FALSE(nodes(compile(network(), options))[0].is_tuned);
}

TEST_F(TuneTest, AChoiceThatIsNoCandidateIsLeftToTheRules) {
    choose({.implementation = "kernel_of_tomorrow"});
    const Executable executable = compile(network(), options);
    for (const NodeStats& node : nodes(executable)) EXPECT_FALSE(node.is_tuned);
}

TEST_F(TuneTest, ADamagedFileIsReportedAndIgnored) {
    choose({.implementation = "reference"});
    const std::string path = tuning_file(folder.string());
    std::ofstream(path, std::ios::app) << "more";
    ::testing::internal::CaptureStderr();
    const Executable executable = compile(network(), options);
    const std::string message = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(message,
                HasSubstr("is not used: its checksum is wrong; headrace bench --tune writes it anew"));
    for (const NodeStats& node : nodes(executable)) EXPECT_FALSE(node.is_tuned);
}

TEST_F(TuneTest, MeasuresEveryWayAndKeepsWhatIsFaster) {
    const Graph graph = network();
    const auto expected = result(compile(graph, options));
    std::vector<float> y(kRows * kColumns);
    const std::vector<std::int64_t> shape{kRows, kColumns};
    const InputView in[] = {{DType::f32, shape, x.data()}};
    const OutputView out[] = {{y.data(), y.size() * 4}};
    const TuneReport report = tune(graph, options, in, out);
    EXPECT_EQ(report.measured, 3);
    const bool is_kept =
        report.changed.empty() || (report.after_us < report.before_us && report.faster_rounds >= 14);
    EXPECT_EQ(fs::exists(tuning_file(folder.string())), is_kept);
    EXPECT_EQ(report.file.empty(), !is_kept);
    for (const TunedKind& kind : report.changed) EXPECT_LT(kind.after_us, kind.before_us) << kind.title;
    std::int64_t tuned = 0;
    const Executable executable = compile(graph, options);
    for (const NodeStats& node : nodes(executable)) tuned += node.is_tuned;
    EXPECT_EQ(tuned, report.file.empty() ? 0 : static_cast<std::int64_t>(report.changed.size()));
    const auto again = result(executable);
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(again[i], expected[i], 1e-5f);
}

TEST_F(TuneTest, IsRefusedWithoutAPlaceForChoices) {
    options.tuning = "off";
    EXPECT_THROW(tune(network(), options, {}, {}), Exception);
}

}  // namespace
}  // namespace headrace
