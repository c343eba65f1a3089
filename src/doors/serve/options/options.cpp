#include "doors/serve/options/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/gguf_magic.h"
#include "doors/serve/options/flag_values.h"
#include "doors/serve/options/flags.h"
#include "doors/serve/options/reader.h"

namespace headrace::serve {
namespace {

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

Status finish_models(ServeOptions& options) {
    HR_TRY(read_encoder(options));
    finish_context(options);
    finish_model(options);
    if (options.logs_json) options.parameters.set("log_format", "json");
    return success();
}

bool has_listed_models(const ServeOptions& options) {
    return !options.models_dir.empty() || !options.models_preset.empty();
}

/// What llama-server derives from several flags.
Status finish(ServeOptions& options) {
    if (options.only_shows()) return success();
    const bool has_own = !(options.model + options.embedding_model + options.ranking_model).empty();
    if (!has_own && !has_listed_models(options))
        return invalid("no model is named: headrace serve model.gguf; --help lists the options");
    if (is_graph_file(options.model) && options.model.ends_with(".hrg"))
        return invalid("'{}' is a graph, and no language model: name it by --embed or --rank",
                       std::filesystem::path(options.model).filename().string());
    HR_TRY(check_log_file(options));
    if (options.aliases.empty() && !options.model.empty())
        options.aliases = {std::filesystem::path(options.model).filename().string()};
    std::ranges::sort(options.aliases);
    HR_TRY(finish_models(options));
    if (!options.slot_save_path.empty() && !std::filesystem::is_directory(options.slot_save_path))
        return failure(Code::not_found, "--slot-save-path: '{}' is no folder", options.slot_save_path);
    return success();
}

}  // namespace

Result<ServeOptions> serve_options(std::span<const std::string> arguments,
                                   const std::map<std::string, std::string>& environment) {
    ServeOptions options;
    options.sources =
        std::make_shared<OptionSources>(OptionSources{{arguments.begin(), arguments.end()}, environment, {}});
    options.parameters.set("log_level", "warn");
    OptionReader reader(options);
    std::string config;
    HR_TRY(reader.read_arguments(arguments, config));
    reader.begin_rank();
    HR_TRY(reader.read_environment(environment));
    reader.begin_rank();
    if (!config.empty()) HR_TRY(reader.read_file(config));
    HR_TRY(finish(options));
    return options;
}

void add_parameters(ServeOptions& options, const Parameters& parameters) {
    for (const auto& [name, value] : parameters.entries()) options.parameters.set(name, value);
    OptionSources sources = *options.sources;
    sources.parameters = parameters;
    options.sources = std::make_shared<OptionSources>(std::move(sources));
}

Result<ServeOptions> read_again(const ServeOptions& options) {
    HR_ASSIGN(ServeOptions again, serve_options(options.sources->arguments, options.sources->environment));
    if (options.has_program_defaults) add_program_defaults(again);
    add_parameters(again, options.sources->parameters);
    return again;
}

Status finish_listed(ServeOptions& model, const ServeOptions& server) {
    HR_TRY(finish_models(model));
    if (server.has_program_defaults) add_program_defaults(model);
    for (const auto& [name, value] : server.sources->parameters.entries()) model.parameters.set(name, value);
    return success();
}

Result<ServeOptions> take_model_options(std::span<const std::string> arguments,
                                        const std::function<bool(const std::string&)>& keeps,
                                        std::vector<std::string>& rest) {
    ServeOptions options;
    OptionReader reader(options);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i];
        const std::size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
        const std::string name = spelled(argument.substr(0, equals));
        const std::optional<FoundFlag> found = find_flag(name);
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
    options.has_program_defaults = true;
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
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) return false;  // opening a pipe may never end
    std::ifstream file(path, std::ios::binary);
    std::array<char, kGgufMagic.size()> magic{};
    return file.read(magic.data(), magic.size()) &&
           std::string_view(magic.data(), magic.size()) != kGgufMagic;
}

}  // namespace headrace::serve
