#include "doors/onnx/reading/unreadable.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/utf8.h"
#include "doors/onnx/reading/fitting_extents.h"

namespace headrace::onnx {

Unreadable Unreadable::at(std::string_view title, const OpWriter& g, const Node& node, const Scope& scope,
                          const Refused& why) {
    const bool is_open = !dynamic_cast<const RefusedForAllExtents*>(&why) &&
                         std::ranges::any_of(node.inputs, [&](const Operand& x) {
                             return x && !x->is_known() && g.is_open(x);
                         });
    std::string remedy = why.remedy();
    if (is_open && !g.dimensions.empty() && remedy.find("dimensions={") == std::string::npos) {
        std::vector<std::string> fixes;
        for (const std::string& name : g.dimensions) fixes.push_back(fmt::format("'{}': 1", name));
        remedy = fmt::format("Fixing dimensions may help: dimensions={{{}}} (--dimension NAME=N). {}",
                             fmt::join(fixes, ", "), remedy);
    }
    return Unreadable(
        {why.code(), fmt::format("{}: {}{}: {}. {}", title, node.title(), scope.where, why.what(), remedy)});
}

Unreadable Unreadable::with(const OnnxOptions& given) const {
    std::vector<std::string> names;
    for (const auto& [name, size] : given.dimensions) names.push_back(name);
    for (const auto& [name, form] : given.forms) names.push_back(name);
    if (names.empty()) return *this;
    return Unreadable(
        {error_.code, fmt::format("{}. It was read with the dimensions given for {}; others may fit",
                                  error_.message, fmt::join(names, ", "))});
}

std::string valid_text(Bytes bytes) { return valid_utf8(bytes); }

}  // namespace headrace::onnx
