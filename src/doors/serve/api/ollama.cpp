#include "doors/serve/api/ollama.h"

#include <fmt/format.h>

#include "base/parameter_json.h"
#include "doors/serve/api/ollama_names.h"
#include "doors/serve/api/shapes.h"
#include "doors/serve/models/answering.h"
#include "doors/serve/request/fields.h"

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

std::int64_t nanoseconds(double ms) { return static_cast<std::int64_t>(ms * 1e6); }

std::string_view done_reason(const Reply& reply) {
    return finish_reason(reply) == "length" ? "length" : "stop";
}

void add_times(Json& body, const Reply& reply) {
    const Timings& times = reply.timings;
    body["total_duration"] = nanoseconds(times.queued_ms + times.prompt_ms + times.generate_ms);
    body["load_duration"] = nanoseconds(times.queued_ms);
    body["prompt_eval_count"] = reply.prompt_tokens;
    body["prompt_eval_duration"] = nanoseconds(times.prompt_ms);
    body["eval_count"] = reply.generated_tokens;
    body["eval_duration"] = nanoseconds(times.generate_ms);
}

Json call_shape(const std::string& name, const std::string& arguments, std::size_t index) {
    Json parsed = Json::parse(arguments, nullptr, false);
    if (!parsed.is_object()) parsed = Json::object();
    return {{"function", {{"index", index}, {"name", name}, {"arguments", std::move(parsed)}}}};
}

/// A line of JSON for each piece.
class OllamaWriter : public AnswerWriter {
public:
    /// name: as the request spells the model. is_chat: messages, and not texts.
    OllamaWriter(std::shared_ptr<ServedModel> model, std::string name, bool is_chat)
        : model_(std::move(model)), name_(std::move(name)), is_chat_(is_chat) {}

    void show_thoughts(bool shown) { thinks_ = shown; }

    Json whole(const std::vector<Reply>& replies) override {
        const Reply& reply = replies.front();
        Json calls = Json::array();
        for (std::size_t i = 0; i < reply.tool_calls.size(); ++i)
            calls.push_back(call_shape(reply.tool_calls[i].name, reply.tool_calls[i].arguments, i));
        Json body =
            shaped(is_chat_ ? reply.content : content_of(reply), reply.reasoning, std::move(calls), true);
        body["done_reason"] = done_reason(reply);
        add_times(body, reply);
        add_warnings(body, *model_, replies);
        return body;
    }
    /// To a request without anything to answer, which asks whether the model is there.
    Json loaded() const {
        Json body = shaped("", "", Json::array(), true);
        body["done_reason"] = "load";
        return body;
    }
    std::string_view type() const override { return "application/x-ndjson"; }
    std::string part(std::size_t, const MessagePart& part) override {
        for (const MessagePart::Call& call : part.calls) {  // Ollama sends calls whole
            if (call.index >= calls_.size()) calls_.resize(call.index + 1);
            if (!call.name.empty()) calls_[call.index].name = call.name;
            calls_[call.index].arguments += call.arguments;
        }
        if (part.content.empty() && part.reasoning.empty()) return {};
        return line(shaped(part.content, part.reasoning, Json::array(), false));
    }
    std::string end(std::size_t, const Reply& reply) override {
        std::string text;
        Json calls = Json::array();
        for (std::size_t i = 0; i < calls_.size(); ++i)
            calls.push_back(call_shape(calls_[i].name, calls_[i].arguments, i));
        if (!calls.empty()) text = line(shaped("", "", std::move(calls), false));
        Json body = shaped("", "", Json::array(), true);
        body["done_reason"] = done_reason(reply);
        add_times(body, reply);
        return text + line(body);
    }
    std::string finish(const std::vector<Reply>&) override { return {}; }
    std::string failed(const ApiError& error) override { return line({{"error", error.what()}}); }
    std::string ping() const override { return {}; }

private:
    static std::string line(const Json& body) { return text_of(body) + "\n"; }
    static const std::string& content_of(const Reply& reply) {
        return reply.content.empty() && reply.reasoning.empty() ? reply.text : reply.content;
    }
    Json shaped(const std::string& content, const std::string& reasoning, Json calls, bool is_done) const {
        Json body = {{"model", name_}, {"created_at", timestamp()}};
        if (is_chat_) {
            Json& message = body["message"] = {{"role", "assistant"}, {"content", content}};
            if (thinks_ && !reasoning.empty()) message["thinking"] = reasoning;
            if (!calls.empty()) message["tool_calls"] = std::move(calls);
        } else {
            body["response"] = content;
            if (thinks_ && !reasoning.empty()) body["thinking"] = reasoning;
        }
        body["done"] = is_done;
        return body;
    }

