#include "held_model.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace headrace::python {
namespace {

struct Models {
    std::mutex mutex;
    std::vector<std::weak_ptr<LanguageModel>> shared;

    static Models& all() {
        static Models* const only = new Models;  // threads may use it until the process is gone
        return *only;
    }
};

}  // namespace

SharedModel share(LanguageModel model) {
    auto shared = std::make_shared<LanguageModel>(std::move(model));
    const std::lock_guard lock(Models::all().mutex);
    std::erase_if(Models::all().shared, [](const auto& other) { return other.expired(); });
    Models::all().shared.push_back(shared);
    return shared;
}

void cancel_all_requests() {
    std::vector<std::weak_ptr<LanguageModel>> models;
    {
        const std::lock_guard lock(Models::all().mutex);
        models = Models::all().shared;
    }
    for (const auto& weak : models)
        if (const SharedModel model = weak.lock()) model->cancel_all();
}

}  // namespace headrace::python
