/// Every op of the catalog, every sample: packed kernel and ggml lowering against the reference kernel.
#include <cmath>
#include <set>

#include "rpc_server.h"
#include "sample_graph.h"

namespace headrace {
namespace {

using namespace testing;

struct Outcome {
    std::vector<std::vector<std::byte>> outputs;
    std::string implementation;
    std::string device;
};

Outcome execute(const Built& built, CompileOptions options) {
    options.disabled_passes = {"fold_constants", "eliminate_no_ops"};
    Session session(compile(built.graph, options));
    std::vector<std::vector<std::int64_t>> shapes;
    std::vector<InputView> in;
    for (ValueId id : built.graph.inputs) shapes.push_back(built.graph.value(id).type.sizes());
    for (std::size_t i = 0; i < built.inputs.size(); ++i)
        in.push_back(
            {built.graph.value(built.graph.inputs[i]).type.dtype, shapes[i], built.inputs[i].data()});
    Outcome outcome;
    std::vector<OutputView> out;
    for (const auto& [name, id] : built.graph.outputs)
        outcome.outputs.emplace_back(built.graph.value(id).type.bytes());
    for (auto& o : outcome.outputs) out.push_back({o.data(), o.size()});
    session.run(in, out);
    outcome.implementation = session.stats().nodes[0].implementation;
    outcome.device = session.stats().nodes[0].device;
    return outcome;
}

/// An odd number of 4-bit elements leaves half of the last byte unused.
std::vector<std::byte> without_padding(const TensorType& type, std::vector<std::byte> bytes) {
    if (bits_of(type.dtype) == 4 && type.elements() % 2 == 1) bytes.back() &= std::byte{0xF};
    return bytes;
}

void expect_same(const TensorType& type, const std::vector<std::byte>& actual,
                 const std::vector<std::byte>& expected, double tolerance) {
    if (!is_float(type.dtype)) {
        EXPECT_EQ(without_padding(type, actual), without_padding(type, expected));
        return;
    }
    visit_dtype(type.dtype, [&]<class T>() {
        for (std::int64_t i = 0; i < type.elements(); ++i) {
            const double a =
                static_cast<double>(static_cast<compute_t<T>>(reinterpret_cast<const T*>(actual.data())[i]));
            const double e = static_cast<double>(
                static_cast<compute_t<T>>(reinterpret_cast<const T*>(expected.data())[i]));
            if (std::isnan(e)) {
                ASSERT_TRUE(std::isnan(a)) << "at " << i;
            } else if (std::isinf(e)) {
                ASSERT_EQ(a, e) << "at " << i;
            } else {
                ASSERT_NEAR(a, e, tolerance * std::max(1.0, std::abs(e))) << "at " << i;
            }
        }
    });
}

class OpSample : public ::testing::TestWithParam<Case> {};

TEST_P(OpSample, LoweringAndKernelAgreeWithTheReference) {
    const Built built = build(GetParam());
    const Outcome reference = execute(built, {.threads = 1, .packed_kernels = false, .native_ops = false});
    EXPECT_EQ(reference.implementation, "reference");
    for (const CompileOptions& options :
         {CompileOptions{.threads = 2, .packed_kernels = false},
          CompileOptions{.threads = 2, .native_ops = false}, CompileOptions{.threads = 2}}) {
        const Outcome other = execute(built, options);
        SCOPED_TRACE(other.implementation);
        for (std::size_t i = 0; i < other.outputs.size(); ++i)
            expect_same(built.graph.value(built.graph.outputs[i].second).type, other.outputs[i],
                        reference.outputs[i], GetParam().sample.tolerance);
    }
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
    return std::string(info.param.op->name) + "_" + std::to_string(info.param.index);
}

INSTANTIATE_TEST_SUITE_P(Catalog, OpSample, ::testing::ValuesIn(all_cases()), case_name);

TEST(Catalog, EverySampleAgreesOnARemoteDevice) {
    const RpcServer server;
    int on_device = 0;
    for (const Case& c : all_cases()) {
        SCOPED_TRACE(std::string(c.op->name) + " " + std::to_string(c.index));
        const Built built = build(c);
        const Outcome reference = execute(built, {.packed_kernels = false, .native_ops = false});
        const Outcome remote = execute(built, {.device = server.device()});
        on_device += remote.device == server.device();
        for (std::size_t i = 0; i < remote.outputs.size(); ++i)
            expect_same(built.graph.value(built.graph.outputs[i].second).type, remote.outputs[i],
                        reference.outputs[i], c.sample.tolerance);
    }
    EXPECT_GT(on_device, 100);
}

/// Without this, a predicate that always said no would make the comparison above one of equals.
TEST(Catalog, EveryLoweringAndEveryKernelRunsSomeSample) {
    std::set<std::string> used;
    for (const Case& c : all_cases()) {
        const Built built = build(c);
        for (const bool kernels : {false, true}) {
            const CompileOptions options{.packed_kernels = kernels, .native_ops = !kernels};
            used.insert(std::string(c.op->name) + " " + execute(built, options).implementation);
        }
    }
    for (const OpDef* op : all_ops()) {
        const std::string name(op->name);
        if (op->lower) {
            EXPECT_TRUE(used.contains(name + " ggml")) << name;
        }
        for (const KernelDef& kernel : op->kernels)
            EXPECT_TRUE(used.contains(name + " " + std::string(kernel.name))) << name << " " << kernel.name;
    }
}

TEST(Catalog, EveryOpHasASampleAndASummary) {
    for (const OpDef* op : all_ops()) {
        EXPECT_TRUE(op->samples && !op->samples().empty()) << op->name;
        EXPECT_FALSE(op->summary.empty()) << op->name;
    }
}

}  // namespace
}  // namespace headrace
