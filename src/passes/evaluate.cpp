#include "passes/evaluate.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "ir/constant.h"
#include "ir/kernel_error.h"
#include "ir/shared_forms.h"

namespace headrace {
namespace {

/// Operations below which a reference kernel takes some milliseconds at most.
constexpr double kManyOperations = 1e7;

using Constants = std::vector<std::shared_ptr<const Constant>>;

/// Runs a node's kernel on constants.
class Evaluation {
public:
    explicit Evaluation(const Graph& graph) : graph_(graph) {}

    Result<Constants> run(const Node& node) {
        const std::size_t count = node.inputs.size() + node.outputs.size();
        shapes_.reserve(count);  // views point into it
        std::vector<ConstView> in;
        for (ValueId id : node.inputs) {
            if (id == kNoValue) {
                in.push_back({});
                continue;
            }
            HR_ASSIGN(const auto view, operand(graph_.value(id)));
            in.push_back(view);
        }
        // A kernel may ask for every operand it declares.
        in.resize(std::max(in.size(), node.op->operands.size()));
        std::vector<MutView> out;
        Constants results;
        for (ValueId id : node.outputs) {
            const TensorType& type = graph_.value(id).type;
            HR_ASSIGN(auto buffer, AlignedBuffer::allocate(type.bytes(), "a folded constant"));
            out.push_back({type.dtype, shapes_.emplace_back(type.sizes()), buffer.data()});
            results.push_back(own_constant(std::move(buffer)));
        }
        if (const KernelDef* kernel = folding_kernel(graph_, node)) {
            HR_TRY(run_packed(*kernel, node, in, out));
            return results;
        }
        try {
            node.op->reference({in, out, {}}, node.attrs.get());
        } catch (const KernelError& error) {
            return invalid("{}", error.what());
        }
        return results;
    }

private:
    Status run_packed(const KernelDef& kernel, const Node& node, std::vector<ConstView>& in,
                      std::span<const MutView> out) const {
        AlignedBuffer packed;
        if (kernel.packed_operand >= 0) {
            const auto types = graph_.operand_types(node);
            ConstView& plain = in[static_cast<std::size_t>(kernel.packed_operand)];
            HR_ASSIGN(packed, AlignedBuffer::allocate(kernel.packed_bytes(Operands(types), node.attrs.get()),
                                                      "an operand of a folded node"));
            kernel.pack(plain, node.attrs.get(), packed.data());
            plain.data = packed.data();
        }
        kernel.run({in, out, {}}, node.attrs.get());
        return success();
    }

    Result<ConstView> operand(const Value& v) {
        HR_ASSIGN(auto plain, AlignedBytes::of(*v.constant));
        const std::byte* data = constants_.emplace_back(std::move(plain)).data();
        return ConstView{v.type.dtype, shapes_.emplace_back(v.type.sizes()), data, v.type.format};
    }

    const Graph& graph_;
    std::vector<std::vector<std::int64_t>> shapes_;
    std::vector<AlignedBytes> constants_;
};

}  // namespace

const KernelDef* folding_kernel(const Graph& graph, const Node& node) {
    if (!node.op->cost || node.op->kernels.empty()) return nullptr;
    const auto types = graph.operand_types(node);
    const auto outputs = graph.output_types(node);
    const Operands in(types);
    if (node.op->cost(in, outputs, node.attrs.get()).flops < kManyOperations) return nullptr;
    const auto mask = graph.constant_mask(node);
    const std::unique_ptr<bool[]> constants(new bool[mask.size()]);
    std::ranges::copy(mask, constants.get());
    for (const KernelDef& kernel : node.op->kernels)
        if (kernel.applies(in, {constants.get(), mask.size()}, node.attrs.get())) return &kernel;
    return nullptr;
}

namespace {

/// The result of a node with one, which graphs of the same constants share where it is large.
Result<Constants> shared_result(const Graph& graph, const Node& node) {
    std::vector<const Constant*> sources;
    std::string what(node.op->name);
    for (const AttrValue& attr : node.op->attr_values(node.attrs.get())) what += "|" + text_of(attr);
    for (const ValueId id : node.inputs) {
        what += "|" + (id == kNoValue ? "none" : graph.value(id).type.str());
        if (id != kNoValue) sources.push_back(graph.value(id).constant.get());
    }
    const std::size_t bytes = graph.value(node.outputs[0]).type.bytes();
    const auto run = [&]() -> Result<SharedForms::Form> {
        HR_ASSIGN(const Constants results, Evaluation(graph).run(node));
        return shared_bytes(*results[0]);
    };
    HR_ASSIGN(const auto form, SharedForms::all().get(sources, what, run));
    return Constants{own_constant(form, bytes)};
}

}  // namespace

Status make_constant(Graph& graph, const Node& node) {
    constexpr std::size_t kWorthSharing = std::size_t{64} << 10;
    const bool is_shared =
        node.outputs.size() == 1 && graph.value(node.outputs[0]).type.bytes() >= kWorthSharing;
    auto results = is_shared ? shared_result(graph, node) : Evaluation(graph).run(node);
    if (!results.ok()) return results.error().within(node.title());
    const FilePages pages;
    for (ValueId id : node.inputs)
        if (id != kNoValue && graph.value(id).constant->mapped)
            pages.give_back(graph.value(id).constant->bytes);
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
        Value& v = graph.value(node.outputs[k]);
        v.constant = std::move(results.value()[k]);
        v.kind = ValueKind::constant;
        v.producer = -1;
        v.output_index = 0;
    }
    return success();
}

}  // namespace headrace
