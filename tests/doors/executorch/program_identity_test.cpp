#include <executorch/runtime/executor/merged_data_map.h>
#include <gtest/gtest.h>

#include "blobs.h"

namespace headrace {
namespace {

using namespace testing;
using et::internal::MergedDataMap;

float total_after_ones(const Delegate& method, const Layer& layer) {
    const TensorPtr total = room({layer.out});
    const std::vector<float> ones(layer.in, 1.0f);
    if (method.run({tensor({1, layer.in}, ones), room({kMostRows, layer.out}), total}) != et::Error::Ok)
        return -1;
    return total->const_data_ptr<float>()[0];
}

TEST(ProgramIdentity, LetsMethodsWithAFileBesideTheProgramShareAStateAndLoadsOfOneFileNone) {
    const Layer layer(5);
    const Weights file;
    const Layer again = layer;
    const auto a = MergedDataMap::load(&file, &layer.weights), b = MergedDataMap::load(&file, &layer.weights),
               c = MergedDataMap::load(&file, &again.weights);
    const Delegate prefill(layer.blob, &a.get(), "prefill"), decode(layer.blob, &b.get(), "decode"),
        other(layer.blob, &c.get(), "decode");
    const float once = total_after_ones(prefill, layer);
    ASSERT_GT(once, 0);
    EXPECT_FLOAT_EQ(total_after_ones(decode, layer), 2 * once);
    EXPECT_FLOAT_EQ(total_after_ones(other, layer), once);
}

}  // namespace
}  // namespace headrace
