#pragma once
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace headrace {

/// Each behind those of `after`, its members' names; where several could be next, the first by name. `kind`
/// is what errors call an item. Errors: one that follows one that is not among them, or itself.
template <class Item>
Result<std::vector<Item>> ordered(std::vector<Item> items, std::string_view kind) {
    for (const Item& item : items)
        for (const std::string_view name : item.after)
            if (std::ranges::find(items, name, &Item::name) == items.end())
                return invalid("{} follows the {} '{}', which there is not", item.name, kind, name);
    const auto waits = [&](const Item& item) {  // whether another has yet to come before it
        return std::ranges::any_of(items, [&](const Item& other) {
            return std::ranges::find(item.after, other.name) != item.after.end();
        });
    };
    std::ranges::sort(items, {}, &Item::name);
    std::vector<Item> result;
    while (!items.empty()) {
        const auto next = std::ranges::find_if_not(items, waits);
        if (next == items.end())
            return invalid("the {} {} follows itself, by way of others", kind, items.front().name);
        result.push_back(std::move(*next));
        items.erase(next);
    }
    return result;
}

}  // namespace headrace
