#include "passes/evaluate.h"

#include <algorithm>

#include "ir/constant.h"
#include "ir/kernel_error.h"

namespace headrace {
namespace {

/// Runs a node's reference kernel on constants.
class Evaluation {
public:
    explicit Evaluation(const Graph& graph) : graph_(graph) {}

    Result<std::vector<std::shared_ptr<const Constant>>> run(const Node& node) {
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
        std::vector<std::shared_ptr<const Constant>> results;
        for (ValueId id : node.outputs) {
            const TensorType& type = graph_.value(id).type;
            HR_ASSIGN(auto buffer, AlignedBuffer::allocate(type.bytes(), "a folded constant"));
            out.push_back({type.dtype, shapes_.emplace_back(type.sizes()), buffer.data()});
            results.push_back(own_constant(std::move(buffer)));
        }
        try {
            node.op->reference({in, out, {}}, node.attrs.get());
        } catch (const KernelError& error) {
            return invalid("{}", error.what());
        }
        return results;
    }

private:
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

Status make_constant(Graph& graph, const Node& node) {
    auto results = Evaluation(graph).run(node);
    if (!results.ok()) return results.error().within(node.title());
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
