#pragma once
#include <memory>

#include "base/result.h"
#include "headrace/language_model.h"
#include "llm/service/requests.h"

namespace headrace::llm {

/// Whether a model gives one vector of a text; Code::unsupported, with what would be right.
Status check_pools(const LoadedModel& model);
Status check_gives_token_vectors(ModelKind kind);

/// Wait for a request that was started, or hand on why it was not: a vector of each text,
Result<Embeddings> vectors_of_texts(Result<std::unique_ptr<VectorRequest>> started);
/// a vector of each token of its one text,
Result<Embeddings> vectors_of_tokens(Result<std::unique_ptr<VectorRequest>> started);
/// or a score of each document.
Result<RankScores> scores_of_documents(Result<std::unique_ptr<VectorRequest>> started);

}  // namespace headrace::llm
