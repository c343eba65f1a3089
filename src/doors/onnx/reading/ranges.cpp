#include "doors/onnx/reading/ranges.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace headrace::onnx {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 24;

/// Whether an expression may fall where its symbol grows: by a minus before all but a number alone,
/// remainders, and quotients by what is no number.
bool may_fall(const std::string& text) {
    const auto after_spaces = [&](std::size_t at) {
        while (at < text.size() && text[at] == ' ') ++at;
        return at;
    };
    const auto is_digit = [&](std::size_t at) {
        return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%' || text.compare(i, 3, "Mod") == 0) return true;
        if (text[i] == '/' && i + 1 < text.size() && text[i + 1] == '/' && !is_digit(after_spaces(i + 2)))
            return true;
        if (text[i] != '-') continue;
        std::size_t at = after_spaces(i + 1);
        if (!is_digit(at)) return true;
        while (is_digit(at)) ++at;
        at = after_spaces(at);
        if (at < text.size() && text[at] == '*') return true;
    }
    // Calls and signs of which nothing is known.
    return std::ranges::any_of(text, [](unsigned char c) {
        return std::isalnum(c) == 0 &&
               std::string_view("_ ()+*/,-").find(static_cast<char>(c)) == std::string::npos;
    });
}

/// The symbol's least value for which a growing expression is as large; none where that is not found.
std::optional<std::int64_t> least_symbol(const Dim& d, const std::string& symbol, std::int64_t wanted) {
    const auto is_enough = [&](std::int64_t value) {
        const auto found = d.number([&](const std::string& name) {
            return name == symbol ? std::optional(Expression(value)) : std::nullopt;
        });
        return found && *found >= wanted;
    };
    std::int64_t low = 1, high = 1;
    if (is_enough(low)) return std::nullopt;
    while (!is_enough(high)) {
        low = high;
        high *= 2;
        if (high > kLargest) return std::nullopt;
    }
    while (high - low > 1) {
        const std::int64_t middle = (low + high) / 2;
        (is_enough(middle) ? high : low) = middle;
    }
    return high;
}

}  // namespace

void Ranges::learn(const Shape& extents) {
    for (const Dim& d : extents) {
        if (!d.is_symbolic() || d.min_size() < 1) continue;
        const auto names = d.expression().names();
        if (std::ranges::find(names, d.text()) == names.end()) needs(d, d.min_size());
    }
}

void Ranges::needs(const Dim& extent, std::int64_t least) {
    if (!extent.is_symbolic() || !learned_.emplace(extent.text(), least).second) return;
    const auto names = extent.expression().names();
    if (names.size() != 1 || may_fall(extent.text())) return;
    const auto symbol = least_symbol(extent, names[0], least);
    if (!symbol) return;
    auto& known = least_.try_emplace(names[0], 1).first->second;
    if (*symbol <= known) return;
    known = *symbol;
    known_.clear();
}

Dim Ranges::narrowed(const Dim& extent) const {
    if (least_.empty() || !extent.is_symbolic()) return extent;
    const auto [at, is_new] = known_.try_emplace(extent.text(), extent);
    if (is_new)
        at->second = extent.with_ranges([&](const std::string& name) -> std::optional<Range> {
            const auto found = least_.find(name);
            if (found == least_.end() || found->second <= 1) return std::nullopt;
            return Range{found->second, INT64_MAX};
        });
    return at->second;
}

Shape Ranges::narrowed(Shape shape) const {
    if (!least_.empty())
        for (Dim& d : shape) d = narrowed(d);
    return shape;
}

}  // namespace headrace::onnx
