#include "doors/onnx/reading/tables.h"

#include <gmock/gmock.h>

#include "doors/onnx/reading/bodies.h"

namespace headrace::onnx {
namespace {

using testing::HasSubstr;

class NoBranchesOfTables : public BranchReader {
    Values read_branch(OpWriter&, const Branch&, const Values&) override { return {}; }
};

class OnnxTables : public testing::Test {
protected:
    NoBranchesOfTables branches_;
    Shared shared_{1000, branches_};
    OpWriter g_{shared_};

    Operand input(const Shape& shape) {
        return g_.input(fmt::format("x{}", ++inputs_), ElementType::f32, shape);
    }
    Value list(std::vector<Operand> items) { return sequence_of(std::move(items), ElementType::f32); }
    std::string refused(const Value& a, const Value& b) {
        try {
            alike({&g_, a}, {&g_, b});
        } catch (const Refused& error) {
            return error.what();
        }
        return "";
    }

private:
    int inputs_ = 0;
};

TEST_F(OnnxTables, HaveARowForEachShape) {
    const Dim n = Dim::symbolic("n");
    const Table table = table_of(g_, list({input({n, 2}), input({3, 2})}));
    EXPECT_EQ(str(g_.shape(table.flat)), str(Shape{Dim::symbolic("n") * Dim(2) + Dim(6)}));
    ASSERT_TRUE(table.shapes->is_known());
    EXPECT_EQ(str(g_.shape(table.shapes)), "[2, 2]");
    EXPECT_EQ(table.shapes->item(0).str(), "n");
    EXPECT_EQ(table.shapes->item(2).str(), "3");
    EXPECT_EQ(table.ranks, nullptr);
}

TEST_F(OnnxTables, SayHowManyDimensionsEachTensorHasWhereTheyAreNotOfOneNumber) {
    const Table table = table_of(g_, list({input({4}), input({3, 2})}));
    ASSERT_TRUE(table.ranks && table.ranks->has_numbers());
    EXPECT_EQ(table.ranks->integer(0), 1);
    EXPECT_EQ(table.ranks->integer(1), 2);
    EXPECT_EQ(table.shapes->integer(1), 1) << "what the first one lacks";
}

TEST_F(OnnxTables, ListsOfOneLengthStayLists) {
    const Value a = list({input({4})}), b = list({input({5})});
    const auto [one, other] = alike({&g_, a}, {&g_, b});
    EXPECT_TRUE(as_sequence(one) && as_sequence(other));
}

TEST_F(OnnxTables, ListsOfSeveralLengthsBecomeTablesOfOneNumberOfDimensions) {
    const Value none = list({}), two = list({input({4, 1}), input({5, 2})});
    const auto [one, other] = alike({&g_, none}, {&g_, two});
    ASSERT_TRUE(as_table(one) && as_table(other));
    EXPECT_EQ(rank_of(g_, one), 2);
    EXPECT_TRUE(has_same_form(one, other));
    EXPECT_TRUE(length_of(g_, one).is(0));

    const auto [wide, wider] = alike({&g_, one}, {&g_, list({input({1, 2, 3})})});
    EXPECT_EQ(rank_of(g_, wide), 3);
    EXPECT_TRUE(has_same_form(wide, wider)) << "both say how many dimensions each tensor has";
}

TEST_F(OnnxTables, AnOptionalThatIsEmptyInOneOfTwoHasAFlagInBoth) {
    const Value none = optional_of(std::nullopt), some = optional_of(input({4}));
    const auto [one, other] = alike({&g_, none}, {&g_, some});
    ASSERT_TRUE(as_optional(one) && as_optional(other));
    EXPECT_EQ(as_optional(one)->is_there->integer(0), 0);
    EXPECT_EQ(as_optional(other)->is_there->integer(0), 1);
    EXPECT_EQ(leaves_of(one).size(), leaves_of(other).size());
    EXPECT_EQ(g_.rank(std::get<Operand>(*as_optional(one)->item)), 1) << "a stand-in of as many dimensions";
    const auto [first, second] = alike({&g_, none}, {&g_, optional_of(std::nullopt)});
    EXPECT_FALSE(as_optional(first)->is_there) << "both are known to be empty";
}

TEST_F(OnnxTables, ATensorIsNoSequence) {
    EXPECT_THAT(refused(input({4}), list({})), HasSubstr("one is a tensor and the other a sequence"));
    EXPECT_THAT(refused(list({}), list({known(1, ElementType::i64), input({4})})),
                HasSubstr("tensors of [f32, i64]"));
}

TEST_F(OnnxTables, ValuesAreGroupedAsTheyWereTakenApart) {
    const Operand x = input({4}), y = input({5}), flag = known(1, ElementType::boolean);
    const Values values{x, list({y, x}), optional_of(list({y}), flag)};
    const std::vector<Operand> leaves = leaves_of(values);
    ASSERT_EQ(leaves.size(), 5U);
    EXPECT_EQ(leaves[3], flag);
    const Values again = grouped(values, leaves);
    ASSERT_EQ(again.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_TRUE(has_same_form(again[i], values[i])) << i;
    EXPECT_EQ(as_sequence(*as_optional(again[2])->item)->items.at(0), y);
}

}  // namespace
}  // namespace headrace::onnx
