#include "doors/onnx/reading/reference.h"

#include <algorithm>

#include "doors/onnx/reading/refused.h"
#include "ir/constant.h"
#include "ir/kernel_error.h"

namespace headrace::onnx {
namespace {

/// Results that would have more elements than this are none to ask about.
std::int64_t elements_of(const std::vector<TensorType>& types, std::int64_t most) {
    std::int64_t total = 0;
    for (const TensorType& type : types) {
        std::int64_t count = 1;
        for (const Dim& d : type.shape)
            if (__builtin_mul_overflow(count, d.size(), &count)) return most + 1;
        if (count > most) return most + 1;
        total += count;
    }
    return total;
}

/// Owns what views of a call show.
class Views {
public:
    /// count: of operands and results together.
    explicit Views(std::size_t count) { shapes_.reserve(count); }

    ConstView of(const ReferenceOperand& operand) {
        if (!operand.bytes) return {};
        auto copy = value_or_refuse(AlignedBuffer::allocate(operand.bytes->size(), "known elements"));
        std::ranges::copy(*operand.bytes, copy.data());
        return {operand.type.dtype, shapes_.emplace_back(operand.type.sizes()),
                copies_.emplace_back(std::move(copy)).data()};
    }

    MutView of(const TensorType& type, AlignedBuffer& buffer) {
        return {type.dtype, shapes_.emplace_back(type.sizes()), buffer.data()};
    }

private:
    std::vector<std::vector<std::int64_t>> shapes_;
    std::vector<AlignedBuffer> copies_;
};

}  // namespace

TensorType stored_type(const Operand& x) {
    return {stored_as(x->type), Shape(x->known->shape.begin(), x->known->shape.end())};
}

std::vector<TensorType> inferred(const OpDef& op, const AttrBox& attrs,
                                 std::span<const ReferenceOperand> operands) {
    std::vector<const TensorType*> given;
    for (const ReferenceOperand& x : operands) given.push_back(x.bytes ? &x.type : nullptr);
    auto types = check_and_infer(op, Operands(given), attrs.get());
    if (!types.ok())
        throw Refused(fmt::format("{}: {}", op.name, types.error().message), Refused::kOtherwise,
                      types.error().code);
    return std::move(types).value();
}

std::optional<std::vector<Folded>> by_reference(const OpDef& op, const AttrBox& attrs,
                                                std::span<const ReferenceOperand> operands,
                                                std::int64_t most) {
    const std::vector<TensorType> types = inferred(op, attrs, operands);
    const bool is_concrete = std::ranges::all_of(types, &TensorType::is_concrete);
    if (!is_concrete || elements_of(types, most) > most) return std::nullopt;
    Views views(operands.size() + types.size());
    std::vector<ConstView> in;
    for (const ReferenceOperand& x : operands) in.push_back(views.of(x));
    in.resize(std::max(in.size(), op.operands.size()));  // a kernel may ask for every operand it declares
    std::vector<AlignedBuffer> buffers;
    std::vector<MutView> out;
    for (const TensorType& type : types) {
        buffers.push_back(value_or_refuse(AlignedBuffer::allocate(type.bytes(), "a folded constant")));
        out.push_back(views.of(type, buffers.back()));
    }
    try {
        op.reference({in, out, {}}, attrs.get());
    } catch (const KernelError& error) {
        throw Refused(fmt::format("{}: {}", op.name, error.what()), Refused::kOtherwise,
                      Code::invalid_argument);
    }
    std::vector<Folded> results;
    for (std::size_t i = 0; i < types.size(); ++i)
        results.push_back(
            {types[i].dtype,
             {.shape = types[i].sizes(), .data = own_constant(std::move(buffers[i])), .items = {}}});
    return results;
}

}  // namespace headrace::onnx
