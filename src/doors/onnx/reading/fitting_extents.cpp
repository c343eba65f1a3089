#include "doors/onnx/reading/fitting_extents.h"

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace headrace::onnx {
namespace {

using NamedExtents = std::map<std::string, std::int64_t>;

/// Each open extent with numbers for its names; none where that is no extent.
std::optional<TensorType> with_numbers(const TensorType& type, const NamedExtents& numbers) {
    TensorType closed = type;
    for (Dim& dim : closed.shape) {
        const auto extent = dim.number([&](const std::string& name) -> std::optional<Expression> {
            return Expression(numbers.at(name));
        });
        if (!extent || *extent < 0) return std::nullopt;
        dim = Dim(*extent);
    }
    return closed;
}

bool fits(const OpDef& op, const AttrBox& attrs, std::span<const TensorType* const> operands,
          const NamedExtents& numbers) {
    std::vector<TensorType> closed(operands.size());
    std::vector<const TensorType*> given(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
        if (!operands[i]) continue;
        auto type = with_numbers(*operands[i], numbers);
        if (!type) return false;
        closed[i] = *std::move(type);
        given[i] = &closed[i];
    }
    return check_and_infer(op, Operands(given), attrs.get()).ok();
}

/// The names of open extents, each with the first number to try; adds the known extents to `known`.
NamedExtents open_names(std::span<const TensorType* const> operands, std::int64_t first,
                        std::set<std::int64_t>& known) {
    NamedExtents names;
    for (const TensorType* type : operands) {
        if (!type) continue;
        for (const Dim& dim : type->shape) {
            if (!dim.is_symbolic()) known.insert(dim.size());
            static_cast<void>(dim.number([&](const std::string& name) -> std::optional<Expression> {
                names.emplace(name, first);
                return Expression(first);
            }));
        }
    }
    return names;
}

/// Tries numbers that operators ask for, and those that operands have elsewhere, for each name apart. Where
/// that is too much to try it is not known, and advice is better than none.
bool may_fit(const OpDef& op, const AttrBox& attrs, std::span<const TensorType* const> operands) {
    constexpr double kMostTrials = 4096;
    if (operands.size() < 2) return true;
    std::set<std::int64_t> candidates{1, 2, 3, 4};
    NamedExtents numbers = open_names(operands, 1, candidates);
    if (std::pow(candidates.size(), numbers.size()) > kMostTrials) return true;
    std::map<std::string, std::set<std::int64_t>::const_iterator> places;
    for (const auto& [name, number] : numbers) places[name] = candidates.begin();
    for (;;) {
        for (const auto& [name, place] : places) numbers[name] = *place;
        if (fits(op, attrs, operands, numbers)) return true;
        auto turning = places.begin();  // as an odometer does
        while (turning != places.end() && ++turning->second == candidates.end())
            (turning++)->second = candidates.begin();
        if (turning == places.end()) return false;
    }
}

}  // namespace

void refuse_operands(const OpDef& op, const AttrBox& attrs, std::span<const TensorType* const> operands,
                     const Error& error) {
    if (may_fit(op, attrs, operands)) throw Refused(error.message, Refused::kOtherwise, error.code);
    throw RefusedForAllExtents(error.message, Refused::kOtherwise, error.code);
}

}  // namespace headrace::onnx
