#include "llm/service/ranking.h"

namespace headrace::llm {
namespace {

void append(Tokens& tokens, llama_token mark) {
    if (mark != LLAMA_TOKEN_NULL) tokens.push_back(mark);
}

}  // namespace

RankingMarks ranking_marks(const llama_vocab* vocab) {
    RankingMarks marks;
    if (llama_vocab_get_add_bos(vocab)) marks.begin = llama_vocab_bos(vocab);
    if (llama_vocab_get_add_sep(vocab)) marks.separator = llama_vocab_sep(vocab);
    if (llama_vocab_get_add_eos(vocab)) {
        const llama_token end = llama_vocab_eos(vocab);
        marks.end = end == LLAMA_TOKEN_NULL ? llama_vocab_sep(vocab) : end;
    }
    return marks;
}

Tokens ranking_tokens(const RankingMarks& marks, const Tokens& query, const Tokens& document) {
    Tokens tokens;
    append(tokens, marks.begin);
    tokens.insert(tokens.end(), query.begin(), query.end());
    append(tokens, marks.end);
    append(tokens, marks.separator);
    tokens.insert(tokens.end(), document.begin(), document.end());
    append(tokens, marks.end);
    return tokens;
}

std::string ranking_text(std::string_view form, std::string_view query, std::string_view document) {
    constexpr std::string_view kQuery = "{query}", kDocument = "{document}";
    std::string text;
    while (!form.empty()) {
        const bool is_query = form.starts_with(kQuery), is_document = form.starts_with(kDocument);
        if (is_query || is_document)
            text += is_query ? query : document;
        else
            text += form.front();
        form.remove_prefix(is_query ? kQuery.size() : is_document ? kDocument.size() : 1);
    }
    return text;
}

Result<std::vector<Tokens>> ranking_inputs(const Model& model, std::string_view query,
                                           const std::vector<std::string>& documents, std::size_t longest) {
    const char* form = llama_model_chat_template(model.get(), "rerank");
    const RankingMarks marks = ranking_marks(model.vocab());
    const std::size_t most = model.most_bytes(longest);
    if (query.size() > most)
        return failure(
            Code::prompt_too_long,
            "the query has {} bytes, which are more than the {} tokens that the model reads at most",
            query.size(), longest);
    const Tokens query_tokens = form ? Tokens() : model.tokenize(query, false, false);
    std::vector<Tokens> inputs;
    for (const std::string& document : documents) {
        if (document.size() > most)
            return failure(
                Code::prompt_too_long,
                "document {} has {} bytes, which are more than the {} tokens that the model reads at most",
                inputs.size(), document.size(), longest);
        Tokens tokens = form ? model.tokenize(ranking_text(form, query, document), false, true)
                             : ranking_tokens(marks, query_tokens, model.tokenize(document, false, false));
        if (tokens.empty()) return invalid("document {} and the query are empty", inputs.size());
        if (tokens.size() > longest)
            return failure(Code::prompt_too_long,
                           "document {} has {} tokens with the query, and the model reads at most {}",
                           inputs.size(), tokens.size(), longest);
        inputs.push_back(std::move(tokens));
    }
    return inputs;
}

}  // namespace headrace::llm
