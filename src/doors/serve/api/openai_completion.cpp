#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "doors/serve/api/openai.h"
#include "doors/serve/api/openai_writer.h"
#include "doors/serve/request/sampling_fields.h"

namespace headrace::serve {
namespace {

const std::set<std::string_view> kCompletionFields = {
    "prompt",     "model",   "stream",   "stream_options", "n",           "logprobs",
    "echo",       "best_of", "suffix",   "user",           "id_slot",     "session",
    "session_id", "verbose", "messages", "tools",          "tool_choice", "previous_messages"};

constexpr std::int64_t kMostLikeliest = 5;  // of each token

/// OpenAI's older shape: lists beside each other.
Json no_logprobs() {
    return {{"tokens", Json::array()},
            {"token_logprobs", Json::array()},
            {"top_logprobs", Json::array()},
            {"text_offset", Json::array()}};
}

void add_logprobs(Json& shape, const Json& entries, std::size_t& offset) {
    for (const Json& entry : entries) {
        const auto& text = entry["token"].get_ref<const std::string&>();
        shape["tokens"].push_back(text);
        shape["token_logprobs"].push_back(entry["logprob"]);
        Json top = Json::object();
        for (const Json& other : entry["top_logprobs"])
            top[other["token"].get_ref<const std::string&>()] = other["logprob"];
        top[text] = entry["logprob"];
        shape["top_logprobs"].push_back(std::move(top));
        shape["text_offset"].push_back(offset);
        offset += text.size();
    }
}

/// The first token has no probability, as no text is before it.
void add_prompt_logprobs(Json& shape, ServedModel& model, const Reply& reply, std::size_t most) {
    if (reply.prompt.empty()) return;
    std::size_t offset = 0;
    std::string first = model.engine().detokenize({reply.prompt.front()});
    shape["text_offset"].push_back(offset);
    offset += first.size();
    shape["tokens"].push_back(std::move(first));
    shape["token_logprobs"].push_back(nullptr);
    shape["top_logprobs"].push_back(nullptr);
    add_logprobs(shape,
                 probabilities_of(model, {reply.prompt.begin() + 1, reply.prompt.end()},
                                  reply.prompt_probabilities, reply.prompt_token_probabilities, most),
                 offset);
}

/// entries: those of an answer's tokens. llama-server's shape is there, too, whose clients read it here.
Json answer_logprobs(Json shape, Json entries, std::size_t& offset) {
    add_logprobs(shape, entries, offset);
    shape["content"] = std::move(entries);
    return shape;
}

double mean_logprob(const Reply& reply) {
    double sum = 0;
    for (const float probability : reply.token_probabilities) sum += std::log(std::max(probability, 1e-30f));
    return sum / std::max<double>(1, static_cast<double>(reply.token_probabilities.size()));
}

/// `n` and `best_of`: how many answers a prompt gets, of which the best n are shown.
struct Candidates {
    int made, shown;
};
Candidates candidates_in(const Fields& fields) {
    const int shown = choices_in(fields, {"n"});
    const auto made = fields.integer("best_of", 1, kMostChoices);
    if (!made) return {shown, shown};
    if (*made < shown)
        throw wrong_field("best_of", fmt::format("is {}; it must be at least n, {}", *made, shown));
    if (*made > shown && fields.flag("stream").value_or(false))
        throw wrong_field("best_of", "needs whole answers to choose from: it must be n in a stream");
    return {static_cast<int>(*made), shown};
}

class CompletionWriter : public OpenAiWriter {
public:
    /// shown: of the choices of a prompt, the best ones that the answer has.
    CompletionWriter(std::shared_ptr<ServedModel> model, AnswerOptions options, int shown,
                     std::vector<std::string> echoes)
        : OpenAiWriter(std::move(model), options, "text_completion", "cmpl-"),
          shown_(static_cast<std::size_t>(shown)),
          echoes_(std::move(echoes)),
          offsets_(echoes_.size()) {}

    Json whole(const std::vector<Reply>& replies) override {
        Json choices = Json::array();
        for (const std::size_t i : best_of(replies)) {
            const Reply& reply = replies[i];
            Json probabilities;
            std::size_t offset = echoes_[i].size();
            if (options_.shows_probabilities) {
                Json before = no_logprobs();
                const bool echoes = !echoes_[i].empty();
                if (echoes) add_prompt_logprobs(before, *model_, reply, options_.likeliest);
                probabilities = answer_logprobs(
                    std::move(before),
                    // Evaluation harnesses count on the token that ends an answer.
                    probabilities_of(*model_, echoes ? reply.tokens : text_tokens(reply), reply.probabilities,
                                     reply.token_probabilities, options_.likeliest),
                    offset);
            }
            choices.push_back({{"text", echoes_[i] + reply.text},
                               {"index", choices.size()},
                               {"logprobs", std::move(probabilities)},
                               {"finish_reason", finish_reason(reply)}});
        }
        Json body = envelope(std::move(choices));
        add_counts(body, replies);
        add_warnings(body, *model_, replies.front());
        return body;
    }

