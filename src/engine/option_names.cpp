#include "headrace/option_names.h"

#include <array>
#include <utility>

namespace headrace {
namespace {

template <class Option>
using OptionName = std::pair<Option, std::string_view>;

constexpr std::array kPrecisions = {OptionName<Precision>(Precision::exact, "exact"),
                                    OptionName<Precision>(Precision::fast, "fast")};
constexpr std::array kMemoryUses = {OptionName<MemoryUse>(MemoryUse::normal, "normal"),
                                    OptionName<MemoryUse>(MemoryUse::low, "low")};
constexpr std::array kWeightFormats = {OptionName<WeightFormat>(WeightFormat::as_given, "as-given"),
                                       OptionName<WeightFormat>(WeightFormat::q8_0, "q8_0"),
                                       OptionName<WeightFormat>(WeightFormat::q4_0, "q4_0")};

template <class Option, std::size_t N>
std::optional<Option> find_option(const std::array<OptionName<Option>, N>& names, std::string_view name) {
    for (const auto& [option, known] : names)
        if (known == name) return option;
    return std::nullopt;
}

}  // namespace

std::optional<Precision> find_precision(std::string_view name) { return find_option(kPrecisions, name); }
std::optional<MemoryUse> find_memory_use(std::string_view name) { return find_option(kMemoryUses, name); }
std::optional<WeightFormat> find_weight_format(std::string_view name) {
    return find_option(kWeightFormats, name);
}

std::string_view name_of(WeightFormat format) {
    for (const auto& [option, name] : kWeightFormats)
        if (option == format) return name;
    return {};
}

}  // namespace headrace
