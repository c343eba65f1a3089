/// Every sample of every op of the catalog on a device, against the reference kernels.
#include <cstdio>

#include "device/test_device.h"
#include "engine/sample_outcome.h"

namespace headrace {
namespace {

using namespace testing;

class DeviceSample : public ::testing::TestWithParam<Case> {};

/// Blocks are integers with scales, whatever type they stand for.
bool is_real(const TensorType& type) {
    return type.format == BlockFormat::plain && (type.dtype == DType::f32 || type.dtype == DType::f16);
}

bool is_all_real(const Graph& graph) {
    for (const Value& value : graph.values)
        if (!is_real(value.type)) return false;
    return true;
}

TEST_P(DeviceSample, GivesWhatTheReferenceGives) {
    const Built built = build(GetParam());
    const Outcome reference = execute(built, {.threads = 1, .packed_kernels = false, .native_ops = false});
    const Outcome outcome = execute(built, {.device = test_device(), .threads = 1});
    for (std::size_t i = 0; i < outcome.outputs.size(); ++i)
        expect_same(built.graph.value(built.graph.outputs[i].second).type, outcome.outputs[i],
                    reference.outputs[i], GetParam().sample.tolerance);
    // What tools/test_device.py makes its table of.
    std::printf("sample %s %s %s\n", std::string(GetParam().op->name).c_str(), outcome.device.c_str(),
                is_all_real(built.graph) ? "real" : "other");
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
    return std::string(info.param.op->name) + "_" + std::to_string(info.param.index);
}

INSTANTIATE_TEST_SUITE_P(Catalog, DeviceSample, ::testing::ValuesIn(all_cases()), case_name);

}  // namespace
}  // namespace headrace
