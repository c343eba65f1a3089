#include <algorithm>
#include <tuple>

#include "doors/onnx/reading/operators.h"

#include "onnx_operator_includes.inc"

namespace headrace::onnx {
namespace {

auto place_of(const Operator* o) { return std::tuple(o->domain, o->name); }

std::vector<const Operator*> sorted_operators() {
    std::vector<const Operator*> all;
    for (const std::span<const Operator> family : {
#include "onnx_operator_rows.inc"
         })
        for (const Operator& o : family) all.push_back(&o);
    std::ranges::sort(all, {}, &place_of);
    return all;
}

}  // namespace

std::span<const Operator* const> all_operators() {
    static const std::vector<const Operator*> kAll = sorted_operators();
    return kAll;
}

const Operator* find_operator(std::string_view domain, std::string_view name) {
    const auto all = all_operators();
    const auto at = std::ranges::lower_bound(all, std::tuple(domain, name), {}, &place_of);
    return at != all.end() && place_of(*at) == std::tuple(domain, name) ? *at : nullptr;
}

}  // namespace headrace::onnx
