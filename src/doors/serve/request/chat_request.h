#pragma once
#include <initializer_list>
#include <set>
#include <string>

#include "doors/serve/request/fields.h"
#include "doors/serve/request/tools.h"
#include "headrace/language_model.h"

namespace headrace::serve {

/// Answers to one prompt, as `n` asks for them.
constexpr int kMostChoices = 128;

/// What a request says besides what the model is asked.
struct AnswerOptions {
    bool streams = false;
    bool includes_usage = false;  ///< in a stream
    int choices = 1;
    bool shows_probabilities = false;
    std::size_t likeliest = 0;    ///< of each token's alternatives, as many are shown with it
    bool shows_prompt = false;    ///< llama-server's __verbose
    bool uses_functions = false;  ///< OpenAI's first names for tools and their calls
    int wanted_slot = -1;         ///< of those that /slots shows
    FieldNames names;             ///< for errors
};

/// Messages in OpenAI's shape. Throws ApiError with the place of what is wrong.
std::vector<Message> messages_of(const Json& list, const std::string& place);

/// The text of a content that is a text or a list of texts and images; of a list, its parts.
void read_content(const Fields& fields, std::string_view key, Message& message);

/// Throws ApiError for a `verbosity` that is none of OpenAI's words. It is a hint, and changes nothing here.
void check_verbosity(const Fields& fields);
/// `stream_options.include_usage`.
bool includes_usage(const Fields& body);
/// How many answers one of these fields asks for.
int choices_in(const Fields& body, std::initializer_list<std::string_view> names);
/// Throws ApiError for a limit of the answer's tokens that is none, under whichever of its names.
void check_limits(const Fields& body);
/// `id_slot`.
int wanted_slot(const Fields& body);
/// Bytes of a session's name: the engine takes no longer ones.
inline constexpr std::size_t kLongestSessionName = 256;
/// `session`, the name of a conversation that the server remembers.
void read_session(const Fields& body, Parameters& parameters);
/// What a body calls it: "session", or "session_id".
std::string session_field(const Fields& body);
/// Whether a message of the assistant comes last, which the answer goes on with.
bool ends_with_answer(const std::vector<Message>& messages);

/// Everything of a body that the engine has a parameter for, under the names that docs/parameters.md lists,
/// but `known`, which the API itself reads.
Parameters engine_parameters(const Json& body, const std::set<std::string_view>& known);

/// Throws ApiError for a parameter of the engine that has an object in place of a value: the engine would
/// read that as a section.
void check_values(const Parameters& parameters);

/// A body in the shape of OpenAI's chat completions; defaults: the model's abilities.
struct ChatBody {
    Request request;
    AnswerOptions options;
};
/// The API whose refusals a chat request gets: OpenAI's; of responses, whose calls were checked as their
/// items; or llama-server's on paths of its own.
enum class ChatRules { openai, responses, llama_server };
ChatBody chat_body(const Json& body, const ModelInfo& model, ChatRules rules = ChatRules::openai);

}  // namespace headrace::serve
