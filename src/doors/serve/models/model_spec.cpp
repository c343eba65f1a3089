#include "doors/serve/models/model_spec.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>

#include "base/parameter_json.h"
#include "doors/serve/options/listed_models.h"
#include "doors/serve/request/json.h"

namespace headrace::serve {
namespace {

namespace fs = std::filesystem;

std::int64_t threads_in(const Parameters& parameters) {
    const ParameterValue* value = parameters.find("n_threads");
    const auto* threads = value ? std::get_if<std::int64_t>(value) : nullptr;
    return threads ? std::max<std::int64_t>(*threads, 0) : 0;
}

/// The paths of a model's files: one that is split has several, named by their number.
std::vector<std::string> files_of(const std::string& path) {
    std::vector<std::string> files = {path};
    const auto mark = path.rfind("-00001-of-");
    if (mark == std::string::npos) return files;
    const int count = std::atoi(path.c_str() + mark + 10);
    for (int part = 2; part <= std::min(count, 1000); ++part)
        files.push_back(fmt::format("{}-{:05}{}", path.substr(0, mark), part, path.substr(mark + 6)));
    return files;
}

std::string file_name(const ModelSpec::Given& given) { return fs::path(given.path).filename().string(); }

/// A GGUF file or a graph that is named beside the language model.
ModelSpec::Given beside(const ServeOptions& options, const std::string& path, bool ranks, bool is_listed) {
    ModelSpec::Given given{
        .path = path, .is_graph = is_graph_file(path), .is_listed = is_listed, .options = options};
    given.ranks = ranks;
    given.required = ranks ? Role::scores : Role::vectors;
    given.parameters = {{"embeddings", true}, {"log_level", "warn"}};
    for (const char* shared : {"n_threads", "devices", "log_file", "log_format"})
        if (const ParameterValue* value = options.parameters.find(shared))
            given.parameters.set(shared, *value);
    if (ranks) given.parameters.set("pooling", "rank");
    given.encoder = options.encoder;
    given.encoder.ranks = ranks;
    if (ranks && is_graph_file(options.embedding_model)) given.encoder.tokenizer.clear();  // that one's
    given.encoder.compile.threads = static_cast<int>(threads_in(given.parameters));
    if (const ParameterValue* most = options.parameters.find("max_waiting"))
        if (const auto* calls = std::get_if<std::int64_t>(most); calls && *calls > 0)
            given.encoder.most_waiting = static_cast<std::size_t>(*calls);
    return given;
}

/// Adds the up to three models of one set of options.
void add_models(const ServeOptions& options, bool is_listed, std::vector<ModelSpec::Given>& all) {
    // --alias is of the first.
    bool is_first = true;
    const auto add = [&](ModelSpec::Given given) {
        if (is_first && !options.aliases.empty() && (!options.model.empty() || given.is_graph)) {
            given.names = options.aliases;
            given.tags = options.tags;
        } else {
            given.names = {file_name(given)};
        }
        is_first = false;
        all.push_back(std::move(given));
    };
    if (!options.model.empty())
        add({.path = options.model,
             .is_listed = is_listed,
             .options = options,
             .parameters = options.parameters});
    if (const std::string& path = options.embedding_model; !path.empty())
        add(beside(options, path, false, is_listed));
    if (const std::string& path = options.ranking_model; !path.empty())
        add(beside(options, path, true, is_listed));
}

Status check_names(const std::vector<ModelSpec::Given>& all) {
    std::map<std::string, const ModelSpec::Given*> known;
    for (const ModelSpec::Given& given : all)
        for (const std::string& name : given.names) {
            const auto [entry, is_new] = known.emplace(name, &given);
            const ModelSpec::Given& other = *entry->second;
            if (is_new || &other == &given || (!given.is_listed && !other.is_listed)) continue;
            return invalid("two models are called '{}': {} and {}; give one of them another name (alias)",
                           name, other.path, given.path);
        }
    return success();
}

/// A listed model is also called as its file is, where no other is.
void add_file_names(std::vector<ModelSpec::Given>& all) {
    std::map<std::string, int> taken;
    for (const ModelSpec::Given& given : all) {
        for (const std::string& name : given.names) ++taken[name];
        if (given.is_listed) ++taken[file_name(given)];
    }
    for (ModelSpec::Given& given : all)
        if (given.is_listed && taken[file_name(given)] == 1) given.names.push_back(file_name(given));
}

/// The second of two with one name has a number, too.
void add_keys(std::vector<ModelSpec::Given>& all) {
    std::map<std::string, int> taken;
    for (ModelSpec::Given& given : all) {
        const int number = ++taken[given.names.front()];
        given.key = number == 1 ? given.names.front() : fmt::format("{} ({})", given.names.front(), number);
    }
}

}  // namespace

Role role_of(ModelKind kind) {
    switch (kind) {
        case ModelKind::text: return Role::text;
        case ModelKind::scores: return Role::scores;
        case ModelKind::vectors:
        case ModelKind::token_vectors: break;
    }
    return Role::vectors;
}

std::string_view work_of(Role role) {
    switch (role) {
        case Role::text: return "answers texts";
        case Role::scores: return "ranks documents";
        case Role::vectors: break;
    }
    return "turns texts into vectors";
}

bool ModelSpec::answers_to(std::string_view name) const {
    return std::ranges::find(given_.names, name) != given_.names.end();
}

bool ModelSpec::is_pinned() const {
    return is_listed() ? options().is_pinned : options().idle_limit.count() == 0;
}

Role ModelSpec::role() const {
    if (is_graph()) return given_.ranks ? Role::scores : Role::vectors;
    const std::lock_guard lock(mutex_);
    if (role_) return *role_;
    try {
        role_ = role_of(outline_model(path(), {.parameters = parameters()}, false).kind);
    } catch (const Exception&) {
        return Role::text;
    }
    return *role_;
}

std::string ModelSpec::options_text() const {
    const ServeOptions& given = options();
    Json all = {{"names", names()},
                {"tags", tags()},
                {"path", path()},
                {"ranks", given_.ranks},
                {"parameters", json_object_of<Json>(parameters())},
                {"tokenizer", encoder().tokenizer},
                {"pooling", encoder().pooling ? static_cast<int>(*encoder().pooling) : -1},
                {"normalizes", encoder().normalizes ? static_cast<int>(*encoder().normalizes) : -1},
                {"is_fast", encoder().compile.precision == Precision::fast},
                {"parallel", given.parallel},
                {"suffix_first", given.suffix_first},
                {"prefills", given.prefills_assistant}};
    return text_of(all);
}

std::string ModelSpec::memory_name(ParameterScope least) const {
    std::string name = fmt::format("{} {}", path(), file_version());
    for (const auto& [key, value] : parameters().entries())
        if (scope_of_parameter(key) >= least)
            name += fmt::format(" {}={}", key, text_of(std::visit(JsonOfParameter<Json>(), value)));
    return name;
}

std::string ModelSpec::weights_name() const { return "weights " + memory_name(ParameterScope::weights); }

std::string ModelSpec::engine_name() const { return "engine " + memory_name(ParameterScope::engine); }

std::string ModelSpec::file_version() const {
    constexpr std::time_t kSettles = 2;  // seconds
    std::string version;
    std::time_t last = 0;
    for (const std::string& file : files_of(path())) {
        struct stat entry {};
        if (stat(file.c_str(), &entry) != 0) continue;
        version += fmt::format("{}:{}:{}:{}.{} ", entry.st_dev, entry.st_ino, entry.st_size,
                               entry.st_mtim.tv_sec, entry.st_mtim.tv_nsec);
        last = std::max(last, entry.st_mtim.tv_sec);
    }
    const std::lock_guard lock(mutex_);
    const std::time_t now = std::time(nullptr);
    const bool is_unsettled = version.empty() || (now - last < kSettles && now >= last);
    if (is_unsettled && !file_version_.empty()) return file_version_;
    if (file_version_ != version) role_.reset();
    return file_version_ = version;
}

Result<ModelSpecs> model_specs(const ServeOptions& options, std::vector<std::string>& notes) {
    std::vector<ModelSpec::Given> all;
    add_models(options, false, all);
    std::ranges::stable_partition(all, std::logical_not(),
                                  &ModelSpec::Given::is_graph);  // as lists have them
    HR_ASSIGN(const std::vector<ServeOptions> listed, listed_models(options));
    for (const ServeOptions& model : listed) {
        notes.insert(notes.end(), model.notes.begin(), model.notes.end());
        add_models(model, true, all);
    }
    HR_TRY(check_names(all));
    add_file_names(all);
    add_keys(all);
    ModelSpecs specs;
    for (ModelSpec::Given& given : all) specs.push_back(std::make_shared<const ModelSpec>(std::move(given)));
    return specs;
}

}  // namespace headrace::serve
