/// Every op of the catalog, every sample: packed kernel and ggml lowering against the reference kernel.
#include <cmath>
#include <set>

#include "rpc_server.h"
#include "test_graph.h"

namespace headrace {
namespace {

using namespace testing;

struct Case {
    const OpDef* op;
    Sample sample;
    std::size_t index;
};

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (const OpDef* op : all_ops()) {
        const auto samples = op->samples ? op->samples() : std::vector<Sample>{};
        for (std::size_t i = 0; i < samples.size(); ++i) cases.push_back({op, samples[i], i});
    }
    return cases;
}

/// Any codes, with scales and minima near 0.01.
void fill_blocks(BlockFormat format, std::mt19937& random, std::vector<std::byte>& bytes) {
    std::uniform_real_distribution<float> real(0.005f, 0.015f);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    for (std::size_t at = 0; at < bytes.size(); at += block_bytes(format))
        for (int half = 0; half < (format == BlockFormat::q4_1 ? 2 : 1); ++half) {
            const Half number(real(random));
            std::memcpy(&bytes[at + 2 * static_cast<std::size_t>(half)], &number, sizeof(number));
        }
}

std::vector<std::byte> fill(const SampleOperand& operand, unsigned seed) {
    const std::int64_t n = operand.type.elements();
    std::vector<std::byte> bytes(operand.type.bytes());
    std::mt19937 random(seed);
    if (operand.type.format != BlockFormat::plain) {
        fill_blocks(operand.type.format, random, bytes);
        return bytes;
    }
    if (bits_of(operand.type.dtype) == 4) {
        for (std::byte& b : bytes) b = static_cast<std::byte>(random());
        return bytes;
    }
    visit_dtype(operand.type.dtype, [&]<class T>() {
        T* values = reinterpret_cast<T*>(bytes.data());
        std::uniform_real_distribution<double> real(operand.low, operand.high);
        for (std::int64_t i = 0; i < n; ++i) {
            const double v = real(random);
            values[i] =
                static_cast<T>(static_cast<compute_t<T>>(is_float(operand.type.dtype) ? v : std::round(v)));
        }
    });
    return bytes;
}

/// The op alone in a graph; states for operands that it writes.
struct Built {
    Graph graph;
    std::vector<std::vector<std::byte>> inputs;
};

Built build(const Case& c) {
    Built built;
    GraphBuilder builder;
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < c.sample.operands.size(); ++i) {
        const SampleOperand& operand = c.sample.operands[i];
        const auto bytes = fill(operand, static_cast<unsigned>(i + 1));
        const std::string name = "x" + std::to_string(i);
        if (operand.absent) {
            operands.push_back(kNoValue);
        } else if (static_cast<int>(i) == c.op->writes_state) {
            auto owner = std::make_shared<std::vector<std::byte>>(bytes);
            auto initial = std::make_shared<Constant>(Constant{.bytes = *owner, .owner = owner});
            operands.push_back(must(builder.state(name, operand.type, std::move(initial))));
        } else if (operand.constant) {
            operands.push_back(must(builder.constant(operand.type, bytes, name)));
        } else {
            operands.push_back(must(builder.input(name, operand.type)));
            built.inputs.push_back(bytes);
        }
    }
    const auto results = must(builder.op(*c.op, operands, c.sample.attrs));
    for (std::size_t i = 0; i < results.size(); ++i)
        must(builder.mark_output("y" + std::to_string(i), results[i]));
    built.graph = must(builder.finish());
    return built;
}

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
