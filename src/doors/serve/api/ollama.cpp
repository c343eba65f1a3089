#include "doors/serve/api/ollama.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/parameter_json.h"
#include "doors/serve/api/fill_middle.h"
#include "doors/serve/api/ollama_names.h"
#include "doors/serve/api/ollama_writer.h"
#include "doors/serve/api/shapes.h"
#include "doors/serve/request/fields.h"
#include "doors/serve/request/images.h"
#include "doors/serve/request/sampling_fields.h"

namespace headrace::serve {
namespace {

const std::set<std::string_view> kOllamaFields = {"model",
                                                  "messages",
                                                  "prompt",
                                                  "suffix",
                                                  "images",
                                                  "format",
                                                  "options",
                                                  "system",
                                                  "template",
                                                  "context",
                                                  "stream",
                                                  "raw",
                                                  "keep_alive",
                                                  "tools",
                                                  "think",
                                                  "session",
                                                  "session_id",
                                                  "input",
                                                  "truncate",
                                                  "shift",
                                                  "logprobs",
                                                  "top_logprobs",
                                                  "dimensions",
                                                  "previous_messages",
                                                  "_debug_render_only"};

/// Ollama's options that have no meaning here, or are of the model's load.
const std::set<std::string_view> kLoadOptions = {
    "num_ctx",    "num_batch",  "num_gpu",    "main_gpu", "use_mmap",    "use_mlock",
    "num_thread", "numa",       "low_vram",   "num_keep", "num_predict", "penalize_newline",
    "f16_kv",     "vocab_only", "logits_all", "tfs_z",    "typical_p",   "repeat_last_n"};

/// How Ollama samples where neither the request nor the server's operator says. Others have the same default
/// here.
const std::pair<const char*, ParameterValue> kOllamaDefaults[] = {
    {"top_p", 0.9}, {"min_p", 0.0}, {"repeat_penalty", 1.1}};

void add_defaults(const Parameters& of_server, Parameters& parameters) {
    for (const auto& [name, value] : kOllamaDefaults)
        if (!of_server.find(name) && !parameters.find(name)) parameters.set(name, value);
}

/// A smaller context than the server's is kept to; a larger one cannot be had.
void read_context_size(const Fields& options, const ModelInfo& model, Parameters& parameters,
                       std::vector<Warning>& warnings) {
    const auto tokens = options.integer("num_ctx", 1, INT32_MAX);
    if (!tokens) return;
    if (*tokens <= model.request_tokens) return parameters.set("most_context", *tokens);
    warnings.push_back(
        {"num_ctx", fmt::format("'num_ctx' is {} in place of {}: the server was started with that "
                                "(--ctx-size)",
                                model.request_tokens, *tokens)});
}

/// The names of what a body has in its options.
FieldNames ollama_names(const Fields& body) {
    FieldNames names = {
        {"json_schema", "format"}, {"reasoning_effort", "think"}, {"session_id", session_field(body)}};
    if (const Json* options = body.object("options"))
        for (const auto& [name, value] : options->items()) names[name] = "options." + name;
    return names;
}

void read_options(const Fields& body, const ModelInfo& model, Parameters& parameters,
                  std::vector<Warning>& warnings) {
    const Json* given = body.object("options");
    if (!given) return;
    const Fields options(*given, "options");
    try {
        for (const auto& [name, value] : engine_parameters(*given, kLoadOptions).entries())
            parameters.set(name, value);
    } catch (const ApiError& error) {
        throw renamed(error, ollama_names(body));
    }
    read_context_size(options, model, parameters, warnings);
    if (const auto count = options.integer("num_predict", -2, INT32_MAX))
        parameters.set("n_predict", std::max<std::int64_t>(*count, -1));
    if (const auto keep = options.integer("num_keep", -1, INT32_MAX)) parameters.set("n_keep", *keep);
    if (const auto last = options.integer("repeat_last_n", -1, INT32_MAX))
        parameters.set("repeat_last_n", *last);
    if (const Json* typical = options.any("typical_p"); typical && typical->is_number())
        parameters.set("typical_p", typical->get<double>());
    bound_sampling(parameters);
}

/// So many likely ones of each token; -1: none are wanted.
int read_logprobs(const Fields& body, Parameters& parameters) {
    constexpr std::int64_t kMost = 20;
    const std::int64_t top = body.integer("top_logprobs", 0, kMost).value_or(0);
    const bool wanted = body.flag("logprobs").value_or(false);
    if (top > 0 && !wanted) throw wrong_field("top_logprobs", "needs 'logprobs': true");
    if (!wanted) return -1;
    parameters.set("n_probs", std::max<std::int64_t>(top, 1));
    return static_cast<int>(top);
}

/// Whether `keep_alive` asks for the model to be unloaded after the answer: 0, or "0s".
bool asks_to_unload(const Fields& body) {
    const Json* given = body.any("keep_alive");
    if (!given) return false;
    if (given->is_number()) return *given == 0;
    if (!given->is_string()) body.wrong("keep_alive", "a number of seconds or a time as \"5m\"");
    const std::string& text = given->get_ref<const std::string&>();
    const bool has_digit = text.find_first_of("0123456789") != std::string::npos;
    if (!has_digit)
        throw wrong_field("keep_alive", fmt::format("is '{:.40}'; it must be a time as \"5m\"", text));
    return text.find_first_of("123456789") == std::string::npos;
}

/// "json", or a schema.
void read_format(const Fields& body, Parameters& parameters) {
    const Json* format = body.any("format");
    if (!format || *format == "") return;
    if (*format == "json")
        parameters.set("response_format", Parameters{{"type", "json_object"}});
    else if (format->is_object())
        parameters.set("json_schema", parameter_of(*format));
    else
        body.wrong("format", "\"json\" or a JSON schema");
}

/// `images`: base64, in front of the text.
std::vector<Image> images_in(const Fields& fields) {
    std::vector<Image> images;
    const Json* given = fields.list("images");
    for (std::size_t i = 0; given && i < given->size(); ++i) {
        const std::string place = fmt::format("{}[{}]", fields.name("images"), i);
        if (!(*given)[i].is_string()) throw wrong_field(place, "must be base64 of an image");
        images.push_back(image_of_url((*given)[i].get_ref<const std::string&>(), place));
    }
    return images;
}

/// Ollama's messages as OpenAI's: arguments of calls are objects, results name their tool.
std::vector<Message> ollama_messages(const Fields& body) {
    Json list = body.required("messages");
    if (!list.is_array()) body.wrong("messages", "a list");
    for (std::size_t i = 0; i < list.size(); ++i) {
        Json& message = list[i];
        if (!message.is_object()) continue;
        if (!message.contains("content") || message["content"].is_null()) message["content"] = "";
        if (message.contains("thinking")) message["reasoning_content"] = message["thinking"];
        if (message.contains("tool_name")) message["name"] = message["tool_name"];
    }
    std::vector<Message> messages = messages_of(list, "messages");
    for (std::size_t i = 0; i < list.size(); ++i)
        messages[i].images = images_in(Fields(list[i], fmt::format("messages[{}]", i)));
    return messages;
}

/// Whether thoughts show in the answer.
bool read_thinking(const Fields& body, Parameters& parameters) {
    const Json* think = body.any("think");
    if (!think) return true;
    if (!think->is_boolean() && !think->is_string()) body.wrong("think", "true, false, or a level");
    const bool on = think->is_boolean() ? think->get<bool>() : true;
    if (think->is_string()) parameters.set("reasoning_effort", think->get<std::string>());
    parameters.set("enable_thinking", on);
    return on;
}

/// What both kinds of request may say.
Request ollama_request(const Json& given, const ServedModel& model, OllamaWriter::Shown& shown) {
    const Fields body(given);
    Request request{.parameters = engine_parameters(given, kOllamaFields)};
    request.parameters.set("drop_oldest",
                           body.flag("truncate").value_or(true));  // as Ollama's own default is
    read_options(body, model.info(), request.parameters, shown.warnings);
    add_defaults(model.given().parameters, request.parameters);
    read_format(body, request.parameters);
    shown.thoughts = read_thinking(body, request.parameters);
    shown.logprobs = read_logprobs(body, request.parameters);
    static_cast<void>(asks_to_unload(body));  // a wrong one is an error
    return request;
}

/// A request without anything to answer asks for the model to be loaded, or unloaded.
HttpResponse answer_to_nothing(Service& service, const HttpRequest& http, const Json& given, bool is_chat) {
    const Fields body(given);
    const bool unloads = asks_to_unload(body);
    const auto spec = language_spec(service, given);
    if (!unloads)
        service.acquire(http, given, *spec);
    else if (spec->is_listed())
        service.unload(*spec);
    const OllamaWriter writer(nullptr, body.required_text("model"), {.is_chat = is_chat});
    return {.body = text_of(writer.answer_to_nothing(unloads ? "unload" : "load"))};
}

HttpResponse ollama_answer(const Fields& body, const HttpRequest& http, std::shared_ptr<ServedModel> model,
                           Request request, OllamaWriter::Shown shown) {
    Task task;
    task.requests.push_back(std::move(request));
    task.options.streams = body.flag("stream").value_or(true);
    task.options.names = ollama_names(body);
    auto writer = std::make_unique<OllamaWriter>(model, body.required_text("model"), std::move(shown));
    return answer(std::move(model), http, std::move(task), std::move(writer));
}

/// The tokens of a `context`, which an earlier answer had.
std::vector<std::int32_t> tokens_in(ServedModel& model, const Json& context) {
    for (const Json& token : context)
        if (!token.is_number_integer()) throw wrong_field("context", "must be a list of tokens");
    return prompts_of(model, context, "context", false).front();
}

/// Reads the prompt: a text alone, one with a suffix behind the gap, or one that follows tokens read before.
void read_prompt(const Fields& body, ServedModel& model, Request& request) {
    const std::string prompt = body.text("prompt").value_or(""), suffix = body.text("suffix").value_or("");
    const std::string system = body.text("system").value_or("");
    const Json* context = body.list("context");
    const bool goes_on = context && !context->empty();
    if (!suffix.empty()) {
        if (!can_fill_middle(model.info()))
            throw ApiError(400, "invalid_request_error",
                           fmt::format("{} does not support insert", model.id()), "suffix");
        const auto tokens = [&](const std::string& text) {
            return model.engine().tokenize(text, false, false);
        };
        request.tokens = gap_tokens(model, {.before = {}, .prefix = tokens(prompt), .suffix = tokens(suffix)},
                                    model.given().suffix_first);
    } else if (body.flag("raw").value_or(false) || model.info().chat_template.empty()) {
        request.prompt = system + prompt;
    } else {
        if (!system.empty()) request.messages.push_back({"system", system});
        request.messages.push_back({"user", prompt});
    }
    if (goes_on) {
        std::vector<std::int32_t> all = tokens_in(model, *context);
        const std::vector<std::int32_t> begin = model.engine().tokenize("", true, false);
        if (request.messages.empty()) request.parameters.set("chat", false);
        std::vector<std::int32_t> more =
            request.tokens.empty() ? model.render(request).tokens : std::move(request.tokens);
        // It begins as every text does, and this one has begun.
        const bool begins =
            more.size() >= begin.size() && std::equal(begin.begin(), begin.end(), more.begin());
        all.insert(all.end(), more.begin() + (begins ? static_cast<std::ptrdiff_t>(begin.size()) : 0),
                   more.end());
        request.tokens = std::move(all);
        request.messages.clear();
        request.prompt.clear();
    }
    if (request.messages.empty()) request.parameters.set("chat", false);
}

/// A model sees images in messages only.
void read_images(const Fields& body, const ServedModel& model, Request& request) {
    std::vector<Image> images = images_in(body);
    if (images.empty()) return;
    if (request.messages.empty())
        throw wrong_field("images",
                          "are read in messages only: leave out raw, context and suffix, and name a "
                          "model with a chat template");
    request.messages.back().images = std::move(images);
    check_images(request.messages, model.info());
}

}  // namespace

HttpResponse ollama_chat(Service& service, const HttpRequest& http) {
    const Json given = parse_body(http.body);
    const Fields body(given);
    const Json* messages = body.list("messages");
    if (!messages || messages->empty()) return answer_to_nothing(service, http, given, true);
    const auto model = named_language(service, http, given);
    OllamaWriter::Shown shown{.is_chat = true};
    Request request = ollama_request(given, *model, shown);
    request.messages = ollama_messages(body);
    check_images(request.messages, model->info());
    read_tools(body, kAnyToolName, request.parameters);
    check_can_call(request.parameters, model->info());
    request.parameters.set("parallel_tool_calls", true);
    if (ends_with_answer(request.messages)) request.parameters.set("continue_final_message", true);
    read_session(body, request.parameters);
    return ollama_answer(body, http, model, std::move(request), std::move(shown));
}

HttpResponse ollama_generate(Service& service, const HttpRequest& http) {
    const Json given = parse_body(http.body);
    const Fields body(given);
    OllamaWriter::Shown shown;
    if (body.any("template")) throw wrong_field("template", "is not taken from requests");
    const bool is_raw = body.flag("raw").value_or(false);
    const Json* context = body.list("context");
    if (is_raw && (!body.text("system").value_or("").empty() || (context && !context->empty())))
        throw ApiError(400, "invalid_request_error", "raw mode does not support template, system, or context",
                       "raw");
    if (body.text("prompt").value_or("").empty()) return answer_to_nothing(service, http, given, false);
    const auto model = named_language(service, http, given);
    Request request = ollama_request(given, *model, shown);
    shown.context = !is_raw;
    read_session(body, request.parameters);
    read_prompt(body, *model, request);
    read_images(body, *model, request);
    return ollama_answer(body, http, model, std::move(request), std::move(shown));
}

}  // namespace headrace::serve
