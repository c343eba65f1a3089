#include "plan/packed_constants.h"

namespace headrace {

Result<std::shared_ptr<const AlignedBuffer>> PackedConstants::get(const Graph& graph, const Node& node,
                                                                  const KernelDef& kernel) {
    const Value& value = graph.value(node.inputs[kernel.packed_operand]);
    // The same bytes may be used with another shape or other attributes (transposed), hence both in the key.
    std::string use = fmt::format("{}|{}", kernel.name, value.type.str());
    for (const AttrValue& attr : node.op->attr_values(node.attrs.get())) use += "|" + text_of(attr);
    const std::lock_guard lock(mutex_);
    auto& slot = packed_[Key{value.constant.get(), std::move(use)}];
    if (!slot) {
        const auto types = graph.operand_types(node);
        HR_ASSIGN(auto buffer, AlignedBuffer::allocate(kernel.packed_bytes(Operands(types), node.attrs.get()),
                                                       "packed weights"));
        const auto shape = value.type.sizes();
        kernel.pack({value.type.dtype, shape, value.constant->bytes.data(), value.type.format},
                    node.attrs.get(), buffer.data());
        slot = std::make_shared<const AlignedBuffer>(std::move(buffer));
        if (!pages_) pages_.emplace();
        pages_->give_back(value.constant->bytes);
    }
    return slot;
}

std::size_t PackedConstants::bytes() const {
    const std::lock_guard lock(mutex_);
    std::size_t total = 0;
    for (const auto& [key, buffer] : packed_)
        if (buffer) total += buffer->bytes();
    return total;
}

}  // namespace headrace
