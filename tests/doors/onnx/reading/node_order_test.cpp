#include "doors/onnx/reading/node_order.h"

#include <gtest/gtest.h>

#include "doors/onnx/model_bytes.h"

namespace headrace::onnx {
namespace {

/// The first results of the nodes in the order in which they are to be read.
std::vector<std::string> ordered(const std::vector<std::string>& nodes) {
    std::vector<Bytes> bytes(nodes.begin(), nodes.end());
    std::vector<std::string> results;
    const auto sorted = in_order(bytes);
    if (!sorted.ok()) return {sorted.error().message};
    for (Bytes message : sorted.value()) {
        const auto decoded = decode_node(message);
        results.emplace_back(decoded.value().outputs.at(0));
    }
    return results;
}

using List = std::vector<std::string>;

TEST(NodeOrder, PutsNodesBehindThoseThatComputeTheirInputs) {
    EXPECT_EQ(ordered({node("Add", {"b", "c"}, "y"), node("Relu", {"a"}, "c"), node("Relu", {"a"}, "b"),
                       node("Relu", {"x"}, "a")}),
              (List{"a", "c", "b", "y"}));
}

TEST(NodeOrder, LeavesNodesAsTheyAreWhereTheOrderIsRight) {
    const List nodes{node("Relu", {"x"}, "b"), node("Clip", {"x", "", "k"}, "a"),
                     node("Add", {"a", "b"}, "y")};
    EXPECT_EQ(ordered(nodes), (List{"b", "a", "y"}));
}

TEST(NodeOrder, PutsNodesBehindWhatTheirBodiesRead) {
    const auto choice = [](const std::string& result, const std::string& body) {
        return node("If", {"c"}, result) +
               bytes_field(5, bytes_field(1, "then_branch") + bytes_field(6, body) + number_field(20, 5));
    };
    const std::string inner = bytes_field(1, node("Neg", {"a"}, "i")) + bytes_field(12, float_value("i", {}));
    const std::string outer = bytes_field(1, choice("o", inner)) + bytes_field(12, float_value("o", {}));
    EXPECT_EQ(ordered({choice("y", outer), node("Relu", {"x"}, "a")}), (List{"a", "y"}));
    EXPECT_EQ(ordered({choice("y", bytes_field(12, float_value("a", {}))), node("Relu", {"x"}, "a")}),
              (List{"a", "y"}));
}

TEST(NodeOrder, RefusesCyclesAndNamesNodesOfThem) {
    EXPECT_EQ(
        ordered({node("Neg", {"b"}, "z"), node("Relu", {"b"}, "a"), node("Exp", {"a"}, "b"),
                 node("Relu", {"x"}, "y")}),
        (List{"the node of output 'b' (Exp) waits for that of 'a' (Relu), which waits for it: nodes must "
              "not be a cycle; use Loop for what repeats"}));
}

}  // namespace
}  // namespace headrace::onnx
