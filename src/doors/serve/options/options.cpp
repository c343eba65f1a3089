#include "doors/serve/options/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "doors/serve/options/flag_values.h"
#include "doors/serve/options/flags.h"

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

/// Long flags may be spelled with underscores.
std::string spelled(std::string name) {
    if (name.starts_with("--")) std::ranges::replace(name, '_', '-');
    return name;
}

struct Found {
    const Flag* flag;
    bool is_negative;
};

std::optional<Found> find_flag(std::string_view name) {
    for (const Flag& flag : flags()) {
        if (has_word(flag.names, name)) return Found{&flag, false};
        if (has_word(flag.negative, name)) return Found{&flag, true};
    }
    return std::nullopt;
}

Error unknown(std::string_view name, std::string_view where) {
    const std::string near = near_name(name, flag_names(false));
    return invalid("{}'{:.80}' is no option of `headrace serve`{}; --help lists them", where, name,
                   near.empty() ? std::string() : fmt::format("; did you mean '{}'?", near));
}

/// What the flags that were read so far leave to those of lesser rank.
class Reader {
public:
    explicit Reader(ServeOptions& options) : options_(options) {}

    /// where: for errors, "the environment's LLAMA_ARG_PORT: ", or nothing for an argument.
    Status take(const Flag& flag, const std::string& name, const std::string& value,
                const std::string& where) {
        switch (flag.kind) {
            case FlagKind::is_refused:
                // What it turns off is not here.
                if (flag.value.empty() && value == "false") return success();
                return unsupported("{}{} is llama-server's: {}", where, name, flag.summary);
            case FlagKind::is_ignored: note(flag, name, where); return success();
            default: break;
        }
        const Status status = flag.apply ? flag.apply(options_, value) : set_parameter(flag, value);
        return status.ok() ? success() : Status(status.error().within(where + name));
    }

    /// A rank's own flags may come several times; those of a lesser rank do not count then.
    void begin_rank() { taken_.insert(this_rank_.begin(), this_rank_.end()); }
    bool is_taken(const Flag& flag) {
        this_rank_.insert(&flag);
        return taken_.contains(&flag);
    }

private:
    /// Variables that are not llama-server's alone, as HF_TOKEN, are set for other programs.
    void note(const Flag& flag, const std::string& name, const std::string& where) {
        if (where == kEnvironment && !name.starts_with("LLAMA_")) return;
        options_.notes.push_back(fmt::format("{}{} has no effect: {}", where, name, flag.summary));
    }

    Status set_parameter(const Flag& flag, const std::string& value) {
        const std::string parameter(flag.parameter);
        if (flag.kind == FlagKind::a_list) {
            std::vector<ParameterValue> all;
            std::istringstream stream(value);
            for (std::string part; std::getline(stream, part, ',');) all.emplace_back(part);
            options_.parameters.set(parameter, std::move(all));
            return success();
        }
        const bool is_word =
            flag.kind == FlagKind::a_count && value.find_first_of("0123456789") == value.npos;
        if (flag.kind == FlagKind::a_text || is_word)
            return options_.parameters.set(parameter, value), success();
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

    ServeOptions& options_;
    std::set<const Flag*> this_rank_, taken_;
};

Result<std::string> switch_value(std::string_view text) {
    for (std::string_view on : {"true", "1", "on", "enabled", "yes"})
        if (text == on) return std::string("true");
    for (std::string_view off : {"false", "0", "off", "disabled", "no"})
        if (text == off) return std::string("false");
    return invalid("'{:.40}' must be true or false", text);
}

Status read_arguments(std::span<const std::string> arguments, Reader& reader, std::string& config) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        std::string name = arguments[i];
        std::optional<std::string> value;
        if (!name.starts_with('-')) {
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
            if (i + 1 == arguments.size()) return invalid("{} needs a value", name);
            return arguments[++i];
        };
        if (name == kConfig) {
            HR_ASSIGN(config, next());
            continue;
        }
        const std::optional<Found> found = find_flag(name);
        if (!found) return unknown(name, "");
        reader.is_taken(*found->flag);
        std::string text = found->is_negative ? "false" : "true";
        if (!found->flag->value.empty() && !found->is_negative) {
            HR_ASSIGN(text, next());
        } else if (value) {
            return invalid("{} takes no value", name);
        }
        HR_TRY(reader.take(*found->flag, name, text, ""));
    }
    return success();
}

/// LLAMA_ARG_NO_MMAP of LLAMA_ARG_MMAP.
std::string negative_variable(std::string_view variable) {
    constexpr std::string_view kBegin = "LLAMA_ARG_";
    if (!variable.starts_with(kBegin)) return {};
    return fmt::format("{}NO_{}", kBegin, variable.substr(kBegin.size()));
}

