// The public Parameters, and their way to JSON values and back.
#include "llm/parameters/named_values.h"

#include <algorithm>
#include <cmath>

#include "base/parameter_json.h"
#include "base/utf8.h"
#include "llm/parameters/json.h"

namespace headrace {
namespace llm {
namespace {

/// Says what keeps a value from being one of JSON; key: its name and those of the sections around it.
struct Check {
    std::string key;
    std::size_t depth;

    Check inside(const std::string& name) const { return {key.empty() ? name : key + "." + name, depth + 1}; }

    Status operator()(const Parameters& section) const {
        HR_TRY(check_depth());
        for (const auto& [name, value] : section.entries()) {
            if (find_invalid_utf8(name)) return invalid("the name of a parameter in '{}' is no UTF-8", key);
            HR_TRY(std::visit(inside(name), value));
        }
        return success();
    }
    Status operator()(const std::vector<ParameterValue>& list) const {
        HR_TRY(check_depth());
        for (std::size_t i = 0; i < list.size(); ++i)
            HR_TRY(std::visit(Check{fmt::format("{}[{}]", key, i), depth + 1}, list[i]));
        return success();
    }
    Status operator()(double number) const {
        if (std::isfinite(number)) return success();
        return invalid("'{}' is {}; it must be a finite number", key, number).of_parameter(key);
    }
    Status operator()(const std::string& text) const {
        const auto broken = find_invalid_utf8(text);
        if (!broken) return success();
        return invalid("'{}': byte {} is 0x{:02x}, which is no UTF-8", key, *broken,
                       static_cast<unsigned char>(text[*broken]))
            .of_parameter(key);
    }
    Status operator()(const auto&) const { return success(); }

private:
    Status check_depth() const {
        if (depth < kMaxJsonDepth) return success();
        return invalid("'{:.60}': lists and sections are nested deeper than {}", key, kMaxJsonDepth)
            .of_parameter(key);
    }
};

}  // namespace

Result<Json> checked_json_of(const Parameters& parameters) {
    HR_TRY((Check{"", 0}(parameters)));
    return json_object_of<Json>(parameters);
}

Parameters parameters_of(const Json& object) { return std::get<Parameters>(parameter_of(object)); }

}  // namespace llm

Parameters::Parameters() = default;
Parameters::Parameters(std::initializer_list<Entry> entries) {
    for (const auto& [name, value] : entries) set(name, value);
}
Parameters::Parameters(const Parameters&) = default;
Parameters::Parameters(Parameters&&) noexcept = default;
Parameters& Parameters::operator=(const Parameters&) = default;
Parameters& Parameters::operator=(Parameters&&) noexcept = default;
Parameters::~Parameters() = default;

Parameters Parameters::from_json(std::string_view text) {
    return llm::parameters_of(value_or_throw(llm::parse_object(text)));
}

ParameterValue ParameterValue::from_json(std::string_view text) {
    return parameter_of(value_or_throw(llm::parse_json(text, "the value is not valid JSON")));
}

std::string Parameters::to_json(int indent) const {
    return json_object_of<llm::Json>(*this).dump(indent, ' ', false, llm::Json::error_handler_t::replace);
}

void Parameters::set(std::string name, ParameterValue value) {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.first == name; });
    if (found != entries_.end())
        found->second = std::move(value);
    else
        entries_.emplace_back(std::move(name), std::move(value));
}

bool Parameters::erase(std::string_view name) {
    return std::erase_if(entries_, [&](const Entry& entry) { return entry.first == name; }) > 0;
}

const ParameterValue* Parameters::find(std::string_view name) const {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.first == name; });
    return found == entries_.end() ? nullptr : &found->second;
}

std::vector<Parameters::Entry> Parameters::entries() && { return std::move(entries_); }

bool Parameters::empty() const { return entries_.empty(); }

bool Parameters::operator==(const Parameters& other) const { return entries_ == other.entries_; }

}  // namespace headrace
