#include "ops/catalog.h"

#include <algorithm>
#include <vector>

#include "op_catalog_includes.inc"

namespace headrace {
namespace {

/// Built on first use, never from static constructors: a static library would drop those.
const std::vector<const OpDef*>& catalog() {
    static const std::vector<const OpDef*> sorted = [] {
        std::vector<const OpDef*> list;
        for (std::span<const OpDef> family : {
#include "op_catalog_rows.inc"
             })
            for (const OpDef& def : family) list.push_back(&def);
        std::sort(list.begin(), list.end(), [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
        return list;
    }();
    return sorted;
}

}  // namespace

std::span<const OpDef* const> all_ops() { return catalog(); }

const OpDef* find_op(std::string_view name) {
    const auto& list = catalog();
    const auto it = std::lower_bound(list.begin(), list.end(), name,
                                     [](const OpDef* def, std::string_view n) { return def->name < n; });
    return it != list.end() && (*it)->name == name ? *it : nullptr;
}

}  // namespace headrace
