#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "blobs.h"

namespace headrace {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Options = et::BackendOptions<2>;

et::Error set_for_process(Options options) { return et::set_option("GgmlBackend", options.view()); }

template <std::size_t size, class T>
Options option(const char (&name)[size], T value) {
    Options options;
    EXPECT_EQ(options.set_option(name, value), et::Error::Ok);
    return options;
}
Options threads(int count) { return option("num_threads", count); }
Options device(const char* name) {
    Options options;
    EXPECT_EQ(options.set_option("device", name), et::Error::Ok);
    return options;
}

/// What the process's options are.
std::pair<int, std::string> current() {
    Options options = threads(-1);
    EXPECT_EQ(options.set_option("device", ""), et::Error::Ok);
    EXPECT_EQ(et::get_option("GgmlBackend", options.view()), et::Error::Ok);
    int count = -1;
    const char* name = nullptr;
    EXPECT_EQ(options.get_option("num_threads", count), et::Error::Ok);
    EXPECT_EQ(options.get_option("device", name), et::Error::Ok);
    return {count, name};
}

class DelegateOptions : public ::testing::Test {
protected:
    void TearDown() override {
        EXPECT_EQ(set_for_process(threads(0)), et::Error::Ok);
        EXPECT_EQ(set_for_process(device("cpu")), et::Error::Ok);
    }
    et::Error error_of_load(Options options = {}) {
        const auto view = options.view();
        return Delegate(layer_.blob, &layer_.weights, "forward", {view.data(), view.size()}).error();
    }
    Layer layer_{1, 192, 192};
};

TEST_F(DelegateOptions, AreKeptForTheProcess) {
    EXPECT_EQ(current(), std::pair(0, std::string("cpu")));
    EXPECT_EQ(set_for_process(threads(3)), et::Error::Ok);
    EXPECT_EQ(set_for_process(device("auto")), et::Error::Ok);
    EXPECT_EQ(current(), std::pair(3, std::string("auto")));
}

TEST_F(DelegateOptions, ChangeNothingWhenOneIsWrong) {
    Options options = threads(3);
    EXPECT_EQ(options.set_option("device", 1), et::Error::Ok);
    const auto lines = logged([&] { EXPECT_EQ(set_for_process(options), et::Error::InvalidArgument); });
    EXPECT_THAT(lines, ElementsAre(HasSubstr("option 'device' must be the name of a device")));
    EXPECT_EQ(current(), std::pair(0, std::string("cpu")));
}

TEST_F(DelegateOptions, AreRefusedByNameAndValue) {
    const auto lines = logged([&] {
        EXPECT_EQ(set_for_process(threads(-1)), et::Error::InvalidArgument);
        EXPECT_EQ(set_for_process(option("num_threads", true)), et::Error::InvalidArgument);
        EXPECT_EQ(set_for_process(device("")), et::Error::InvalidArgument);
        EXPECT_EQ(set_for_process(option("thread_pool", 2)), et::Error::InvalidArgument);
        EXPECT_EQ(set_for_process(option("host_timeout_ms", 99)), et::Error::InvalidArgument);
    });
    EXPECT_THAT(
        lines,
        ElementsAre(HasSubstr("'num_threads' must be an int of at least 0"),
                    HasSubstr("'num_threads' must be an int"), HasSubstr("'device' must be"),
                    HasSubstr("no option 'thread_pool'; there are num_threads, device, host_timeout_ms, "
                              "packed_kernels, packed_cache and precision"),
                    HasSubstr("'host_timeout_ms' must be an int of at least 100")));
}

TEST_F(DelegateOptions, OfTheProcessHoldForProgramsThatAreLoadedLater) {
    EXPECT_EQ(set_for_process(device("abacus")), et::Error::Ok);
    const auto lines = logged([&] { EXPECT_NE(error_of_load(), et::Error::Ok); });
    EXPECT_THAT(lines, ElementsAre(HasSubstr("there is no device 'abacus'; known: cpu")));
}

TEST_F(DelegateOptions, OfALoadHoldForItAlone) {
    const auto lines = logged([&] { EXPECT_NE(error_of_load(device("abacus")), et::Error::Ok); });
    EXPECT_THAT(lines, ElementsAre(HasSubstr("there is no device 'abacus'")));
    EXPECT_EQ(error_of_load(), et::Error::Ok);
    EXPECT_EQ(set_for_process(device("abacus")), et::Error::Ok);
    EXPECT_EQ(error_of_load(device("cpu")), et::Error::Ok);
}

TEST_F(DelegateOptions, OfKernelsChooseBetweenOursAndGgmls) {
    EXPECT_THAT(
        logged([&] { EXPECT_EQ(set_for_process(option("packed_kernels", 1)), et::Error::InvalidArgument); }),
        ElementsAre(HasSubstr("'packed_kernels' must be a bool")));
    std::vector<float> x(16 * 192, 0.25f), total(192);
    const std::vector<float> expected = layer_.expected(x, total);
    for (const bool packed : {true, false}) {
        Options options = option("packed_kernels", packed);
        const auto view = options.view();
        const Delegate delegate(layer_.blob, &layer_.weights, "forward", {view.data(), view.size()});
        const TensorPtr y = room({16, 192});
        ASSERT_EQ(delegate.run({tensor({16, 192}, x), y, room({192})}), et::Error::Ok);
        for (std::size_t i = 0; i < expected.size(); ++i)
            ASSERT_NEAR(y->const_data_ptr<float>()[i], expected[i], 1e-4f) << packed;
    }
}

TEST_F(DelegateOptions, OfThreadsDoNotChangeAnswers) {
    std::vector<float> x(16 * 192, 0.25f), total(192);
    const std::vector<float> expected = layer_.expected(x, total);
    for (const int count : {1, 2, 3, 64}) {
        Options options = threads(count);
        const auto view = options.view();
        const Delegate delegate(layer_.blob, &layer_.weights, "forward", {view.data(), view.size()});
        const TensorPtr y = room({16, 192});
        ASSERT_EQ(delegate.run({tensor({16, 192}, x), y, room({192})}), et::Error::Ok);
        for (std::size_t i = 0; i < expected.size(); ++i)
            ASSERT_NEAR(y->const_data_ptr<float>()[i], expected[i], 1e-4f) << count << " threads";
    }
}

}  // namespace
}  // namespace headrace