    const std::shared_ptr<ServedModel> model_;
    const std::string name_;
    const bool is_chat_;
    bool thinks_ = true;
    std::vector<ToolCall> calls_;
};

void read_options(const Fields& body, Parameters& parameters) {
    const Json* given = body.object("options");
    if (!given) return;
    const Fields options(*given, "options");
    for (const auto& [name, value] : engine_parameters(*given, kLoadOptions).entries())
        parameters.set(name, value);
    if (const auto count = options.integer("num_predict", -2, INT32_MAX))
        parameters.set("n_predict", std::max<std::int64_t>(*count, -1));
    if (const auto keep = options.integer("num_keep", -1, INT32_MAX)) parameters.set("n_keep", *keep);
    if (const auto last = options.integer("repeat_last_n", -1, INT32_MAX))
        parameters.set("repeat_last_n", *last);
    if (const Json* typical = options.any("typical_p"); typical && typical->is_number())
        parameters.set("typical_p", typical->get<double>());
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

/// Ollama's messages as OpenAI's: arguments of calls are objects, results name their tool.
std::vector<Message> ollama_messages(const Fields& body) {
    Json list = body.required("messages");
    if (!list.is_array()) body.wrong("messages", "a list");
    for (std::size_t i = 0; i < list.size(); ++i) {
        Json& message = list[i];
        if (!message.is_object()) continue;
        if (const auto images = message.find("images");
            images != message.end() && images->is_array() && !images->empty())
            throw wrong_field(fmt::format("messages[{}].images", i), "are not taken: this model reads texts");
        if (!message.contains("content") || message["content"].is_null()) message["content"] = "";
        if (message.contains("thinking")) message["reasoning_content"] = message["thinking"];
        if (message.contains("tool_name")) message["name"] = message["tool_name"];
    }
    return messages_of(list, "messages");
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
Request ollama_request(const Json& given, const Fields& body, OllamaWriter& writer) {
    Request request{.parameters = engine_parameters(given, kOllamaFields)};
    request.parameters.set("drop_oldest", true);  // as Ollama's own default is
    read_options(body, request.parameters);
    read_format(body, request.parameters);
    writer.show_thoughts(read_thinking(body, request.parameters));
    return request;
}

HttpResponse ollama_answer(const Fields& body, const HttpRequest& http, std::shared_ptr<ServedModel> model,
                           Request request, std::unique_ptr<OllamaWriter> writer) {
    Task task;
    task.requests.push_back(std::move(request));
    task.options.streams = body.flag("stream").value_or(true);
    return answer(std::move(model), http, std::move(task), std::move(writer));
}

}  // namespace

HttpResponse ollama_chat(Service& service, const HttpRequest& http) {
    const Json given = parse_body(http.body);
    const Fields body(given);
    const auto model = named(service, body, ModelKind::text);
    auto writer = std::make_unique<OllamaWriter>(model, body.required_text("model"), true);
    const Json* messages = body.list("messages");
    if (!messages || messages->empty()) return {.body = text_of(writer->loaded())};
    Request request = ollama_request(given, body, *writer);
    request.messages = ollama_messages(body);
    read_tools(body, request.parameters);
    check_can_call(request.parameters, model->info());
    request.parameters.set("parallel_tool_calls", true);
    if (ends_with_answer(request.messages)) request.parameters.set("continue_final_message", true);
    read_session(body, request.parameters);
    return ollama_answer(body, http, model, std::move(request), std::move(writer));
}

HttpResponse ollama_generate(Service& service, const HttpRequest& http) {
    const Json given = parse_body(http.body);
    const Fields body(given);
    const auto model = named(service, body, ModelKind::text);
    auto writer = std::make_unique<OllamaWriter>(model, body.required_text("model"), false);
    if (body.any("template")) throw wrong_field("template", "is not taken from requests");
    if (const Json* images = body.list("images"); images && !images->empty())
        throw wrong_field("images", "are not taken: this model reads texts");
    const std::string prompt = body.text("prompt").value_or("");
    if (prompt.empty()) return {.body = text_of(writer->loaded())};
    Request request = ollama_request(given, body, *writer);
    if (body.flag("raw").value_or(false) || model->info().chat_template.empty()) {
        request.parameters.set("chat", false);
        request.prompt = body.text("system").value_or("") + prompt;
    } else {
        if (const auto system = body.text("system")) request.messages.push_back({"system", *system});
        request.messages.push_back({"user", prompt});
    }
    return ollama_answer(body, http, model, std::move(request), std::move(writer));
}

}  // namespace headrace::serve
