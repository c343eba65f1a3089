#include "llm/service/vectors.h"

namespace headrace::llm {

Status check_pools(const LoadedModel& model) {
    if (model.runner.engine)
        return unsupported(
            "the model writes texts; load it with the parameters {{\"embeddings\": true, \"pooling\": "
            "\"mean\"}} for "
            "vectors");
    if (model.runner.embedder->ranks())
        return unsupported("the model gives scores of documents, and no vectors; see rerank");
    if (!model.runner.embedder->pools())
        return unsupported(
            "with pooling none a text has a vector for each token: see embed_tokens, or load the "
            "model with the parameters {{\"embeddings\": true, \"pooling\": \"mean\"}}");
    return success();
}

Status check_gives_token_vectors(ModelKind kind) {
    if (kind == ModelKind::token_vectors) return success();
    return unsupported("the tokens' vectors are pooled; load the model with pooling none");
}

Result<Embeddings> vectors_of_texts(Result<std::unique_ptr<VectorRequest>> started) {
    HR_ASSIGN(const std::unique_ptr<VectorRequest> request, std::move(started));
    HR_ASSIGN(std::vector<TextVectors> vectors, request->wait());
    Embeddings made{.tokens = static_cast<std::int64_t>(request->token_count()),
                    .warnings = request->warnings()};
    for (TextVectors& text : vectors) made.vectors.push_back(std::move(text.front()));
    return made;
}

Result<Embeddings> vectors_of_tokens(Result<std::unique_ptr<VectorRequest>> started) {
    HR_ASSIGN(const std::unique_ptr<VectorRequest> request, std::move(started));
    HR_ASSIGN(std::vector<TextVectors> vectors, request->wait());
    return Embeddings{.vectors = std::move(vectors.front()),
                      .tokens = static_cast<std::int64_t>(request->token_count()),
                      .warnings = request->warnings(),
                      .of_tokens = true};
}

Result<RankScores> scores_of_documents(Result<std::unique_ptr<VectorRequest>> started) {
    HR_ASSIGN(const std::unique_ptr<VectorRequest> request, std::move(started));
    HR_ASSIGN(const std::vector<TextVectors> vectors, request->wait());
    RankScores made{.tokens = static_cast<std::int64_t>(request->token_count()),
                    .warnings = request->warnings()};
    for (const TextVectors& document : vectors) made.scores.push_back(document.front().front());
    return made;
}

}  // namespace headrace::llm
