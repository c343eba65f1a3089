#include "llm/schema/schema_grammar.h"

#include <common/json-schema-to-grammar.h>
#include <common/json.h>
#include <fmt/format.h>

#include "llm/schema/kept_schema.h"
#include "llm/schema/schema_cost.h"

namespace headrace::llm {

Result<std::string> schema_grammar(const std::string& schema) {
    HR_ASSIGN(const KeptSchema kept, keep_schema(Json::parse(schema)));
    HR_TRY(check_schema_cost(kept.schema));
    try {
        return with_numbers(json_schema_to_grammar(common_json::parse(kept.schema.dump())), kept.numbers);
    } catch (const std::exception& e) {
        return invalid("{}", e.what());
    }
}

std::string with_numbers(std::string grammar, const std::vector<std::string>& numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::string mark = fmt::format("\"{}\"", number_mark(i));
        for (std::size_t at = 0; (at = grammar.find(mark, at)) != std::string::npos; at += numbers[i].size())
            grammar.replace(at, mark.size(), numbers[i]);
    }
    return grammar;
}

}  // namespace headrace::llm
