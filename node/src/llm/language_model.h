#pragma once
#include <memory>

#include "../values.h"
#include "headrace/language_model.h"

/// What lib/llm calls. Arguments are checked there; `json` is text. Errors carry a `code`.
namespace headrace::node::llm {

napi_value load(const Call& call);         // (path, parameters json) -> promise of {handle, kind, warnings}
napi_value dispose(const Call& call);      // (model): ends its requests -> promise
napi_value information(const Call& call);  // (model) -> promise of ModelInfo
napi_value statistics(const Call& call);   // (model) -> promise of LanguageModelStatistics

napi_value stream(const Call& call);        // (model, request json) -> promise of a generation
napi_value conversation(const Call& call);  // (model, name, parameters json) -> promise of a conversation
napi_value stream_in(
    const Call& call);                  // (conversation, message, parameters json) -> promise of a generation
napi_value messages(const Call& call);  // (conversation) -> promise of [message]

napi_value next(const Call& call);    // (generation) -> promise of a text; undefined at the end
napi_value reply(const Call& call);   // (generation) -> promise of the Reply
napi_value cancel(const Call& call);  // (generation)
napi_value end(const Call& call);     // (): the process is about to exit

/// (model, texts, parameters json, of each token) -> promise of Float32Arrays
napi_value embed(const Call& call);
/// (model, query, documents, parameters json) -> promise of a Float32Array
napi_value rerank(const Call& call);
napi_value tokenize(const Call& call);    // (model, text, special, control) -> promise of an Int32Array
napi_value detokenize(const Call& call);  // (model, tokens) -> promise of a text

}  // namespace headrace::node::llm
