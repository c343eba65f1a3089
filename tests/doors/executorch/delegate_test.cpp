#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "blobs.h"

namespace headrace {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A load that fails with this code, and with this cause as the only line in the log.
void expect_refused(const std::string& blob, const et::NamedDataMap* weights, et::Error code,
                    const std::string& cause) {
    et::Error error = et::Error::Ok;
    const auto lines = logged([&] { error = Delegate(blob, weights).error(); });
    EXPECT_EQ(error, code) << et::to_string(error);
    EXPECT_THAT(lines, ElementsAre(HasSubstr(cause)));
}

void expect_fails(const Delegate& delegate, const std::vector<et::EValue>& arguments, et::Error code,
                  const std::string& cause) {
    ASSERT_EQ(delegate.error(), et::Error::Ok);
    et::Error error = et::Error::Ok;
    const auto lines = logged([&] { error = delegate.run(arguments); });
    EXPECT_EQ(error, code) << et::to_string(error);
    EXPECT_THAT(lines, ElementsAre(HasSubstr(cause)));
}

std::string with_u32(std::string blob, std::size_t at, std::uint32_t value) {
    std::memcpy(blob.data() + at, &value, sizeof(value));
    return blob;
}

std::uint64_t u64_at(const std::string& blob, std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, blob.data() + at, sizeof(value));
    return value;
}

class DelegateLoad : public ::testing::Test {
protected:
    Layer layer_{1};
};

TEST_F(DelegateLoad, RefusesAContainerOfALaterVersion) {
    expect_refused(with_u32(layer_.blob, 8, 2), &layer_.weights, et::Error::DelegateInvalidCompatibility,
                   "version 2");
}

TEST_F(DelegateLoad, RefusesABlobThatEndsAtOrWithinAnyOfItsSections) {
    const std::size_t tables = u64_at(layer_.blob, 16), end = 32 + tables;
    ASSERT_GE(layer_.blob.size(), end);
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{4}, std::size_t{8}, std::size_t{12}, std::size_t{16}, std::size_t{24},
          std::size_t{31}, std::size_t{32}, 32 + tables / 2, end - 1})
        expect_refused(layer_.blob.substr(0, size), &layer_.weights, et::Error::InvalidProgram,
                       "the program cannot be loaded");
}

TEST_F(DelegateLoad, RefusesWeightsThatAreNotThere) {
    expect_refused(layer_.blob, nullptr, et::Error::InvalidExternalData, "the program brings no weights");
    expect_refused(layer_.blob, std::make_unique<Weights>().get(), et::Error::InvalidExternalData,
                   "the program has no weights named 'layer.weight'");
}

TEST_F(DelegateLoad, RefusesWeightsOfAnotherSize) {
    layer_.weights.contents[layer_.key].resize(40);
    expect_refused(layer_.blob, &layer_.weights, et::Error::InvalidProgram, "40 bytes, the graph expects 48");
}

/// out0 = neg(input), of any name, dtype and rank.
std::string negation(const std::string& name, DType dtype, const std::vector<Extent>& shape) {
    GraphWriter w;
    w.output("out0", w.op("neg", {w.input(name, dtype, shape)})[0]);
    return as_string(graph_to_bytes(*w.finish()));
}

TEST_F(DelegateLoad, RefusesInputsThatNameNoArgument) {
    for (const std::string name : {"x", "in", "inx", "in1x", "in1000000", "in-1"})
        expect_refused(negation(name, DType::f32, {2, 3}), nullptr, et::Error::InvalidProgram,
                       "input '" + name + "' names no argument");
}

