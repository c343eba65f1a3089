#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "llm/model/model.h"

namespace headrace::llm {

/// What a vocabulary puts around a query and a document; a token that it does not want is LLAMA_TOKEN_NULL.
struct RankingMarks {
    llama_token begin = LLAMA_TOKEN_NULL, end = LLAMA_TOKEN_NULL, separator = LLAMA_TOKEN_NULL;
};
RankingMarks ranking_marks(const llama_vocab* vocab);

/// begin query end separator document end
Tokens ranking_tokens(const RankingMarks& marks, const Tokens& query, const Tokens& document);

/// A template with the texts in the places of {query} and {document}.
std::string ranking_text(std::string_view form, std::string_view query, std::string_view document);

/// What a ranking model reads of each document: by its "rerank" template, or else with the vocabulary's
/// marks, as llama-server does. Errors: Code::prompt_too_long with the document's position and size; longest:
/// tokens that the model reads at most.
Result<std::vector<Tokens>> ranking_inputs(const Model& model, std::string_view query,
                                           const std::vector<std::string>& documents, std::size_t longest);

}  // namespace headrace::llm
