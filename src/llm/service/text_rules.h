#pragma once
#include <common/json-schema-to-grammar.h>

#include <optional>
#include <string>

namespace headrace::llm {

/// What a text may be by a schema, as the right side of a rule in GBNF: the text itself, without quotes. None
/// where the schema lets it be anything.
///
/// name: of rules that are added. end: the mark that follows the text, which is not in it.
std::optional<std::string> text_rule(const common_grammar_builder& builder, const std::string& name,
                                     const common_chat_schema& schema, const std::string& end, int depth = 0);

/// The same of an object as Gemma 4 writes it: {key:<|"|>text<|"|>,key:[1,2]}.
std::string gemma_object(const common_grammar_builder& builder, const std::string& name,
                         const common_chat_schema& schema);

/// The schema that a reference stands for.
const common_chat_schema& resolved(const common_chat_schema& schema);

}  // namespace headrace::llm