class DelegateRun : public ::testing::Test {
protected:
    TensorPtr x_ = tensor({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
    TensorPtr y_ = room({2, 3});
};

TEST_F(DelegateRun, RefusesArgumentsOfAnotherDtypeThanTheBlobDeclares) {
    const Delegate delegate(negation("in0", DType::i64, {2, 3}), nullptr);
    expect_fails(delegate, {x_, y_}, et::Error::InvalidArgument,
                 "argument 0 has scalar type 6, the graph takes i64");
}

TEST_F(DelegateRun, RefusesArgumentsOfAnotherRankOrExtentThanTheBlobDeclares) {
    for (const std::vector<Extent>& shape :
         {std::vector<Extent>{6}, {2, 3, 1}, {3, 2}, {}, {Extent::symbol("n", 1, 1), 3}})
        expect_fails(Delegate(negation("in0", DType::f32, shape), nullptr), {x_, y_},
                     et::Error::InvalidArgument, "input 'in0'");
}

TEST_F(DelegateRun, RefusesResultsOfAnotherDtypeThanTheProgramsArguments) {
    GraphWriter w;
    const auto x = w.input("in0", DType::f32, {2, 3});
    w.output("out0", w.op("cast", {x}, {{"data_type", DType::i32}})[0]);
    const Delegate delegate(as_string(graph_to_bytes(*w.finish())), nullptr);
    expect_fails(delegate, {x_, y_}, et::Error::InvalidArgument,
                 "result 0 has scalar type 6, the graph makes i32");
}

TEST_F(DelegateRun, RefusesResultsOfAnotherRankOrExtentThanTheProgramsArguments) {
    const Delegate delegate(negation("in0", DType::f32, {2, 3}), nullptr);
    expect_fails(delegate, {x_, room({6})}, et::Error::InvalidArgument,
                 "result 0 has 1 dimensions, the graph makes 2");
    et::Error error = et::Error::Ok;
    const auto lines = logged([&] { error = delegate.run({x_, room({2, 2})}); });
    EXPECT_NE(error, et::Error::Ok);
    EXPECT_THAT(lines.back(), HasSubstr("result 0 cannot take the size that its inputs give it"));
}

TEST_F(DelegateRun, RefusesCallsWithFewerArgumentsThanTheBlobDeclares) {
    const Delegate delegate(negation("in0", DType::f32, {2, 3}), nullptr);
    expect_fails(delegate, {}, et::Error::InvalidArgument,
                 "called with 0 arguments, the graph makes 1 results");
    expect_fails(delegate, {x_}, et::Error::InvalidArgument,
                 "the graph takes argument 0, of 0 that are no results");
    expect_fails(Delegate(negation("in2", DType::f32, {2, 3}), nullptr), {x_, y_}, et::Error::InvalidArgument,
                 "the graph takes argument 2, of 1 that are no results");
}

/// Else it would write where the program has an input, which may be a read-only part of the file.
TEST_F(DelegateRun, RefusesAnInputThatIsAResultAsWell) {
    expect_fails(Delegate(negation("in1", DType::f32, {2, 3}), nullptr), {x_, y_}, et::Error::InvalidArgument,
                 "the graph takes argument 1, of 1 that are no results");
    EXPECT_EQ(x_->const_data_ptr<float>()[0], 1);
}

TEST_F(DelegateRun, RefusesArgumentsThatAreNoTensors) {
    const Delegate delegate(negation("in0", DType::f32, {2, 3}), nullptr);
    expect_fails(delegate, {et::EValue(std::int64_t{1}), y_}, et::Error::InvalidArgument,
                 "argument 0 is no tensor");
    expect_fails(delegate, {x_, et::EValue(std::int64_t{1})}, et::Error::InvalidArgument,
                 "result 0 is no tensor");
}

TEST_F(DelegateRun, AnswersAsBeforeAfterARefusal) {
    const Delegate delegate(negation("in0", DType::f32, {Extent::symbol("n", 1, 4), 3}), nullptr);
    ASSERT_EQ(delegate.run({x_, y_}), et::Error::Ok);
    expect_fails(delegate, {tensor({5, 3}, std::vector<float>(15)), room({5, 3})}, et::Error::InvalidArgument,
                 "input 'in0'");
    ASSERT_EQ(delegate.run({x_, y_}), et::Error::Ok);
    EXPECT_EQ(y_->const_data_ptr<float>()[5], -6);
}

}  // namespace
}  // namespace headrace
