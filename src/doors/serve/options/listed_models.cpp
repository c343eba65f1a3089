#include "doors/serve/options/listed_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <utility>

#include "doors/serve/options/reader.h"

namespace headrace::serve {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAll = "*";

bool is_one_of(const Flag& flag, std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(names, [&](std::string_view name) {
        const auto all = words(flag.names);
        return std::ranges::find(all, name) != all.end();
    });
}

/// Outside of sections they are of the program's own models.
bool names_own_models(const Flag& flag) {
    return is_one_of(flag, {"--model", "--embed", "--rank", "--tokenizer", "--alias", "--tags"});
}

bool belongs_to_section(const Flag& flag) {
    return is_model_flag(flag) || is_one_of(flag, {"--alias", "--tags", "--sleep-idle-seconds"});
}

/// What a section says beside flags.
Result<bool> take_own_key(const OptionLine& line, ServeOptions& options) {
    if (line.name == "stop-timeout" || line.name == "dedup-cache-models") return true;  // has no meaning here
    if (line.name != "pin" && line.name != "load-on-startup") return false;
    HR_ASSIGN(const std::string value, switch_value(line.value.value_or("true")));
    (line.name == "pin" ? options.is_pinned : options.loads_at_start) = value == "true";
    return true;
}

/// Reads the options of one model.
class SectionReader {
public:
    SectionReader(const ServeOptions& server, std::string file)
        : sources_(*server.sources),
          file_(std::move(file)),
          reader_(options_, [this](const Flag& flag) { return !is_in_section_ && names_own_models(flag); }) {
        options_.parameters.set("log_level", "warn");
    }

    Result<ServeOptions> read(const std::vector<OptionLine>* own, const std::vector<OptionLine>* shared) {
        std::string config;
        HR_TRY(reader_.read_arguments(sources_.arguments, config));
        options_.notes.clear();  // the program says them once
        reader_.begin_rank();
        for (const auto* lines : {own, shared})
            if (lines) HR_TRY(read_section(*lines));
        HR_TRY(reader_.read_environment(sources_.environment));
        reader_.begin_rank();
        if (!config.empty()) HR_TRY(reader_.read_file(config));
        return std::move(options_);
    }

private:
    Status read_section(const std::vector<OptionLine>& lines) {
        std::vector<OptionLine> flags;
        for (const OptionLine& line : lines) {
            const std::string where = fmt::format("{}, line {}: ", file_, line.number);
            const Result<bool> is_own = take_own_key(line, options_);
            if (!is_own.ok()) return is_own.error().within(where + line.name);
            if (is_own.value()) continue;
            const std::optional<FoundFlag> found = find_flag(spelled("--" + line.name));
            if (found && is_one_of(*found->flag, {"--embed", "--rank"}))
                return invalid(
                    "{}{} is the program's: name the file by `model`, with `embeddings = true` or `reranking "
                    "= "
                    "true`",
                    where, line.name);
            if (found && !belongs_to_section(*found->flag)) {
                options_.notes.push_back(fmt::format(
                    "{}{} has no effect: it is the program's, and of no model", where, line.name));
                continue;
            }
            flags.push_back(line);
        }
        is_in_section_ = true;
        const Status read = reader_.read_lines(flags, file_);
        is_in_section_ = false;
        reader_.begin_rank();
        return read;
    }

    const OptionSources& sources_;
    const std::string file_;
    ServeOptions options_;
    bool is_in_section_ = false;
    OptionReader reader_;
};

/// A part of a model that is split, but its first.
bool is_later_part(const std::string& stem) {
    const auto of = stem.rfind("-of-");
    return of != std::string::npos && of >= 6 && stem[of - 6] == '-' && stem.substr(of - 5, 5) != "00001";
}

/// What reads images for the model beside it.
bool is_projector(const fs::path& path) {
    return path.extension() == ".gguf" && path.filename().string().starts_with("mmproj");
}

bool is_model_file(const fs::path& path) {
    return path.extension() == ".gguf" && !is_projector(path) && !is_later_part(path.stem().string());
}

struct Files {
    std::string model, projector;  ///< a projector only in a folder of the model's own
};

/// The first of each by name; no model where there is none.
Files files_of_folder(const fs::path& folder) {
    Files found;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
        const fs::path& path = entry.path();
        if (!is_projector(path) && !is_model_file(path)) continue;
        std::string& first = is_projector(path) ? found.projector : found.model;
        if (first.empty() || path.string() < first) first = path.string();
    }
    return found;
}

