#include "doors/serve/options/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "headrace/error.h"

namespace headrace::serve {
namespace {

constexpr std::string_view kConfig = "--config", kEnvironment = "the environment's ";

bool has_word(std::string_view list, std::string_view word) {
    const auto all = words(list);
    return std::ranges::find(all, word) != all.end();
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
    return text;
}

/// What a flag's value is called, in brackets.
std::string value_name(std::string_view name) {
    const auto found = find_flag(name);
    return found && !found->flag->value.empty() ? fmt::format(" ({})", found->flag->value) : "";
}

/// LLAMA_ARG_NO_MMAP of LLAMA_ARG_MMAP.
std::string negative_variable(std::string_view variable) {
    constexpr std::string_view kBegin = "LLAMA_ARG_";
    if (!variable.starts_with(kBegin)) return {};
    return fmt::format("{}NO_{}", kBegin, variable.substr(kBegin.size()));
}

}  // namespace

std::string spelled(std::string name) {
    if (name.starts_with("--")) std::ranges::replace(name, '_', '-');
    return name;
}

std::optional<FoundFlag> find_flag(std::string_view name) {
    for (const Flag& flag : flags()) {
        if (has_word(flag.names, name)) return FoundFlag{&flag, false};
        if (has_word(flag.negative, name)) return FoundFlag{&flag, true};
    }
    return std::nullopt;
}

Error unknown_option(std::string_view name, std::string_view where) {
    const std::string near = near_name(name, flag_names(false));
    return invalid("{}'{:.80}' is no option of `headrace serve`{}; --help lists them", where, name,
                   near.empty() ? std::string() : fmt::format("; did you mean '{}'?", near));
}

Result<std::string> switch_value(std::string_view text) {
    for (std::string_view on : {"true", "1", "on", "enabled", "yes"})
        if (text == on) return std::string("true");
    for (std::string_view off : {"false", "0", "off", "disabled", "no"})
        if (text == off) return std::string("false");
    return invalid("'{:.40}' must be true or false", text);
}

Result<std::vector<OptionSection>> option_sections(const std::string& path) {
    std::ifstream file(path);
    if (!file) return failure(Code::not_found, "'{}' cannot be read", path);
    std::vector<OptionSection> sections(1);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
        const std::string_view text = trimmed(line);
        if (text.empty() || text.front() == '#' || text.front() == ';') continue;
        if (text.front() == '[') {
            const auto end = text.rfind(']');
            const std::string_view name = trimmed(text.substr(1, std::min(end, text.size()) - 1));
            if (end == std::string_view::npos || name.empty())
                return invalid("{}, line {}: '{:.80}' must be a name in brackets: [qwen3-8b]",
                               std::filesystem::path(path).filename().string(), number, text);
            sections.push_back({.name = std::string(name), .lines = {}, .number = number});
            continue;
        }
        const auto equals = text.find('=');
        sections.back().lines.push_back(
            {.number = number,
             .name = std::string(trimmed(text.substr(0, equals))),
             .value = equals == std::string_view::npos
                          ? std::nullopt
                          : std::optional<std::string>(trimmed(text.substr(equals + 1)))});
    }
    return sections;
}

Status OptionReader::read_lines(const std::vector<OptionLine>& lines, const std::string& file) {
    for (const OptionLine& line : lines) {
        const std::string where = fmt::format("{}, line {}: ", file, line.number);
        const std::string& key = line.name;
        if (key == "version") continue;
        std::optional<FoundFlag> found = find_flag(spelled("--" + key));
        if (!found) found = find_flag("-" + key);
        for (const Flag& flag : flags())
            if (!found && !flag.variable.empty() && flag.variable == key) found = FoundFlag{&flag, false};
        if (!found) return unknown_option("--" + key, where);
        if (is_taken(*found->flag)) continue;
        const std::string_view kind = found->flag->value;
        const bool is_empty_path = line.value == "" && (kind == "FILE" || kind == "FOLDER");
        if (!kind.empty() && (!line.value || is_empty_path))
            return invalid("{}{} needs a value: {} = {}", where, key, key, kind);
        std::string value = line.value.value_or("true");
        if (found->flag->value.empty()) {
            const Result<std::string> read = switch_value(value);
            if (!read.ok()) return read.error().within(where + key);
            value = found->is_negative ? (read.value() == "true" ? "false" : "true") : read.value();
        }
        HR_TRY(take(*found->flag, key, value, where));
    }
    return success();
}

Status OptionReader::read_file(const std::string& path) {
    Result<std::vector<OptionSection>> sections = option_sections(path);
    if (!sections.ok()) return sections.error().within("--config");
    const std::string name = std::filesystem::path(path).filename().string();
    if (sections.value().size() > 1)
        return invalid(
            "--config: {} has the section [{}], and this file's lines are all of one server; "
            "--models-preset takes a file with a section for each model",
            name, sections.value()[1].name);
    return read_lines(sections.value().front().lines, name);
}

