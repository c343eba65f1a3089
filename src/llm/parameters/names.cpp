#include "llm/parameters/names.h"

#include <algorithm>
#include <map>

#include "base/edit_distance.h"
#include "base/small_letters.h"
#include "llm/parameters/value.h"

namespace headrace::llm {
namespace {

/// Groups of other programs' configurations that are no sections of ours.
constexpr std::string_view kForeignSections =
    "backend backend.session backend.queue sessions session_management session_config queue task_queue "
    "scheduler "
    "performance memory memory_policy memory_management memory.cache_policy memory_policy.cache_policy "
    "memory_management.cache_policy memory_management.context_shifting cache_policy memory_config log "
    "logging_config sampling_params stopping_criteria timeout_config semantic_stopping token_filters options "
    "generation_settings server";

std::string join(std::span<const std::string> parts) { return fmt::format("{}", fmt::join(parts, "_")); }
std::string normal(std::string_view key) { return join(key_parts(key)); }

struct Name {
    std::string shown;  ///< as a user would write it
    const Row* row;
};

struct Index {
    std::map<std::string, Name, std::less<>> names;
    std::map<std::string, std::string, std::less<>> sections;  ///< and as a user would write them
    std::vector<std::string> ambiguous;

    void add(std::string_view shown, const Row* row) {
        const auto [at, added] = names.try_emplace(normal(shown), Name{std::string(shown), row});
        if (!added && at->second.row != row) ambiguous.emplace_back(shown);
    }

    void add_section(std::span<const std::string> parts) {
        sections.emplace(join(parts), fmt::format("{}", fmt::join(parts, ".")));
    }

    Index() {
        for (const Row* row : parameter_rows()) {
            for (std::string_view name : split(row->names)) add(name, row);
            if (row->ignored()) continue;
            add(row->path, row);
            // sampling.dynatemp.range makes sections of sampling, sampling.dynatemp and dynatemp.
            const std::vector<std::string> parts = key_parts(row->section());
            for (std::size_t first = 0; first < parts.size(); ++first)
                for (std::size_t end = first + 1; end <= parts.size(); ++end)
                    add_section(std::span(parts).subspan(first, end - first));
        }
        for (std::string_view section : split(kForeignSections)) add_section(key_parts(section));
    }
};

const Index& index() {
    static const Index instance;
    return instance;
}

/// More parts than any name has: a key of a million dots is not looked at.
constexpr std::size_t kMaxParts = 8;

/// How many parts in front are a section, a section inside one, and so on; 0 among them.
std::vector<std::size_t> section_ends(std::span<const std::string> parts) {
    std::vector<std::size_t> ends{0};
    for (std::size_t end = 1; end <= parts.size(); ++end)
        if (std::any_of(ends.begin(), ends.end(), [&](std::size_t begin) {
                return index().sections.contains(join(parts.subspan(begin, end - begin)));
            }))
            ends.push_back(end);
    return ends;
}

/// Calls visit(joined rest of the parts) without sections in front, with one, with more, until it says true.
template <class Visit>
bool visit_without_sections(std::span<const std::string> parts, const Visit& visit) {
    if (parts.size() > kMaxParts) return false;
    for (const std::size_t first : section_ends(parts))
        if (first < parts.size() && visit(join(parts.subspan(first)))) return true;
    return false;
}

}  // namespace

std::vector<std::string> key_parts(std::string_view key) {
    std::vector<std::string> parts(1);
    for (char c : key) {
        if (c == '.')
            parts.emplace_back();
        else
            parts.back() += c == '-' ? '_' : small_letter(c);
    }
    return parts;
}

const Row* find_row(std::span<const std::string> parts) {
    const Row* found = nullptr;
    visit_without_sections(parts, [&](const std::string& name) {
        const auto at = index().names.find(name);
        if (at != index().names.end()) found = at->second.row;
        return found != nullptr;
    });
    return found;
}

const Row* find_row_of_group(std::span<const std::string> parts) {
    constexpr std::string_view kGroups[] = {"model",  "sampling",      "stopping",    "backend",
                                            "memory", "memory_policy", "performance", "logging"};
    std::vector<std::string> grouped(parts.begin(), parts.end());
    grouped.emplace(grouped.begin());
    for (const std::string_view group : kGroups) {
        grouped.front() = group;
        if (const Row* row = find_row(grouped)) return row;
    }
    return nullptr;
}

bool is_section(std::span<const std::string> parts) {
    if (parts.size() > kMaxParts) return false;
    if (section_ends(parts).back() == parts.size()) return true;
    return visit_without_sections(parts, [](const std::string& name) {
        const std::string prefix = name + "_";
        const auto at = index().names.lower_bound(prefix);
        return at != index().names.end() && at->first.starts_with(prefix);
    });
}

std::string suggestion(std::span<const std::string> parts, Level level, bool is_object) {
    constexpr std::size_t kLongest = 64;
    std::string best;
    std::size_t distance = 4;  // one more than the most
    const auto compare = [&](std::string_view given, std::string_view name, const std::string& shown) {
        if (given.size() > kLongest) return;
        const std::size_t limit = std::min(distance, given.size() / 3 + 1);
        const std::size_t found = edit_distance(given, name, limit);
        if (found >= limit) return;
        distance = found;
        best = shown;
    };
    const std::string whole = join(parts), last = parts.back();
    for (const auto& [name, entry] : index().names) {
        if (entry.row->ignored() || entry.row->level < level) continue;
        compare(whole, name, entry.shown);
        if (parts.size() > 1) compare(last, name, entry.shown);
    }
    if (is_object)
        for (const auto& [section, shown] : index().sections) compare(whole, section, shown);
    return best;
}

std::vector<std::string> ambiguous_names() { return index().ambiguous; }

}  // namespace headrace::llm

namespace headrace {

ParameterKind kind_of_parameter(std::string_view name) {
    const std::vector<std::string> parts = llm::key_parts(name);
    if (const llm::Row* row = llm::find_row(parts)) {
        if (row->ignored()) return ParameterKind::unknown;
        return row->takes_object() ? ParameterKind::object : ParameterKind::value;
    }
    return llm::is_section(parts) ? ParameterKind::section : ParameterKind::unknown;
}

ParameterScope scope_of_parameter(std::string_view name) {
    const llm::Row* row = llm::find_row(llm::key_parts(name));
    if (!row) return ParameterScope::weights;
    // Files of weights beside the model's own: where it is loaded a list of adapters has some, too.
    const bool names_weights = row->path == "adapters.lora" || row->section() == "speculative.draft";
    return names_weights ? ParameterScope::weights : row->scope;
}

}  // namespace headrace
