#include <fmt/format.h>

#include "doors/serve/api/fill_middle.h"
#include "doors/serve/api/llama_server.h"
#include "doors/serve/api/settings_json.h"
#include "doors/serve/api/shapes.h"
#include "doors/serve/models/answering.h"
#include "doors/serve/request/sampling_fields.h"

namespace headrace::serve {
namespace {

const std::set<std::string_view> kLlamaFields = {"prompt",
                                                 "model",
                                                 "stream",
                                                 "n",
                                                 "n_cmpl",
                                                 "id_slot",
                                                 "session",
                                                 "session_id",
                                                 "messages",
                                                 "tools",
                                                 "tool_choice",
                                                 "response_fields",
                                                 "return_tokens",
                                                 "input_prefix",
                                                 "input_suffix",
                                                 "input_extra",
                                                 "previous_messages",
                                                 "verbose",
                                                 "sse_ping_interval"};

std::string_view stop_type(const Reply& reply) {
    switch (reply.stop_reason) {
        case StopReason::end_of_answer:
        case StopReason::grammar: return "eos";
        case StopReason::token_limit:
        case StopReason::context_full:
        case StopReason::time_limit:
        case StopReason::indentation: return "limit";
        case StopReason::stop_string:
        case StopReason::pattern: return "word";
        default: return "none";
    }
}

class LlamaWriter : public AnswerWriter {
public:
    struct Shown {
        bool tokens = false, probabilities = false, after_sampling = false;
        std::vector<std::string> fields;  ///< of an answer; empty: all
    };
    LlamaWriter(std::shared_ptr<ServedModel> model, Shown shown, std::vector<Json> settings,
                std::vector<std::string> prompts)
        : model_(std::move(model)),
          shown_(std::move(shown)),
          settings_(std::move(settings)),
          prompts_(std::move(prompts)),
          slots_(prompts_.size(), -1) {}

    Json whole(const std::vector<Reply>& replies) override {
        Json all = Json::array();
        for (std::size_t i = 0; i < replies.size(); ++i) all.push_back(chosen(whole_of(i, replies[i])));
        return all.size() == 1 ? all.front() : all;
    }

    void placed(std::size_t choice, int slot) override { slots_[choice] = slot; }
    std::string part(std::size_t choice, const MessagePart& part) override {
        const Piece& piece = part.piece;
        if (part.content.empty() && !piece.progress) return {};
        Json body = {{"index", choice}, {"content", part.content},   {"tokens", piece.new_tokens},
                     {"stop", false},   {"id_slot", slots_[choice]}, {"tokens_predicted", piece.tokens}};
        if (piece.progress) body["prompt_progress"] = progress_of(*piece.progress);
        if (shown_.probabilities)
            body["completion_probabilities"] =
                probabilities_of(*model_, piece.new_tokens, piece.probabilities, piece.token_probabilities,
                                 SIZE_MAX, shown_.after_sampling);
        return event_of(body);
    }
    std::string end(std::size_t choice, const Reply& reply) override {
        return event_of(chosen(end_of(choice, reply)));
    }
    std::string finish(const std::vector<Reply>&) override { return {}; }
    std::string failed(const ApiError& error) override { return event_of(openai_error(error)); }

private:
    /// An answer of no text has tokens too: the one that ended it.
    Json whole_of(std::size_t choice, const Reply& reply) const {
        Json body = end_of(choice, reply);
        body["content"] = reply.text;
        const bool ended = reply.stop_reason == StopReason::end_of_answer;
        if (shown_.probabilities)
            body["completion_probabilities"] =
                probabilities_of(*model_, ended ? reply.tokens : text_tokens(reply), reply.probabilities,
                                 reply.token_probabilities, SIZE_MAX, shown_.after_sampling);
        return body;
    }

    /// The last event of a stream, whose pieces held the text.
    Json end_of(std::size_t choice, const Reply& reply) const {
        Json body = {
            {"index", choice},
            {"content", ""},
            {"tokens", shown_.tokens ? Json(reply.tokens) : Json::array()},
            {"id_slot", slots_[choice]},
            {"stop", true},
            {"model", model_->id()},
            {"tokens_predicted", reply.generated_tokens},
            {"tokens_evaluated", reply.prompt_tokens},
            {"generation_settings", settings_[choice]},
            {"prompt", prompts_[choice]},
            {"has_new_line", reply.text.find('\n') != std::string::npos},
            {"truncated", reply.context_shifts > 0 || reply.stop_reason == StopReason::context_full},
            {"stop_type", stop_type(reply)},
            {"stopping_word", stop_type(reply) == "word" ? reply.stop_detail : ""},
            {"tokens_cached", reply.prompt_tokens + std::max<std::int64_t>(0, reply.generated_tokens - 1)},
            {"timings", timings_of(reply)}};
        add_warnings(body, *model_, reply);
        return body;
    }

    /// A field with slashes is that of an object inside, under the whole name.
    Json chosen(Json body) const {
        if (shown_.fields.empty()) return body;
        Json some = Json::object();
        for (const std::string& field : shown_.fields) {
            const Json* found = &body;
            for (std::size_t at = 0; found && at <= field.size();) {
                const std::size_t slash = std::min(field.find('/', at), field.size());
                const auto inner =
                    found->is_object() ? found->find(field.substr(at, slash - at)) : found->end();
                found = found->is_object() && inner != found->end() ? &*inner : nullptr;
                at = slash + 1;
            }
            if (found) some[field] = *found;
        }
        return some;
    }