Status read_environment(const std::map<std::string, std::string>& environment, Reader& reader) {
    for (const Flag& flag : flags()) {
        auto variable = environment.find(std::string(flag.variable));
        std::string value = variable == environment.end() ? "" : variable->second;
        if (variable == environment.end() && !flag.negative.empty()) {
            variable = environment.find(negative_variable(flag.variable));
            value = "false";  // whatever its value is, as in llama-server
        }
        if (flag.variable.empty() || variable == environment.end() || reader.is_taken(flag)) continue;
        const std::string where(kEnvironment);
        if (flag.value.empty()) {
            const Result<std::string> read = switch_value(value);
            if (!read.ok()) return read.error().within(where + variable->first);
            value = read.value();
        }
        HR_TRY(reader.take(flag, variable->first, value, where));
    }
    return success();
}

/// Lines of `name = value`, named as the flags without their dashes, or as their variables; sections, and
/// lines that begin with # or ;, are not looked at.
Status read_file(const std::string& path, Reader& reader) {
    std::ifstream file(path);
    if (!file) return failure(Code::not_found, "--config: '{}' cannot be read", path);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
        const std::string_view text = trimmed(line);
        if (text.empty() || text.front() == '#' || text.front() == ';' || text.front() == '[') continue;
        const std::string where =
            fmt::format("{}, line {}: ", std::filesystem::path(path).filename().string(), number);
        const auto equals = text.find('=');
        const std::string key(trimmed(text.substr(0, equals)));
        if (key == "version") continue;
        std::optional<Found> found = find_flag(spelled("--" + key));
        if (!found) found = find_flag("-" + key);
        for (const Flag& flag : flags())
            if (!found && !flag.variable.empty() && flag.variable == key) found = Found{&flag, false};
        if (!found) return unknown("--" + key, where);
        if (reader.is_taken(*found->flag)) continue;
        std::string value(equals == std::string_view::npos ? "true" : trimmed(text.substr(equals + 1)));
        if (found->flag->value.empty()) {
            const Result<std::string> read = switch_value(value);
            if (!read.ok()) return read.error().within(where + key);
            value = found->is_negative ? (read.value() == "true" ? "false" : "true") : read.value();
        }
        HR_TRY(reader.take(*found->flag, key, value, where));
    }
    return success();
}

/// --pooling and --embd-normalize are of the graph that --embed names, and not of the language model then.
Status read_encoder(ServeOptions& options) {
    if (!is_graph_file(options.embedding_model)) return success();
    if (const ParameterValue* given = options.parameters.find("pooling")) {
        constexpr std::array<std::pair<std::string_view, TextPooling>, 3> kKinds = {
            {{"mean", TextPooling::mean}, {"cls", TextPooling::cls}, {"last", TextPooling::last}}};
        const auto* name = std::get_if<std::string>(given);
        for (const auto& [known, pooling] : kKinds)
            if (name && *name == known) options.encoder.pooling = pooling;
        if (!options.encoder.pooling)
            return invalid("--pooling: '{:.40}' must be mean, cls or last for a graph (--embed)",
                           name ? *name : "");
        options.parameters.erase("pooling");
    }
    if (const ParameterValue* given = options.parameters.find("embd_normalize")) {
        const auto* norm = std::get_if<std::int64_t>(given);
        if (!norm || (*norm != -1 && *norm != 2))
            return invalid("--embd-normalize must be -1 or 2 for a graph (--embed)");
        options.encoder.normalizes = *norm == 2;
        options.parameters.erase("embd_normalize");
    }
    return success();
}

void set_texts(ServeOptions& options, const char* parameter, const std::vector<std::string>& texts) {
    if (!texts.empty())
        options.parameters.set(parameter, std::vector<ParameterValue>(texts.begin(), texts.end()));
}

void add_patterns(ServeOptions& options, const char* parameter, const std::vector<std::string>& kept) {
    if (kept.empty()) return;
    std::vector<ParameterValue> all;
    if (const ParameterValue* given = options.parameters.find(parameter))
        all = std::get<std::vector<ParameterValue>>(*given);
    for (const std::string& pattern : kept) all.emplace_back(pattern + "=CPU");
    options.parameters.set(parameter, std::move(all));
}

/// Whether each request has a part of the context.
bool is_divided(const ServeOptions& options) { return !options.unified.value_or(!options.divides); }

void finish_context(ServeOptions& options) {
    const auto parallel = static_cast<std::int64_t>(options.parallel);
    options.parameters.set("n_parallel", parallel);
    if (options.request_tokens > 0) {
        options.parameters.set("n_ctx_per_request", options.request_tokens);
        if (!options.parameters.find("n_ctx"))
            options.parameters.set("n_ctx",
                                   std::min<std::int64_t>(parallel * options.request_tokens, 1 << 30));
    } else if (options.parameters.find("n_ctx") && is_divided(options)) {
        options.parameters.set("n_ctx_per_request", kPartOfContext);
    }
}

/// LoRA adapters are loaded, and rest.
void rest_adapters(ServeOptions& options) {
    const ParameterValue* given = options.parameters.find("lora");
    if (!given || !options.rests_adapters) return;
    auto all = std::get<std::vector<ParameterValue>>(*given);
    for (ParameterValue& adapter : all) std::get<Parameters>(adapter).set("scale", 0.0);
    options.parameters.set("lora", std::move(all));
}

