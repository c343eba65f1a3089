/// Packed weights that later starts find again.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "temporary_folder.h"
#include "test_graph.h"

namespace headrace {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

constexpr std::int64_t kSize = 768;
constexpr std::size_t kPacked = kSize * kSize * sizeof(float);

/// A product whose packed matrix is worth a file.
Graph product(unsigned seed, Dim rows = 2) {
    TestGraph g;
    const ValueId x = g.input("x", {std::move(rows), kSize});
    const ValueId w = g.constant<float>({kSize, kSize}, random_floats(kSize * kSize, seed));
    g.output("y", g.op("matmul", {x, w}));
    return g.finish();
}

std::vector<float> result(const Executable& executable) {
    Session session(executable);
    return run(session, {{2, kSize}}, {random_floats(2 * kSize, 5)})[0];
}

struct PackedCacheTest : ::testing::Test {
    TemporaryFolder temporary;
    fs::path folder = temporary.path() / "packed";
    std::string messages;

    void SetUp() override { ::unsetenv("HEADRACE_PACKED_CACHE"); }

    Executable start(const Graph& graph) {
        ::testing::internal::CaptureStderr();
        Executable executable = compile(graph, {.packed_cache = folder.string()});
        messages = ::testing::internal::GetCapturedStderr();
        return executable;
    }
    std::vector<fs::path> files() const {
        std::vector<fs::path> list;
        if (fs::exists(folder))
            for (const auto& entry : fs::directory_iterator(folder)) list.push_back(entry.path());
        return list;
    }
};

TEST_F(PackedCacheTest, TheSecondStartMapsWhatTheFirstPacked) {
    const Graph graph = product(1);
    const Executable first = start(graph);
    EXPECT_EQ(first.stats().packed_mapped_bytes, 0u);
    ASSERT_EQ(files().size(), 1u);
    const Executable second = start(graph);
    EXPECT_EQ(second.stats().packed_bytes, kPacked);
    EXPECT_EQ(second.stats().packed_mapped_bytes, kPacked);
    EXPECT_EQ(result(second), result(first));
    EXPECT_THAT(messages, IsEmpty());
}

TEST_F(PackedCacheTest, IsOffUnlessAskedFor) {
    ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
    compile(product(1));
    EXPECT_THAT(files(), IsEmpty());
    ::setenv("HEADRACE_PACKED_CACHE", "on", 1);
    compile(product(1), {.packed_cache = "off"});
    EXPECT_THAT(files(), IsEmpty());
    compile(product(1));
    EXPECT_TRUE(fs::exists(folder / "headrace" / "packed"));
    EXPECT_EQ(compile(product(1)).stats().packed_mapped_bytes, kPacked);
    ::unsetenv("XDG_CACHE_HOME");
    ::unsetenv("HEADRACE_PACKED_CACHE");
}

TEST_F(PackedCacheTest, OtherWeightsHaveAnotherFile) {
    start(product(1));
    EXPECT_EQ(start(product(2)).stats().packed_mapped_bytes, 0u);
    EXPECT_EQ(files().size(), 2u);
    EXPECT_EQ(start(product(1)).stats().packed_mapped_bytes, kPacked);
}

TEST_F(PackedCacheTest, ADamagedFileIsReportedOnceAndWrittenAnew) {
    const Graph graph = product(1);
    const auto expected = result(start(graph));
    const fs::path file = files().at(0);
    const auto size = fs::file_size(file);
    for (const std::size_t keep :
         {std::size_t{0}, std::size_t{100}, std::size_t(size / 2), std::size_t(size)}) {
        SCOPED_TRACE(keep);
        fs::resize_file(file, keep);
        if (keep == size) {  // whole, but one bit
            std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
            stream.seekp(static_cast<std::streamoff>(size - 5));
            stream.put('\x55');
        }
        const Executable executable = start(graph);
        EXPECT_THAT(messages, HasSubstr("' is not used and written anew: "));
        EXPECT_EQ(std::count(messages.begin(), messages.end(), '\n'), 1);
        EXPECT_EQ(executable.stats().packed_mapped_bytes, 0u);
        EXPECT_EQ(result(executable), expected);
        EXPECT_EQ(start(graph).stats().packed_mapped_bytes, kPacked);
        EXPECT_THAT(messages, IsEmpty());
    }
}

TEST_F(PackedCacheTest, AFolderThatCannotBeWrittenIsAWarning) {
    std::ofstream(folder) << "a file where the folder should be";
    const Graph graph = product(1);
    const Executable executable = start(graph);
    EXPECT_THAT(messages, HasSubstr("packed weights are not kept for the next start: cannot create '"));
    EXPECT_EQ(result(executable), result(compile(graph)));
}

TEST_F(PackedCacheTest, AFullDiskIsAWarningAndLeavesNothing) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{1 << 20, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const Graph graph = product(1);
    const Executable executable = start(graph);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, handler);
    EXPECT_THAT(messages, HasSubstr("is the disk full?"));
    EXPECT_THAT(files(), IsEmpty());
    EXPECT_EQ(result(executable), result(compile(graph)));
}

TEST_F(PackedCacheTest, StartsAtTheSameTimeAgree) {
    const Graph graph = product(1);
    const auto expected = result(compile(graph));
    std::vector<std::thread> starts;
    for (int i = 0; i < 4; ++i)
        starts.emplace_back([&] {
            for (int turn = 0; turn < 3; ++turn)
                EXPECT_EQ(result(compile(graph, {.packed_cache = folder.string()})), expected);
        });
    for (std::thread& one : starts) one.join();
    EXPECT_EQ(files().size(), 1u);
    EXPECT_EQ(start(graph).stats().packed_mapped_bytes, kPacked);
}

TEST_F(PackedCacheTest, WhatAWriterLeftUnfinishedIsRemovedAfterAnHour) {
    start(product(1));
    const fs::path fresh = files().at(0).string() + ".00000001.tmp", old = folder / "a.packed.00000002.tmp",
                   other = folder / "notes.tmp";
    for (const fs::path& path : {fresh, old, other}) std::ofstream(path) << "part";
    for (const fs::path& path : {old, other})
        fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(2));
    start(product(2));
    EXPECT_TRUE(fs::exists(fresh));
    EXPECT_FALSE(fs::exists(old));
    EXPECT_TRUE(fs::exists(other));
}

TEST_F(PackedCacheTest, SmallWeightsHaveNoFile) {
    TestGraph g;
    const ValueId w = g.constant<float>({64, 64}, random_floats(64 * 64, 1));
    g.output("y", g.op("matmul", {g.input("x", {2, 64}), w}));
    start(g.finish());
    EXPECT_THAT(files(), IsEmpty());
}

TEST_F(PackedCacheTest, GraphsOfUnknownShapesKeepWhatTheirFirstRunPacks) {
    const Graph graph = product(1, Dim::symbolic("rows", 1, 8));
    const Executable first = start(graph);
    EXPECT_THAT(files(), IsEmpty());
    const auto expected = result(first);
    EXPECT_EQ(files().size(), 1u);
    const Executable second = start(graph);
    EXPECT_EQ(result(second), expected);
    EXPECT_EQ(second.stats().packed_mapped_bytes, kPacked);
}

}  // namespace
}  // namespace headrace