Status OptionReader::take(const Flag& flag, const std::string& name, const std::string& value,
                          const std::string& where) {
    if (skips_ && skips_(flag)) return success();
    switch (flag.kind) {
        case FlagKind::is_refused:
            // The flag switches off a feature that this server lacks anyway.
            if (flag.value.empty() && value == "false") return success();
            return unsupported("{}{} is llama-server's: {}", where, name, flag.summary);
        case FlagKind::is_ignored: note(flag, name, where); return success();
        default: break;
    }
    const Status status = flag.apply ? flag.apply(options_, value) : set_parameter(flag, value);
    return status.ok() ? success() : Status(status.error().within(where + name));
}

/// Variables that are not llama-server's alone, as HF_TOKEN, are set for other programs.
void OptionReader::note(const Flag& flag, const std::string& name, const std::string& where) {
    if (where == kEnvironment && !name.starts_with("LLAMA_")) return;
    options_.notes.push_back(fmt::format("{}{} has no effect: {}", where, name, flag.summary));
}

Status OptionReader::set_parameter(const Flag& flag, const std::string& value) {
    const std::string parameter(flag.parameter);
    if (flag.kind == FlagKind::a_list) {
        std::vector<ParameterValue> all;
        std::istringstream stream(value);
        for (std::string part; std::getline(stream, part, ',');) all.emplace_back(part);
        options_.parameters.set(parameter, std::move(all));
        return success();
    }
    const bool is_word = flag.kind == FlagKind::a_count && value.find_first_of("0123456789") == value.npos;
    if (flag.kind == FlagKind::a_text || is_word) return options_.parameters.set(parameter, value), success();
    try {
        ParameterValue read = ParameterValue::from_json(value);
        const bool is_number =
            std::holds_alternative<std::int64_t>(read) || std::holds_alternative<double>(read);
        if (flag.kind != FlagKind::some_json && flag.kind != FlagKind::a_switch && !is_number)
            return invalid("'{}' must be a number", value);
        options_.parameters.set(parameter, std::move(read));
        return success();
    } catch (const Exception&) {
        return invalid("'{}' must be {}", value, flag.kind == FlagKind::some_json ? "JSON" : "a number");
    }
}

Status OptionReader::read_arguments(std::span<const std::string> arguments, std::string& config) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        std::string name = arguments[i];
        std::optional<std::string> value;
        if (!name.starts_with('-')) {
            if (i > 0 && name.ends_with(".gguf"))
                return invalid(
                    "'{:.80}' is a second model, and one is served; --models-dir FOLDER serves several",
                    name);
            if (i > 0) return invalid("'{:.80}' is no option; options begin with - or --", name);
            value = std::exchange(name, "--model");  // headrace serve model.gguf
        } else if (const auto equals = name.find('=');
                   name.starts_with("--") && equals != std::string::npos) {
            value = name.substr(equals + 1);
            name.resize(equals);
        }
        name = spelled(name);
        const auto next = [&]() -> Result<std::string> {
            if (value) return *value;
            const std::string shown = value_name(name);
            if (i + 1 == arguments.size()) return invalid("{} needs a value{}", name, shown);
            const std::string& behind = arguments[i + 1];
            if (behind.starts_with("--") && find_flag(spelled(behind)))
                return invalid("{} needs a value{}, not the option {}", name, shown, behind);
            return arguments[++i];
        };
        if (name == kConfig) {
            HR_ASSIGN(config, next());
            continue;
        }
        const std::optional<FoundFlag> found = find_flag(name);
        if (!found) return unknown_option(name, "");
        is_taken(*found->flag);
        std::string text = found->is_negative ? "false" : "true";
        if (!found->flag->value.empty() && !found->is_negative) {
            HR_ASSIGN(text, next());
        } else if (value) {
            return invalid("{} takes no value", name);
        }
        HR_TRY(take(*found->flag, name, text, ""));
    }
    return success();
}

Status OptionReader::read_environment(const std::map<std::string, std::string>& environment) {
    for (const Flag& flag : flags()) {
        auto variable = environment.find(std::string(flag.variable));
        std::string value = variable == environment.end() ? "" : variable->second;
        if (variable == environment.end() && !flag.negative.empty()) {
            variable = environment.find(negative_variable(flag.variable));
            value = "false";  // whatever its value is, as in llama-server
        }
        if (flag.variable.empty() || variable == environment.end() || is_taken(flag)) continue;
        const std::string where(kEnvironment);
        if (flag.value.empty()) {
            const Result<std::string> read = switch_value(value);
            if (!read.ok()) return read.error().within(where + variable->first);
            value = read.value();
        }
        HR_TRY(take(flag, variable->first, value, where));
    }
    return success();
}

}  // namespace headrace::serve
