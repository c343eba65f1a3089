#include "ir/shared_forms.h"

#include <algorithm>
#include <array>

#include "base/content_hash.h"
#include "ir/constant.h"

namespace headrace {

SharedForms& SharedForms::all() {
    static auto* const forms = new SharedForms();  // never destroyed: executables end when they like
    return *forms;
}

bool SharedForms::Entry::is_of(Sources sources) const {
    for (std::size_t i = 0; i < owners.size(); ++i) {
        const auto& owner = sources[i]->owner;
        if (owners[i].expired() || owners[i].owner_before(owner) || owner.owner_before(owners[i]))
            return false;
    }
    return true;
}

std::optional<SharedForms::Key> SharedForms::key_of(Sources sources, std::string_view what) {
    Key key{{}, std::string(what)};
    for (const Constant* source : sources) {
        if (!source->owner) return std::nullopt;
        key.first.push_back(source->bytes.data());
        key.second += fmt::format("|{}", source->bytes.size());
        if (source->factors) {
            const ContentHash hash = source->factors->hash();
            key.second += fmt::format(" times {:x} {:x}", hash.low, hash.high);
        }
    }
    return key;
}

SharedForms::Form SharedForms::find(Sources sources, std::string_view what) {
    const auto key = key_of(sources, what);
    return key ? find(*key, sources) : nullptr;
}

SharedForms::Form SharedForms::add(Sources sources, std::string_view what, Form form) {
    const auto key = key_of(sources, what);
    return key ? add(*key, sources, std::move(form)) : form;
}

SharedForms::Form SharedForms::find(const Key& key, Sources sources) {
    const std::lock_guard lock(mutex_);
    const auto at = forms_.find(key);
    return at == forms_.end() || !at->second.is_of(sources) ? nullptr : at->second.form.lock();
}

SharedForms::Form SharedForms::add(const Key& key, Sources sources, Form form) {
    const std::lock_guard lock(mutex_);
    Entry& entry = forms_[key];
    if (!entry.owners.empty() && entry.is_of(sources))
        if (Form theirs = entry.form.lock()) return theirs;
    entry = {form, {}};
    for (const Constant* source : sources) entry.owners.emplace_back(source->owner);
    if (forms_.size() < most_) return form;
    std::erase_if(forms_, [](const auto& one) { return one.second.form.expired(); });
    most_ = std::max<std::size_t>(64, 2 * forms_.size());
    return form;
}

Result<SharedForms::Form> SharedForms::aligned(const Constant& constant, const FilePages* pages) {
    const std::array<const Constant*, 1> sources{&constant};
    return get(sources, "aligned", [&] { return aligned_copy(constant, pages); });
}

}  // namespace headrace
