#include "doors/onnx/reading/ranges.h"

#include <gtest/gtest.h>

#include "doors/onnx/reading/extents.h"

namespace headrace::onnx {
namespace {

TEST(OnnxRanges, LearnTheLeastValuesOfSymbolsFromWindows) {
    Ranges ranges;
    const Dim samples = Dim::symbolic("samples"), batch = Dim::symbolic("batch");
    const Dim windows = Dim::symbolic("((samples-10)//5 + 1)", 1);
    EXPECT_LT((windows - 1).min_size(), 0);
    ranges.learn({windows});
    EXPECT_EQ(ranges.narrowed(samples).min_size(), 10);
    EXPECT_EQ((ranges.narrowed(samples) - 10).min_size(), 0);
    ranges.learn({Dim::symbolic("(20 - samples)", 1), 3, samples * batch});
    EXPECT_EQ(ranges.narrowed(samples).min_size(), 10)
        << "what falls with a symbol says nothing of its least";
}

}  // namespace
}  // namespace headrace::onnx
