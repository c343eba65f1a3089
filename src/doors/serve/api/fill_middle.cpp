#include "doors/serve/api/fill_middle.h"

namespace headrace::serve {

bool can_fill_middle(const ModelInfo& info) {
    return info.fill_prefix >= 0 && info.fill_suffix >= 0 && info.fill_middle >= 0;
}

std::vector<std::int32_t> gap_tokens(ServedModel& model, const Gap& gap, bool suffix_first) {
    const ModelInfo& info = model.info();
    std::vector<std::int32_t> all = gap.before;
    const auto add = [&](const std::vector<std::int32_t>& tokens) {
        all.insert(all.end(), tokens.begin(), tokens.end());
    };
    const auto add_prefix = [&] {
        all.push_back(info.fill_prefix);
        add(gap.prefix);
    };
    // What begins a text comes behind the other files, as in llama-server.
    add(model.engine().tokenize("", true, false));
    if (!suffix_first) add_prefix();
    all.push_back(info.fill_suffix);
    add(gap.suffix);
    if (suffix_first) add_prefix();
    all.push_back(info.fill_middle);
    return all;
}

}  // namespace headrace::serve
