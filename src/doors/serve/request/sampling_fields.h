#pragma once
#include <initializer_list>
#include <string_view>

#include "doors/serve/request/fields.h"
#include "headrace/parameters.h"

namespace headrace::serve {

/// Fields that OpenAI documents have its types, ranges and words, also those that change no answer here.
void check_openai_fields(const Fields& body);
/// The same of a field that is one of some words.
void check_word(const Fields& fields, std::string_view name, std::initializer_list<std::string_view> words);

/// As llama-server and Ollama take numbers that mean nothing: a temperature below 0 is 0, a share of the
/// probability lies between 0 and 1. A seed of any integer has its last 32 bits.
void bound_sampling(Parameters& parameters);
/// The latter alone.
void bound_seed(Parameters& parameters);

}  // namespace headrace::serve