    std::string begin() override {
        std::string text;
        for (std::size_t i = 0; i < echoes_.size(); ++i)
            if (!echoes_[i].empty()) text += chunk(i, echoes_[i], nullptr, nullptr);
        return text;
    }
    std::string part(std::size_t choice, const MessagePart& part) override {
        if (part.content.empty()) return {};
        Json probabilities;
        if (options_.shows_probabilities)
            probabilities =
                answer_logprobs(no_logprobs(),
                                probabilities_of(*model_, part.piece.new_tokens, part.piece.probabilities,
                                                 part.piece.token_probabilities, options_.likeliest),
                                offsets_[choice]);
        return chunk(choice, part.content, nullptr, std::move(probabilities));
    }
    std::string end(std::size_t choice, const Reply& reply) override {
        Json body = chunk_of(choice, "", finish_reason(reply), nullptr);
        if (!options_.includes_usage) body["timings"] = timings_of(reply);
        add_warnings(body, *model_, reply);
        return event_of(body);
    }

private:
    /// The places of the choices that are shown.
    std::vector<std::size_t> best_of(const std::vector<Reply>& replies) const {
        const auto made = static_cast<std::size_t>(options_.choices);
        std::vector<std::size_t> places(replies.size()), best;
        std::iota(places.begin(), places.end(), std::size_t{0});
        if (made == shown_) return places;
        for (std::size_t first = 0; first < places.size(); first += made) {
            const auto begin = places.begin() + static_cast<std::ptrdiff_t>(first);
            std::stable_sort(begin, begin + static_cast<std::ptrdiff_t>(made),
                             [&](std::size_t a, std::size_t b) {
                                 return mean_logprob(replies[a]) > mean_logprob(replies[b]);
                             });
            best.insert(best.end(), begin, begin + static_cast<std::ptrdiff_t>(shown_));
        }
        return best;
    }

    Json chunk_of(std::size_t choice, std::string_view text, Json reason, Json probabilities) const {
        return envelope(Json::array({{{"text", text},
                                      {"index", choice},
                                      {"logprobs", std::move(probabilities)},
                                      {"finish_reason", std::move(reason)}}}));
    }

    std::string chunk(std::size_t choice, std::string_view text, Json reason, Json probabilities) const {
        return event_of(chunk_of(choice, text, std::move(reason), std::move(probabilities)));
    }

    const std::size_t shown_;
    const std::vector<std::string> echoes_;  // of each choice
    std::vector<std::size_t> offsets_;
};

}  // namespace

HttpResponse openai_completion(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const Fields fields(body);
    const auto model = service.model_for(http, body);
    service.check_request(body);
    check_openai_fields(fields);
    check_limits(fields);
    if (const auto suffix = fields.text("suffix"); suffix && !suffix->empty())
        throw wrong_field("suffix", "is not taken here; /infill fills in the middle");
    Task task;
    task.options.streams = fields.flag("stream").value_or(false);
    task.options.includes_usage = includes_usage(fields);
    const Candidates candidates = candidates_in(fields);
    task.options.choices = candidates.made;
    task.options.wanted_slot = wanted_slot(fields);
    Request request{.parameters = engine_parameters(body, kCompletionFields)};
    bound_seed(request.parameters);
    task.options.names["session_id"] = session_field(fields);
    read_session(fields, request.parameters);
    if (const Json* wanted = fields.any("logprobs"); wanted && *wanted != false) {
        task.options.shows_probabilities = true;
        if (!wanted->is_number() && !wanted->is_boolean()) fields.wrong("logprobs", "an integer or true");
        const std::int64_t count = wanted->is_number() ? *fields.integer("logprobs", 0, kMostLikeliest) : 1;
        task.options.likeliest = static_cast<std::size_t>(count);
        request.parameters.set("n_probs", std::max<std::int64_t>(1, count));
    }
    if (candidates.made > candidates.shown && !request.parameters.find("n_probs"))
        request.parameters.set("n_probs", 1);
    add_api_defaults(*model, request.parameters);
    request.parameters.set("chat", false);  // no message, whatever it looks like
    const bool echoes = fields.flag("echo").value_or(false);
    if (echoes && task.options.shows_probabilities) {
        if (task.options.streams)
            throw wrong_field("logprobs",
                              "with 'echo' are those of the prompt, too, which streams have not; leave out "
                              "'stream' or 'echo'");
        request.parameters.set("prompt_probs", true);
    }
    std::vector<std::string> echo;
    for (auto& tokens : prompts_of(*model, fields.required("prompt"), "prompt")) {
        request.tokens = std::move(tokens);
        for (Request& choice : choices_of(*model, request, task.options)) {
            echo.push_back(echoes ? model->engine().detokenize(choice.tokens) : "");
            task.requests.push_back(std::move(choice));
        }
    }
    auto writer = std::make_unique<CompletionWriter>(model, task.options, candidates.shown, std::move(echo));
    return answer(model, http, std::move(task), std::move(writer));
}

}  // namespace headrace::serve
