#include "doors/onnx/reading/op_writer.h"

#include <gmock/gmock.h>

namespace headrace::onnx {
namespace {

using testing::ElementsAre;

class NoBranches : public BranchReader {
    Values read_branch(OpWriter&, const Branch&, const Values&) override { return {}; }
};

class OnnxOpWriter : public testing::Test {
protected:
    NoBranches branches_;
    Shared shared_{1000, branches_};
    OpWriter g_{shared_};

    std::vector<std::int64_t> numbers_of(const Operand& x) {
        std::vector<std::int64_t> numbers;
        for (std::int64_t i = 0; i < x->known->count(); ++i) numbers.push_back(x->integer(i));
        return numbers;
    }
    std::vector<std::string> texts_of(const Operand& x) {
        std::vector<std::string> texts;
        for (std::int64_t i = 0; i < x->known->count(); ++i) texts.push_back(x->item(i).str());
        return texts;
    }
    static Operand list(const std::vector<std::int64_t>& numbers) { return known(numbers); }
    std::size_t nodes() { return g_.builder().graph().nodes.size(); }
};

TEST_F(OnnxOpWriter, ComputesNumbersByTheOpsOwnKernels) {
    const Operand sum = g_.op("add", {list({1, 2, 3}), known(10, ElementType::i64)});
    ASSERT_TRUE(sum->has_numbers());
    EXPECT_THAT(numbers_of(sum), ElementsAre(11, 12, 13));
    const Operand low = g_.op("lesser", {sum, known(12, ElementType::i64)});
    EXPECT_EQ(low->type, ElementType::boolean) << "comparisons give truth values";
    EXPECT_EQ(nodes(), 0U);
}

TEST_F(OnnxOpWriter, MovesExtentsAndComputesWithThem) {
    const Dim n = Dim::symbolic("n");
    const Operand x = g_.input("x", ElementType::f32, {n, 3});
    const Operand shape = known(g_.shape(x));
    EXPECT_THAT(texts_of(shape), ElementsAre("n", "3"));
    const Operand turned = g_.op("reverse", {shape}, {{"axes", std::vector<std::int64_t>{0}}});
    EXPECT_THAT(texts_of(turned), ElementsAre("3", "n"));
    const Operand doubled = g_.op("mul", {turned, list({2, 2})});
    EXPECT_THAT(texts_of(doubled), ElementsAre("6", "2*n"));
    const Operand product = g_.op("reduce_product", {shape}, {{"axes", std::vector<std::int64_t>{0}}});
    EXPECT_THAT(texts_of(product), ElementsAre("3*n"));
    const Operand halves = g_.op("div", {g_.cast(doubled, ElementType::f32), known(4.0, ElementType::f32)});
    EXPECT_THAT(texts_of(g_.cast(g_.op("floor", {halves}), ElementType::i64)), ElementsAre("1", "(n//2)"));
    EXPECT_EQ(nodes(), 0U);
}

TEST_F(OnnxOpWriter, LeavesToTheRunWhatOnlyACallDecides) {
    const Operand x = g_.input("x", ElementType::f32, {Dim::symbolic("n")});
    const Operand checked =
        g_.op("checked_indices", {list({0, 1})}, {{"extents", Shape{Dim::symbolic("n")}}});
    EXPECT_FALSE(checked->is_known());
    EXPECT_EQ(nodes(), 1U);
    EXPECT_FALSE(g_.op("exp", {x})->is_known());
}

TEST_F(OnnxOpWriter, NamesTheDimensionThatMustBeANumber) {
    const Operand x = g_.input("x", ElementType::f32, {Dim::symbolic("n"), 3});
    try {
        g_.fixed_shape(x);
        ADD_FAILURE() << "n is no number";
    } catch (const Refused& error) {
        EXPECT_STREQ(error.what(),
                     "an extent of the input is dimension 'n', known only at run time, and this operator "
                     "cannot keep it");
        EXPECT_EQ(
            error.remedy(),
            "Fix it when the model is read: dimensions={'n': 1} (--dimension n=1), with the number you need");
    }
}

TEST_F(OnnxOpWriter, RefusesMoreConstantsThanAModelOfThisSizeMayMake) {
    EXPECT_THROW(shared_.budget.constant(std::size_t{1} << 31), Refused);
}

}  // namespace
}  // namespace headrace::onnx
