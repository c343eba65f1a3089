#include "plan/shared_forms.h"

#include <algorithm>

namespace headrace {

SharedForms& SharedForms::all() {
    static auto* const forms = new SharedForms();  // never destroyed: executables end when they like
    return *forms;
}

SharedForms::Form SharedForms::find(const Constant& constant, const std::string& kernel) {
    const std::lock_guard lock(mutex_);
    const auto at = forms_.find(Key{constant.bytes.data(), constant.bytes.size(), kernel});
    return at == forms_.end() ? nullptr : at->second.lock();
}

void SharedForms::add(const Constant& constant, const std::string& kernel, const Form& form) {
    const std::lock_guard lock(mutex_);
    forms_[Key{constant.bytes.data(), constant.bytes.size(), kernel}] = form;
    if (forms_.size() < most_) return;
    std::erase_if(forms_, [](const auto& entry) { return entry.second.expired(); });
    most_ = std::max<std::size_t>(64, 2 * forms_.size());
}

}  // namespace headrace