void unescape(ServeOptions& options) {
    for (const char* parameter : {"stop", "dry_sequence_breakers"}) {
        const ParameterValue* given = options.parameters.find(parameter);
        if (!given || !options.escapes) continue;
        auto all = std::get<std::vector<ParameterValue>>(*given);
        for (ParameterValue& text : all) text = unescaped(std::get<std::string>(text));
        options.parameters.set(parameter, std::move(all));
    }
}

Status check_log_file(const ServeOptions& options) {
    const std::string path = log_file(options);
    if (path.empty() || std::ofstream(path, std::ios::app)) return success();
    return failure(Code::io, "--log-file: '{}' cannot be written: {}", path, std::strerror(errno));
}

void finish_model(ServeOptions& options) {
    set_texts(options, "devices", options.devices);
    set_texts(options, "draft_devices", options.draft_devices);
    add_patterns(options, "override_tensor", options.kept_tensors);
    add_patterns(options, "draft_override_tensor", options.kept_draft_tensors);
    if (!options.fits_layers && !options.parameters.find("n_gpu_layers"))
        options.parameters.set("n_gpu_layers", "all");
    rest_adapters(options);
    unescape(options);
}

/// What llama-server derives from several flags.
Status finish(ServeOptions& options) {
    if (options.only_shows()) return success();
    if (options.model.empty() && options.embedding_model.empty() && options.ranking_model.empty())
        return invalid("no model is named: headrace serve model.gguf; --help lists the options");
    if (is_graph_file(options.model) && options.model.ends_with(".hrg"))
        return invalid("'{}' is a graph, and no language model: name it by --embed or --rank",
                       std::filesystem::path(options.model).filename().string());
    HR_TRY(check_log_file(options));
    HR_TRY(read_encoder(options));
    if (options.aliases.empty() && !options.model.empty())
        options.aliases = {std::filesystem::path(options.model).filename().string()};
    std::ranges::sort(options.aliases);
    finish_context(options);
    finish_model(options);
    if (options.logs_json) options.parameters.set("log_format", "json");
    if (!options.slot_save_path.empty() && !std::filesystem::is_directory(options.slot_save_path))
        return failure(Code::not_found, "--slot-save-path: '{}' is no folder", options.slot_save_path);
    return success();
}

}  // namespace

Result<ServeOptions> serve_options(std::span<const std::string> arguments,
                                   const std::map<std::string, std::string>& environment) {
    ServeOptions options;
    options.parameters.set("log_level", "warn");
    Reader reader(options);
    std::string config;
    HR_TRY(read_arguments(arguments, reader, config));
    reader.begin_rank();
    HR_TRY(read_environment(environment, reader));
    reader.begin_rank();
    if (!config.empty()) HR_TRY(read_file(config, reader));
    HR_TRY(finish(options));
    return options;
}

Result<ServeOptions> take_model_options(std::span<const std::string> arguments,
                                        const std::function<bool(const std::string&)>& keeps,
                                        std::vector<std::string>& rest) {
    ServeOptions options;
    Reader reader(options);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i];
        const std::size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
        const std::string name = spelled(argument.substr(0, equals));
        const std::optional<Found> found = find_flag(name);
        if (!argument.starts_with('-') || keeps(name) || !found || !is_model_flag(*found->flag)) {
            rest.push_back(argument);
            continue;
        }
        std::string value = found->is_negative ? "false" : "true";
        if (!found->flag->value.empty() && !found->is_negative) {
            if (equals == std::string::npos && i + 1 == arguments.size())
                return invalid("{} needs a value", name);
            value = equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
        } else if (equals != std::string::npos) {
            return invalid("{} takes no value", name);
        }
        HR_TRY(reader.take(*found->flag, name, value, ""));
    }
    if (options.verbose) options.parameters.set("log_level", "debug");
    if (options.is_quiet && !options.parameters.find("log_level"))
        options.parameters.set("log_level", "error");
    if (options.logs_json) options.parameters.set("log_format", "json");
    finish_model(options);
    return options;
}

void add_program_defaults(ServeOptions& options) {
    constexpr std::int64_t kCacheMib = 8192;
    Parameters& parameters = options.parameters;
    if (!parameters.find("cache_ram")) parameters.set("cache_ram", kCacheMib);
    if (!parameters.find("n_ctx")) {
        parameters.set("n_ctx", kWholeContext);
        if (options.request_tokens == 0 && is_divided(options))
            parameters.set("n_ctx_per_request", kPartOfContext);
    }
    Parameters values;
    if (const ParameterValue* given = parameters.find("chat_template_kwargs"))
        if (const auto* object = std::get_if<Parameters>(given)) values = *object;
    if (!values.find("preserve_reasoning")) values.set("preserve_reasoning", options.preserves_reasoning);
    parameters.set("chat_template_kwargs", std::move(values));
}

std::string log_file(const ServeOptions& options) {
    const ParameterValue* given = options.parameters.find("log_file");
    const auto* path = given ? std::get_if<std::string>(given) : nullptr;
    return path ? *path : "";
}

bool is_graph_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::array<char, 4> magic{};
    return file.read(magic.data(), magic.size()) && std::string_view(magic.data(), magic.size()) != "GGUF";
}

}  // namespace headrace::serve