    const std::shared_ptr<ServedModel> model_;
    const Shown shown_;
    const std::vector<Json> settings_;
    const std::vector<std::string> prompts_;
    std::vector<int> slots_;  // of each answer
};

LlamaWriter::Shown shown_of(const Fields& fields) {
    LlamaWriter::Shown shown;
    shown.tokens = fields.flag("return_tokens").value_or(false);
    shown.after_sampling = fields.flag("post_sampling_probs").value_or(false);
    for (std::string_view name : {"n_probs", "logprobs", "top_logprobs"})
        if (const Json* count = fields.any(name))
            shown.probabilities = shown.probabilities || (count->is_number() && *count > 0) || *count == true;
    if (const Json* names = fields.list("response_fields"))
        for (const Json& name : *names) {
            if (!name.is_string()) fields.wrong("response_fields", "a list of texts");
            shown.fields.push_back(name.get<std::string>());
        }
    return shown;
}

HttpResponse complete(Service& service, const HttpRequest& http, const Json& body,
                      std::shared_ptr<ServedModel> model, std::vector<std::vector<std::int32_t>> prompts) {
    const Fields fields(body);
    service.check_request(body);
    Task task;
    task.options.streams = fields.flag("stream").value_or(false);
    task.options.choices = choices_in(fields, {"n", "n_cmpl"});
    task.options.wanted_slot = wanted_slot(fields);
    task.options.names["session_id"] = session_field(fields);
    check_limits(fields);
    Request request{.parameters = engine_parameters(body, kLlamaFields)};
    bound_sampling(request.parameters);
    request.parameters.set("chat", false);
    read_session(fields, request.parameters);
    std::vector<Json> settings;
    std::vector<std::string> texts;
    for (std::vector<std::int32_t>& tokens : prompts) {
        request.tokens = std::move(tokens);
        for (Request& choice : choices_of(*model, request, task.options)) {
            texts.push_back(model->engine().detokenize(choice.tokens));
            try {
                settings.push_back(settings_json(*model, choice.parameters, task.options.streams));
            } catch (const Exception& error) {
                throw model->error_of(error);
            }
            task.requests.push_back(std::move(choice));
        }
    }
    auto writer =
        std::make_unique<LlamaWriter>(model, shown_of(fields), std::move(settings), std::move(texts));
    return answer(model, http, std::move(task), std::move(writer));
}

/// What other files of the project hold, before the gap.
std::vector<std::int32_t> extra_tokens(ServedModel& model, const Fields& fields) {
    const ModelInfo& info = model.info();
    const bool has_marks = info.fill_repository >= 0 && info.fill_separator >= 0;
    std::vector<std::int32_t> tokens;
    const auto add = [&](const std::string& text) {
        const auto more = model.engine().tokenize(text, false, false);
        tokens.insert(tokens.end(), more.begin(), more.end());
    };
    const Json* extra = fields.list("input_extra");
    if (has_marks) {
        tokens.push_back(info.fill_repository);
        add("myproject\n");
    }
    for (std::size_t i = 0; extra && i < extra->size(); ++i) {
        const Fields chunk((*extra)[i], fmt::format("input_extra[{}]", i));
        const std::string text = chunk.required_text("text");
        if (!has_marks) {
            add("\n\n--- snippet ---\n\n");
            add(text);
            continue;
        }
        tokens.push_back(info.fill_separator);
        add(chunk.text("filename").value_or("tmp") + "\n");
        add(text);
    }
    if (has_marks) {
        tokens.push_back(info.fill_separator);
        add("filename\n");
    }
    return tokens;
}

}  // namespace

HttpResponse completion(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const auto model = service.model_for(http, body);
    return complete(service, http, body, model,
                    prompts_of(*model, Fields(body).required("prompt"), "prompt"));
}

HttpResponse infill(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const Fields fields(body);
    const auto model = service.model_for(http, body);
    const ModelInfo& info = model->info();
    if (!can_fill_middle(info))
        throw not_offered(
            "Infill is not supported by this model: its vocabulary has no tokens for a prefix, a "
            "suffix and a middle");
    const auto read = [&](std::string_view key) {
        return model->engine().tokenize(fields.text(key).value_or(""), false, false);
    };
    if (!fields.any("input_prefix")) throw wrong_field("input_prefix", "is missing");
    if (!fields.any("input_suffix")) throw wrong_field("input_suffix", "is missing");
    std::vector<std::int32_t> prefix = read("input_prefix"), suffix = read("input_suffix"), line;
    if (const Json* prompt = fields.any("prompt"))
        line = prompts_of(*model, *prompt, "prompt", false).front();
    // What is nearest to the gap stays: three quarters of the room before it, the rest behind it.
    const auto room = static_cast<std::size_t>(info.request_tokens) / 2;
    if (prefix.size() > room / 4 * 3)
        prefix.erase(prefix.begin(), prefix.end() - static_cast<std::ptrdiff_t>(room / 4 * 3));
    if (suffix.size() > room / 4) suffix.resize(room / 4);
    prefix.insert(prefix.end(), line.begin(), line.end());  // of the line that the gap is in
    std::vector<std::int32_t> extra = extra_tokens(*model, fields);
    const std::size_t left = static_cast<std::size_t>(info.request_tokens) / 4;
    if (extra.size() > left) extra.erase(extra.begin(), extra.end() - static_cast<std::ptrdiff_t>(left));
    const Gap gap{std::move(extra), std::move(prefix), std::move(suffix)};
    return complete(service, http, body, model, {gap_tokens(*model, gap, model->given().suffix_first)});
}

}  // namespace headrace::serve
