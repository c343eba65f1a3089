#include "plan/packed_constants.h"

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/parallel.h"
#include "ir/constant.h"
#include "ir/packed_growth.h"
#include "ir/shared_forms.h"

namespace headrace {
void PackedConstants::use_cache(const Graph& graph, const std::string& folder, int threads) {
    const std::lock_guard lock(mutex_);
    cache_.emplace(graph, folder, threads, pages_);
}

/// The same bytes may be used with another shape or other attributes (transposed), hence both in the key.
PackedConstants::Key PackedConstants::key_of(const Graph& graph, const Use& use) {
    const Value& value = graph.value(use.node->inputs[use.kernel->packed_operand]);
    std::string text = fmt::format("{}|{}", use.kernel->name, value.type.str());
    for (const AttrValue& attr : use.node->op->attr_values(use.node->attrs.get()))
        text += "|" + text_of(attr);
    return {value.constant.get(), std::move(text)};
}

Result<std::shared_ptr<const std::byte>> PackedConstants::get(const Graph& graph, const Node& node,
                                                              const KernelDef& kernel) {
    const Use use{&node, &kernel};
    const std::lock_guard lock(mutex_);
    const Key key = key_of(graph, use);
    Form& form = packed_[key];
    if (!form.data) {
        HR_TRY(fill(form, {&key, name_of(key)}, graph, use));
    }
    return form.data;
}

void PackedConstants::prepare(const Graph& graph, std::span<const Use> uses, int threads) {
    const std::lock_guard lock(mutex_);
    struct Missing {
        Form* form;
        Names names;
        Use use;
    };
    std::vector<Missing> missing;
    for (const Use& use : uses) {
        const auto [at, is_new] = packed_.try_emplace(key_of(graph, use));
        if (is_new) missing.push_back({&at->second, {&at->first, name_of(at->first)}, use});
    }
    if (missing.empty()) return;
    // The largest first, while there is little else: some are copied to be packed.
    const auto bytes_of = [&](const Missing& m) {
        return graph.value(m.use.node->inputs[m.use.kernel->packed_operand]).type.bytes();
    };
    std::ranges::sort(missing, std::greater(), bytes_of);
    constexpr std::size_t kWorthThreads = std::size_t{1} << 20;
    std::size_t total = 0;
    for (const Missing& m : missing) total += bytes_of(m);
    if (total < kWorthThreads) threads = 1;
    for_each_index(missing.size(), threads, [&](std::size_t i) {
        // A form that fails stays without data; get() tries again and has the error.
        static_cast<void>(fill(*missing[i].form, missing[i].names, graph, missing[i].use).ok());
    });
}

ContentHash PackedConstants::name_of(const Key& key) {
    return cache_ ? cache_->name_of(key.first, key.second) : ContentHash();
}

/// Several threads fill forms at the same time.
Status PackedConstants::fill(Form& form, const Names& names, const Graph& graph, const Use& use) {
    const auto types = graph.operand_types(*use.node);
    const void* attrs = use.node->attrs.get();
    form.bytes = use.kernel->packed_bytes(Operands(types), attrs);
    if (cache_) form.data = cache_->find(names.kept, form.bytes);
    form.is_mapped = form.data != nullptr;
    form.has_grown = grows_weights(*use.kernel, Operands(types), attrs);
    if (form.is_mapped) return success();
    is_kept_ = false;
    const Value& value = graph.value(use.node->inputs[use.kernel->packed_operand]);
    const std::array<const Constant*, 1> sources{value.constant.get()};
    const auto pack = [&] { return packed(value, *use.kernel, attrs, form.bytes); };
    HR_ASSIGN(form.data, SharedForms::all().get(sources, names.key->second, pack));
    return success();
}

Result<SharedForms::Form> PackedConstants::packed(const Value& value, const KernelDef& kernel,
                                                  const void* attrs, std::size_t bytes) const {
    const Constant& constant = *value.constant;
    HR_ASSIGN(auto buffer, AlignedBuffer::allocate(bytes, "packed weights"));
    AlignedBytes aligned;
    const auto shape = value.type.sizes();
    ConstView plain{value.type.dtype,  shape,   constant.bytes.data(),
                    value.type.format, &pages_, constant.factors.get()};
    if (!kernel.packs_in_one_pass) {
        HR_ASSIGN(aligned, AlignedBytes::of(constant, &pages_));
        plain.data = aligned.data();
        plain.factors = nullptr;  // AlignedBytes has multiplied
    }
    kernel.pack(plain, attrs, buffer.data());
    pages_.give_back(constant.bytes);
    return shared_bytes(std::move(buffer));
}

Result<SharedForms::Form> PackedConstants::aligned(const Constant& constant) {
    const std::lock_guard lock(mutex_);
    auto& found = aligned_[&constant];
    if (found) return found;
    HR_ASSIGN(found, SharedForms::all().aligned(constant, &pages_));
    return found;
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
    return bytes_where([](const Form& form) { return form.data != nullptr; });
}

std::size_t PackedConstants::mapped_bytes() const {
    return bytes_where([](const Form& form) { return form.is_mapped; });
}

std::size_t PackedConstants::aligned_bytes() const {
    const std::lock_guard lock(mutex_);
    std::size_t total = 0;
    for (const auto& [constant, copy] : aligned_)
        total += copy && constant->mapped ? constant->bytes.size() : 0;
    return total;
}

std::size_t PackedConstants::grown_bytes() const {
    return bytes_where([](const Form& form) { return form.data && form.has_grown; });
}

}  // namespace headrace
