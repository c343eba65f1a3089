#include "plan/packed_constants.h"

#include "base/aligned_buffer.h"

namespace headrace {

void PackedConstants::use_cache(const Graph& graph, const std::string& folder) {
    const std::lock_guard lock(mutex_);
    cache_.emplace(graph, folder);
}

Result<std::shared_ptr<const std::byte>> PackedConstants::get(const Graph& graph, const Node& node,
                                                              const KernelDef& kernel) {
    const Value& value = graph.value(node.inputs[kernel.packed_operand]);
    // The same bytes may be used with another shape or other attributes (transposed), hence both in the key.
    std::string use = fmt::format("{}|{}", kernel.name, value.type.str());
    for (const AttrValue& attr : node.op->attr_values(node.attrs.get())) use += "|" + text_of(attr);
    const std::lock_guard lock(mutex_);
    const Key key{value.constant.get(), std::move(use)};
    Form& form = packed_[key];
    if (!form.data) HR_TRY(fill(form, key, graph, node, kernel));
    return form.data;
}

Status PackedConstants::fill(Form& form, const Key& key, const Graph& graph, const Node& node,
                             const KernelDef& kernel) {
    const auto types = graph.operand_types(node);
    const std::size_t bytes = kernel.packed_bytes(Operands(types), node.attrs.get());
    if (cache_) form.data = cache_->find(cache_->name_of(key.first, key.second), bytes);
    form.is_mapped = form.data != nullptr;
    form.bytes = bytes;
    if (form.is_mapped) return success();
    const Value& value = graph.value(node.inputs[kernel.packed_operand]);
    HR_ASSIGN(auto buffer, AlignedBuffer::allocate(bytes, "packed weights"));
    const auto shape = value.type.sizes();
    kernel.pack({value.type.dtype, shape, value.constant->bytes.data(), value.type.format}, node.attrs.get(),
                buffer.data());
    const auto owner = std::make_shared<const AlignedBuffer>(std::move(buffer));
    form.data = {owner, owner->data()};
    is_kept_ = false;
    if (!pages_) pages_.emplace();
    pages_->give_back(value.constant->bytes);
    return success();
}

void PackedConstants::keep() {
    const std::lock_guard lock(mutex_);
    if (!cache_ || is_kept_) return;
    std::map<ContentHash, std::span<const std::byte>> forms;
    for (const auto& [key, form] : packed_)
        if (form.data) forms[cache_->name_of(key.first, key.second)] = {form.data.get(), form.bytes};
    cache_->keep(forms);
    is_kept_ = true;
}

std::size_t PackedConstants::bytes() const {
    const std::lock_guard lock(mutex_);
    std::size_t total = 0;
    for (const auto& [key, form] : packed_) total += form.data ? form.bytes : 0;
    return total;
}

std::size_t PackedConstants::mapped_bytes() const {
    const std::lock_guard lock(mutex_);
    std::size_t total = 0;
    for (const auto& [key, form] : packed_) total += form.is_mapped ? form.bytes : 0;
    return total;
}

}  // namespace headrace
