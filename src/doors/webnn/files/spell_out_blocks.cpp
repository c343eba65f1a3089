#include "doors/webnn/files/spell_out_blocks.h"

#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "base/half.h"
#include "doors/webnn/files/graph_copy.h"
#include "ir/constant.h"
#include "ops/op_name.h"

namespace headrace::webnn {
namespace {

bool is_q8_0(const Value& value) {
    return value.kind == ValueKind::constant && value.type.format == BlockFormat::q8_0;
}

/// What dequantize_linear makes the matrix from.
struct Parts {
    ValueId whole = kNoValue, scale = kNoValue, zero_point = kNoValue;
};

class BlockSpeller final : public GraphCopy {
public:
    using GraphCopy::GraphCopy;

private:
    Status take_constant(ValueId old) override {
        if (!is_q8_0(graph_.value(old))) return GraphCopy::take_constant(old);
        HR_ASSIGN(parts_[old], parts_of(graph_.value(old)));
        return success();
    }

    Result<Parts> parts_of(const Value& value) {
        const TensorType elements{DType::i8, value.type.shape};
        TensorType scales{DType::f32, value.type.shape};
        scales.shape.back() = scales.shape.back().size() / kBlockElements;
        const TensorType zeros{DType::i8, scales.shape};
        HR_ASSIGN(auto element_bytes, AlignedBuffer::allocate(elements.bytes(), "int8 weights"));
        HR_ASSIGN(auto scale_bytes, AlignedBuffer::allocate(scales.bytes(), "scales of weights"));
        HR_ASSIGN(auto zero_bytes, AlignedBuffer::allocate(zeros.bytes(), "zero points of weights"));
        std::memset(zero_bytes.data(), 0, zero_bytes.bytes());
        auto* scale = reinterpret_cast<float*>(scale_bytes.data());
        const std::byte* block = value.constant->bytes.data();
        for (std::int64_t i = 0; i < scales.elements(); ++i, block += block_bytes(BlockFormat::q8_0)) {
            scale[i] = load_half(block);
            std::memcpy(element_bytes.data() + i * kBlockElements, block + 2, kBlockElements);
        }
        Parts parts;
        HR_ASSIGN(parts.whole,
                  builder_.constant(elements, own_constant(std::move(element_bytes)), value.name));
        HR_ASSIGN(parts.scale, builder_.constant(scales, own_constant(std::move(scale_bytes))));
        HR_ASSIGN(parts.zero_point, builder_.constant(zeros, own_constant(std::move(zero_bytes))));
        return parts;
    }

    Result<ValueId> dequantized(const Parts& p) {
        return op("dequantize_linear", {p.whole, p.scale, p.zero_point});
    }

    /// The node's operands; a matrix in blocks is dequantised by the first that reads all of it.
    Result<std::vector<ValueId>> operands_of(const Node& node) {
        std::vector<ValueId> operands;
        for (const ValueId old : node.inputs) {
            const auto parts = parts_.find(old);
            if (parts != parts_.end() && id(old) == kNoValue) {
                HR_ASSIGN(id(old), dequantized(parts->second));
            }
            operands.push_back(old == kNoValue ? kNoValue : id(old));
        }
        return operands;
    }

    Result<std::vector<ValueId>> add(const Node& node) override {
        if (const auto parts = parts_.find(node.inputs.empty() ? kNoValue : node.inputs[0]);
            is(node, "gather") && parts != parts_.end()) {
            HR_ASSIGN(const ValueId result, rows_of(parts->second, node));
            return std::vector<ValueId>{result};
        }
        HR_ASSIGN(auto operands, operands_of(node));
        const bool is_plain = is(node, "fused_matmul") && operands.size() <= 3 &&
                              attr<std::string>(node, "activation") == "none";
        if (!is_plain) return builder_.op(*node.op, std::move(operands), node.attrs, node.label);
        operands.resize(3, kNoValue);
        HR_ASSIGN(const ValueId result, product(operands[0], operands[1], operands[2],
                                                attr<bool>(node, "transpose_b"), node.label));
        return std::vector<ValueId>{result};
    }

    /// Gathers before it dequantises, so that a run does not touch the other rows.
    Result<ValueId> rows_of(Parts parts, const Node& node) {
        const NamedAttrs axis{{"axis", attr<std::int64_t>(node, "axis")}};
        const ValueId indices = id(node.inputs[1]);
        for (ValueId* part : {&parts.whole, &parts.scale, &parts.zero_point}) {
            HR_ASSIGN(*part, op("gather", {*part, indices}, axis, node.label));
        }
        return dequantized(parts);
    }

    Result<ValueId> product(ValueId a, ValueId b, ValueId bias, bool transpose_b, const std::string& label) {
        if (const DType type = builder_.type(a).dtype; builder_.type(b).dtype != type) {
            HR_ASSIGN(b, op("cast", {b}, {{"data_type", type}}));
        }
        if (builder_.type(a).shape.size() == 2)
            return op("gemm", {a, b, bias}, {{"b_transpose", transpose_b}}, label);
        if (transpose_b) {
            HR_ASSIGN(b, op("transpose", {b}));
        }
        HR_ASSIGN(const ValueId sums, op("matmul", {a, b}, {}, label));
        return bias == kNoValue ? Result<ValueId>(sums) : op("add", {sums, bias}, {}, label);
    }

    std::map<ValueId, Parts> parts_;
};

}  // namespace

Result<Graph> spell_out_blocks(const Graph& graph) { return BlockSpeller(graph).run(); }

}  // namespace headrace::webnn
