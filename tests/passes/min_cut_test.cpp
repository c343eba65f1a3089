#include "passes/min_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace headrace {
namespace {

struct Payment {
    MinCut::Node left, right;
    std::int64_t price;
};

std::int64_t cost(const std::vector<Payment>& payments, const std::vector<bool>& is_right) {
    std::int64_t sum = 0;
    for (const Payment& p : payments)
        if (!is_right[p.left] && is_right[p.right]) sum += p.price;
    return sum;
}

TEST(MinCut, IsAsCheapAsTheBestOfAllWaysToPutNodes) {
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        MinCut cut;
        const int free_nodes = 1 + static_cast<int>(random() % 8), nodes = free_nodes + 2;
        for (int i = 0; i < free_nodes; ++i) cut.add_node();
        std::vector<Payment> payments;
        for (int i = 0; i < 4 * nodes; ++i) {
            const Payment p{static_cast<MinCut::Node>(random() % nodes),
                            static_cast<MinCut::Node>(random() % nodes),
                            static_cast<std::int64_t>(random() % 20)};
            cut.pay(p.left, p.right, p.price);
            payments.push_back(p);
        }
        std::int64_t best = INT64_MAX;
        for (unsigned sides = 0; sides < 1U << free_nodes; ++sides) {
            std::vector<bool> is_right{false, true};
            for (int i = 0; i < free_nodes; ++i) is_right.push_back(sides >> i & 1);
            best = std::min(best, cost(payments, is_right));
        }
        const std::vector<bool> chosen = cut.solve();
        ASSERT_FALSE(chosen[MinCut::kLeft]);
        ASSERT_TRUE(chosen[MinCut::kRight]);
        ASSERT_EQ(cost(payments, chosen), best) << "round " << round;
    }
}

TEST(MinCut, PutsOnTheRightOnlyWhatIsCheaperThere) {
    MinCut cut;
    const auto indifferent = cut.add_node(), right = cut.add_node();
    cut.pay(right, MinCut::kRight, 1);
    const std::vector<bool> is_right = cut.solve();
    EXPECT_FALSE(is_right[indifferent]);
    EXPECT_TRUE(is_right[right]);
}

TEST(MinCut, FollowsChainsOfManyThousandNodes) {
    MinCut cut;
    MinCut::Node last = MinCut::kLeft;
    for (int i = 0; i < 50000; ++i) {
        const auto node = cut.add_node();
        cut.pay(last, node, i == 30000 ? 1 : 2);
        last = node;
    }
    cut.pay(last, MinCut::kRight, MinCut::kNever);
    const std::vector<bool> is_right = cut.solve();
    EXPECT_EQ(std::ranges::count(is_right, true), 20001);
}

}  // namespace
}  // namespace headrace
