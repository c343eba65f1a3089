#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace headrace::cli {

/// The value that `share` of the sorted values, of which there is at least one, lie below.
inline double percentile(std::vector<double> values, double share) {
    const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size()));
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(std::min(values.size() - 1, at));
    std::nth_element(values.begin(), place, values.end());
    return *place;
}

inline double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

}  // namespace headrace::cli
