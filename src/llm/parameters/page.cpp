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

std::string row_line(const Row& row, Settings& defaults) {
    const Json value = value_of(row, defaults);
    return fmt::format("| {} | {} | {} | {} | {} | {} |\n", code(row.path), names_cell(row), value_cell(row),
                       value.is_null() ? "" : cell(code(value.dump())), level_name(row.level),
                       cell(row.summary));
}

constexpr std::string_view kIntroduction = R"(# Parameters of language models

Written by `headrace parameters` from the table of parameters; `make docs` renews it.

Parameters are a JSON object. The service, a model, a session and a request may each have one, and each inherits the
values of the former; the column "set in" names the innermost of the four that may set a parameter, and every one before it
may set its default. Inside later ones it is ignored with a note.

The flat names, nested objects and keys with dots or hyphens mean the same: `{"dynatemp_range": 0.1}`,
`{"dynatemp-range": 0.1}`, `{"sampling.dynatemp.range": 0.1}` and `{"sampling": {"dynatemp": {"range": 0.1}}}`. A section
around a flat name has no meaning. `null` is absent. Of two names of one parameter the first counts.

Values of a wrong type are errors. What is clamped to its range, adjusted to other parameters, not known or without effect is
noted in the log and in the result's metadata; `"strict": true` makes unknown, misplaced and clamped parameters errors.
A WASI-NN host's texts may be read leniently: see language-models.md.
`grammar` excludes `json_schema`; `grammar_lazy` needs `grammar_triggers`; a quantised `type_v` and the split mode `tensor`
need flash attention. With the model's numbers, `penalty_last_n` and `dry_penalty_last_n` of -1 become the context's size,
and `n_batch`, `n_ubatch`, `n_keep`, `n_discard`, `min_keep` and `n_probs` are lowered to what the context and the vocabulary
allow.
)";

}  // namespace

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
        const std::string section(row->path.substr(0, row->path.find('.')));
        if (!lines.contains(section)) sections.push_back(section);
        lines[section] += row_line(*row, defaults);
    }
    std::string page(kIntroduction);
    for (const std::string& section : sections)
        page += fmt::format(
            "\n## {}\n\n| parameter | names | value | default | set in | meaning |\n"
            "|---|---|---|---|---|---|\n{}",
            section, lines[section]);
    return page + "\n## Known and without effect\n\n| names | why |\n|---|---|\n" + ignored;
}

}  // namespace headrace::llm
