#include "engine/device_check.h"

#include <cmath>
#include <exception>
#include <random>
#include <type_traits>

#include "emit/emit.h"
#include "headrace/headrace.h"
#include "ir/graph_builder.h"
#include "ops/arithmetic.h"
#include "ops/catalog.h"
#include "run/device_arithmetic.h"

namespace headrace {
namespace {

using Bytes = std::vector<std::byte>;

Bytes drawn(const SampleOperand& operand, unsigned seed) {
    const TensorType& type = operand.type;
    std::mt19937 random(seed);
    Bytes bytes(type.bytes());
    if (type.format != BlockFormat::plain) {
        std::uniform_real_distribution<float> real(-0.1f, 0.1f);
        std::vector<float> values(static_cast<std::size_t>(type.elements()));
        for (float& v : values) v = real(random);
        quantize_rows(type.format, values.data(), 1, type.elements(), bytes.data());
        return bytes;
    }
    if (bits_of(type.dtype) == 4) {
        for (std::byte& b : bytes) b = static_cast<std::byte>(random());
        return bytes;
    }
    std::uniform_real_distribution<double> real(operand.low, operand.high);
    visit_dtype(type.dtype, [&]<class T>() {
        T* values = reinterpret_cast<T*>(bytes.data());
        for (std::int64_t i = 0; i < type.elements(); ++i) {
            const double v = is_float(type.dtype) ? real(random) : std::round(real(random));
            values[i] = static_cast<T>(static_cast<compute_t<T>>(v));
        }
    });
    return bytes;
}

/// Integers to the last bit; infinities and NaN are equal to themselves alone.
template <class T>
bool agree(T actual, T expected, double tolerance) {
    if constexpr (!std::is_floating_point_v<T>) {
        return actual == expected;
    } else {
        const double a = actual, e = expected;
        if (std::isnan(a) || std::isnan(e)) return std::isnan(a) && std::isnan(e);
        if (std::isinf(a) || std::isinf(e)) return a == e;
        return std::abs(a - e) <= tolerance * std::max(1.0, std::abs(e));
    }
}

/// An op alone in a graph, with its sample's operands.
class SampleRun {
public:
    static Result<SampleRun> make(const OpDef& op, const Sample& sample) {
        SampleRun run;
        GraphBuilder builder;
        std::vector<ValueId> operands;
        for (std::size_t i = 0; i < sample.operands.size(); ++i) {
            const SampleOperand& operand = sample.operands[i];
            const std::string name = fmt::format("x{}", i);
            ValueId id = kNoValue;
            if (!operand.absent) {
                Bytes bytes = drawn(operand, static_cast<unsigned>(i + 1));
                if (operand.constant) {
                    HR_ASSIGN(id, builder.constant(operand.type, bytes, name));
                } else {
                    HR_ASSIGN(id, builder.input(name, operand.type));
                    run.inputs_.push_back(std::move(bytes));
                }
            }
            operands.push_back(id);
        }
        HR_ASSIGN(const auto results, builder.op(op, operands, sample.attrs));
        for (std::size_t i = 0; i < results.size(); ++i)
            HR_TRY(builder.mark_output(fmt::format("y{}", i), results[i]));
        HR_ASSIGN(run.graph_, builder.finish());
        return run;
    }

    struct Ran {
        std::vector<Bytes> outputs;
        bool on_device = false;
    };
    /// Throws what the public API does.
    Ran execute(CompileOptions options) const {
        options.disabled_passes = {"fold_constants", "eliminate_no_ops"};
        Session session(compile(graph_, options));
        std::vector<std::vector<std::int64_t>> shapes;
        for (ValueId id : graph_.inputs) shapes.push_back(graph_.value(id).type.sizes());
        std::vector<InputView> in;
        for (std::size_t i = 0; i < inputs_.size(); ++i)
            in.push_back({graph_.value(graph_.inputs[i]).type.dtype, shapes[i], inputs_[i].data()});
        Ran ran;
        std::vector<OutputView> out;
        for (const auto& [name, id] : graph_.outputs) ran.outputs.emplace_back(graph_.value(id).type.bytes());
        for (Bytes& bytes : ran.outputs) out.push_back({bytes.data(), bytes.size()});
        session.run(in, out);
        ran.on_device = session.stats().nodes[0].device == options.device;
        return ran;
    }

    /// Empty where they agree.
    std::string difference(const Ran& actual, const Ran& expected, double tolerance) const {
        for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
            const TensorType& type = graph_.value(graph_.outputs[i].second).type;
            std::string found;
            if (bits_of(type.dtype) == 4) {
                for (std::int64_t k = 0; k < type.elements(); ++k) {
                    const auto at = [&](const Bytes& bytes) {
                        return static_cast<int>(bytes[static_cast<std::size_t>(k / 2)] >> (4 * (k % 2))) & 15;
                    };
                    const int a = at(actual.outputs[i]), e = at(expected.outputs[i]);
                    if (a != e) return fmt::format("the bits of element {} are {}, not {}", k, a, e);
                }
                continue;
            }
            visit_dtype(type.dtype, [&]<class T>() {
                const auto at = [](const Bytes& bytes, std::int64_t k) {
                    return static_cast<compute_t<T>>(reinterpret_cast<const T*>(bytes.data())[k]);
                };
                for (std::int64_t k = 0; k < type.elements() && found.empty(); ++k) {
                    const compute_t<T> a = at(actual.outputs[i], k), e = at(expected.outputs[i], k);
                    if (!agree(a, e, tolerance)) found = fmt::format("element {} is {}, not {}", k, a, e);
                }
            });
            if (!found.empty()) return found;
        }
        return {};
    }

private:
    Graph graph_;
    std::vector<Bytes> inputs_;
};

/// States stay on the CPU, bodies have no samples, and 4-bit results are no device's.
bool may_run_there(const OpDef& op) {
    return op.samples && op.lower && op.is_pure() && op.control == Control::none;
}

Status check_sample(const OpDef& op, const Sample& sample, const std::string& device, OpCheck& check) {
    HR_ASSIGN(const SampleRun run, SampleRun::make(op, sample));
    try {
        const auto there = run.execute({.device = device, .threads = 1});
        if (!there.on_device) return success();
        ++check.on_device;
        const auto here = run.execute({.threads = 1, .packed_kernels = false, .native_ops = false});
        const std::string difference = run.difference(there, here, sample.tolerance);
        if (difference.empty()) return success();
        if (check.wrong++ == 0) check.problem = difference;
    } catch (const std::exception& e) {
        ++check.on_device;
        if (check.wrong++ == 0) check.problem = e.what();
    }
    return success();
}

}  // namespace

Result<std::vector<OpCheck>> check_device(const std::string& name) {
    HR_ASSIGN(const Device device, find_device(name));
    if (device.is_cpu || device.host)
        return invalid(
            "device '{}' cannot be checked; a GPU of this machine can, as headrace devices lists them", name);
    HR_TRY(distrust(device, {}));
    std::vector<OpCheck> checks;
    std::vector<std::string> wrong;
    for (const OpDef* op : all_ops()) {
        if (!may_run_there(*op)) continue;
        OpCheck check{.op = std::string(op->name)};
        for (const Sample& sample : op->samples()) {
            ++check.samples;
            HR_TRY(check_sample(*op, sample, device.name, check));
        }
        if (check.wrong) wrong.push_back(check.op);
        if (check.on_device) checks.push_back(std::move(check));
    }
    HR_TRY(distrust(device, std::move(wrong)));
    return checks;
}

}  // namespace headrace