/// Files and folders by the name that their model has: a folder has one model, and its name.
Result<std::map<std::string, Files>> files_in(const std::string& folder) {
    std::map<std::string, Files> all;
    std::error_code error;
    const fs::directory_iterator entries(folder, error);
    if (error)
        return failure(Code::not_found, "--models-dir: '{}' cannot be read: {}", folder, error.message());
    for (const fs::directory_entry& entry : entries) {
        if (!entry.is_directory(error)) {
            if (is_model_file(entry.path()))
                all.emplace(entry.path().stem().string(), Files{entry.path().string(), ""});
            continue;
        }
        Files files = files_of_folder(entry.path());
        if (!files.model.empty()) all.emplace(entry.path().filename().string(), std::move(files));
    }
    return all;
}

/// The model's names: its section's first, then those that it says itself.
void add_name(ServeOptions& model, const std::string& name) {
    std::erase(model.aliases, name);
    model.aliases.insert(model.aliases.begin(), name);
}

void take_files(ServeOptions& model, const Files& files) {
    model.model = files.model;
    const bool has_own = model.parameters.find("mmproj") != nullptr;
    if (model.finds_projectors && !has_own && !files.projector.empty())
        model.parameters.set("mmproj", files.projector);
}

/// Graphs are no language models, and are loaded otherwise.
void tell_graphs_apart(ServeOptions& model) {
    if (!is_graph_file(model.model)) return;
    const ParameterValue* pooling = model.parameters.find("pooling");
    const auto* kind = pooling ? std::get_if<std::string>(pooling) : nullptr;
    const bool ranks = kind && *kind == "rank";
    if (ranks) model.parameters.erase("pooling");
    (ranks ? model.ranking_model : model.embedding_model) = std::exchange(model.model, {});
}

/// A file that was cut off, or is being written, takes no models away.
Status check_sections(const std::vector<OptionSection>& sections, const std::string& preset,
                      const ServeOptions& server) {
    std::map<std::string_view, int> lines;
    for (const OptionSection& section : sections) {
        const auto [first, is_new] = lines.emplace(section.name, section.number);
        if (!is_new)
            return invalid("{}, line {}: [{}] is there already, at line {}: write one section of that name",
                           preset, section.number, section.name, first->second);
    }
    lines.erase("");
    const bool has_models = lines.size() > lines.count(kAll);
    if (has_models || (!lines.empty() && !server.models_dir.empty())) return success();
    return invalid("{}: it names no model: write a name in brackets with `model = FILE` below it{}", preset,
                   lines.empty() ? ", or leave out --models-preset" : "");
}

}  // namespace

Result<std::vector<ServeOptions>> listed_models(const ServeOptions& server) {
    std::map<std::string, Files> files;
    if (!server.models_dir.empty()) {
        HR_ASSIGN(files, files_in(server.models_dir));
    }
    std::vector<OptionSection> sections;
    const std::string preset = fs::path(server.models_preset).filename().string();
    if (!server.models_preset.empty()) {
        Result<std::vector<OptionSection>> read = option_sections(server.models_preset);
        if (!read.ok()) return read.error().within("--models-preset");
        sections = std::move(read).value();
    }
    if (!server.models_preset.empty()) HR_TRY(check_sections(sections, preset, server));
    const std::vector<OptionLine>* shared = nullptr;
    std::map<std::string, const std::vector<OptionLine>*> own;
    for (const auto& [name, found] : files) own[name] = nullptr;
    for (const OptionSection& section : sections) {
        if (section.name.empty() && !section.lines.empty() && section.lines.front().name != "version")
            return invalid(
                "{}, line {}: it belongs to no model: put a name in brackets above it, or [*] for all",
                preset, section.lines.front().number);
        if (section.name == kAll) shared = &section.lines;
        if (!section.name.empty() && section.name != kAll) own[section.name] = &section.lines;
    }
    std::vector<ServeOptions> all;
    for (const auto& [name, lines] : own) {
        HR_ASSIGN(ServeOptions model, SectionReader(server, preset).read(lines, shared));
        if (model.model.empty() && files.contains(name)) take_files(model, files.at(name));
        if (model.model.empty())
            return invalid("{}: the section [{}] names no file: add `model = FILE`{}", preset, name,
                           server.models_dir.empty() ? "" : ", or put one of that name into --models-dir");
        tell_graphs_apart(model);
        add_name(model, name);
        HR_TRY(finish_listed(model, server));
        all.push_back(std::move(model));
    }
    return all;
}

}  // namespace headrace::serve
