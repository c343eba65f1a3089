#include "llm/parameters/page.h"

#include <algorithm>
#include <map>

#include "llm/parameters/names.h"
#include "llm/parameters/value.h"

namespace headrace::llm {
namespace {

/// Text inside a cell of a Markdown table.
std::string cell(std::string_view text) {
    std::string escaped;
    for (char c : text) {
        if (c == '|') escaped += '\\';
        escaped += c;
    }
    return escaped;
}

std::string code(std::string_view text) { return fmt::format("`{}`", text); }

std::string names_cell(const Row& row) {
    std::vector<std::string> names;
    for (std::string_view name : split(row.names)) names.push_back(code(name));
    return fmt::format("{}", fmt::join(names, ", "));
}

std::string value_cell(const Row& row) {
    const std::string_view rule = !row.is_number()                  ? ""
                                  : row.values.rule == Rule::clamp  ? "; clamped"
                                  : row.values.rule == Rule::reject ? "; else an error"
                                                                    : "";
    return cell(fmt::format("{}{}", describe(row), rule));
}

std::string_view section_of(const Row& row) { return row.path.substr(0, row.path.find('.')); }

/// The parameter's default as JSON; empty where it has none.
std::string default_text(const Row& row, Settings& defaults) {
    const Json value = value_of(row, defaults);
    return value.is_null() ? std::string() : value.dump();
}

std::string row_line(const Row& row, Settings& defaults) {
    const std::string usual = default_text(row, defaults);
    return fmt::format("| {} | {} | {} | {} | {} | {} |\n", code(row.path), names_cell(row), value_cell(row),
                       usual.empty() ? usual : cell(code(usual)), level_name(row.level), cell(row.summary));
}

constexpr std::string_view kIntroduction = R"(# Parameters of language models

Written by `headrace parameters` from the table of parameters; `make docs` renews it.

Parameters are a JSON object. The process (service), a model, a session and a request may each have one. Each inherits the
values of the one before. The column "set in" says who may set a parameter:

- `request`: it may be set anywhere. What a load or a session says is the default of its requests.
- `session`: where a conversation is opened, or before.
- `model`: where the model is loaded, or before. In a request it is ignored, and `warnings` says so.
- `service`: for the process, by whoever runs it. Elsewhere it is ignored, and `warnings` says so.

The flat names, nested objects and keys with dots or hyphens mean the same: `{"dynatemp_range": 0.1}`,
`{"dynatemp-range": 0.1}`, `{"sampling.dynatemp.range": 0.1}` and `{"sampling": {"dynatemp": {"range": 0.1}}}`. A section
around a flat name has no meaning. `null` is absent. Of two names of one parameter the first counts.

- Values of a wrong type are errors.
- What is clamped to its range, adjusted to other parameters, not known or without effect is a line of the log and one of the
  `warnings` of a result. `"strict": true` makes unknown, misplaced and clamped parameters errors.
- A WASI-NN host's texts may be read [leniently](language-models.md#lenient-callers).
- `grammar` excludes `json_schema`. `grammar_lazy` needs `grammar_triggers`.
- A quantised `type_v` and the split mode `tensor` need flash attention.
- `penalty_last_n` and `dry_penalty_last_n` of -1 become the context's size. `n_batch`, `n_ubatch`, `n_keep`, `n_discard`,
  `min_keep` and `n_probs` are lowered to what the context and the vocabulary allow.
)";

constexpr std::string_view kIgnored = R"(
## Known and without effect

These names of other programs are taken as parameters (in Python, C++, configurations of guests) and change nothing. Flags of
`headrace serve` and fields of its APIs with the same names act there: `n`, `--api-key`, `--spec-type`, `--kv-unified`, `--fit` ...

| names | why |
|---|---|
)";

}  // namespace

std::string parameter_default(std::string_view name) {
    const Row* row = find_row(key_parts(name));
    if (!row || row->ignored()) return {};
    Settings defaults;
    const Json value = value_of(*row, defaults);
    if (value.is_string()) return value.get<std::string>();
    if (!value.is_boolean() && !value.is_number()) return {};
    const std::string number = value.dump();
    for (const std::string_view spelling : split(row->values.words))
        if (spelling.ends_with("=" + number)) return std::string(spelling.substr(0, spelling.find('=')));
    return value == kRandomSeed ? "-1" : number;
}

Json parameters_list() {
    Settings defaults;
    Json list = Json::array();
    for (const Row* row : parameter_rows()) {
        Json names = Json::array();
        for (const std::string_view name : split(row->names)) names.push_back(name);
        Json entry{{"path", row->path}, {"names", std::move(names)}, {"has_effect", !row->ignored()}};
        if (!row->ignored()) {
            entry["values"] = describe(*row);
            entry["default"] = value_of(*row, defaults);
            entry["set_in"] = level_name(row->level);
        }
        entry["summary"] = row->summary;
        list.push_back(std::move(entry));
    }
    return list;
}

ParameterText parameter_text(std::string_view name) {
    const Row* row = find_row(key_parts(name));
    if (!row || row->ignored()) return {};
    return {.summary = row->summary, .section = section_of(*row)};
}

std::string request_parameters_text() {
    Settings defaults;
    std::string text =
        "What a request of any API may set beside the API's own fields; headrace chat --parameters takes "
        "the\n"
        "same. headrace parameters describes those of models, too.\n";
    std::string_view section;
    for (const Row* row : parameter_rows()) {
        if (row->ignored() || row->level != Level::request) continue;
        if (section_of(*row) != section) {
            section = section_of(*row);
            text += fmt::format("\n{}:\n", section);
        }
        const std::string usual = default_text(*row, defaults);
        text += fmt::format("  {}: {}{}\n      {}\n", fmt::join(split(row->names), ", "), describe(*row),
                            usual.empty() ? usual : fmt::format(" (default: {})", usual), row->summary);
    }
    return text;
}

std::string parameters_page() {
    Settings defaults;
    std::vector<std::string> sections;
    std::map<std::string, std::string> lines;
    std::string ignored;
    for (const Row* row : parameter_rows()) {
        if (row->ignored()) {
            ignored += fmt::format("| {} | {} |\n", names_cell(*row), cell(row->summary));
            continue;
        }
        const std::string section(section_of(*row));
        if (!lines.contains(section)) sections.push_back(section);
        lines[section] += row_line(*row, defaults);
    }
    std::string page(kIntroduction);
    for (const std::string& section : sections)
        page += fmt::format(
            "\n## {}\n\n| parameter | names | value | default | set in | meaning |\n"
            "|---|---|---|---|---|---|\n{}",
            section, lines[section]);
    return page + std::string(kIgnored) + ignored;
}

}  // namespace headrace::llm
