#include "ops/op_name.h"

#include <gtest/gtest.h>

#include <set>

namespace headrace {
namespace {

TEST(OpName, IsOneOfTheCatalogs) {
    std::set<std::string_view> known(std::begin(OpName::kNames), std::end(OpName::kNames)), there;
    for (const OpDef* def : all_ops()) there.insert(def->name);
    EXPECT_EQ(known, there) << "cmake/families.cmake did not find the names in src/ops as they are written";
}

TEST(OpName, TellsNodesApart) {
    const Node node{.op = &catalog_op("reshape"), .attrs = {}, .inputs = {}, .outputs = {}, .label = {}};
    EXPECT_TRUE(is(node, "reshape"));
    EXPECT_FALSE(is(node, "transpose"));
    EXPECT_EQ(std::string_view(OpName(*node.op)), "reshape");
}

}  // namespace
}  // namespace headrace
