#include "doors/wasi_nn/conversation_context.h"

#include "doors/wasi_nn/caught.h"

namespace headrace::wasi_nn {
namespace {

constexpr std::string_view kReadParameters = "what the parameters are read as";

/// JSON texts: input 1 of a context, and what one request puts over it.
struct ParameterTexts {
    std::string_view context, request;
};

/// Bytes of parameters as text and, at most, as what is read of them: each value of a list or an object takes
/// up to 128.
std::size_t parameter_bytes(std::string_view json) {
    std::size_t values = 0;
    bool is_in_text = false;
    for (std::size_t i = 0; i < json.size(); ++i) {
        if (json[i] == '"') is_in_text = !is_in_text;
        if (is_in_text && json[i] == '\\') ++i;
        if (!is_in_text) values += json[i] == ',' || json[i] == '[' || json[i] == '{';
    }
    return json.size() + 128 * values;
}

/// Whether a request has a parameter, which is a truth value.
bool is_set(const Generation& generation, std::string_view name) {
    return std::get<bool>(*generation.parameters().find(name));
}

/// Runs a prompt, or reads a text of a model that gives vectors.
Result<Answer> answer(HostedConversation& conversation, std::string_view prompt,
                      const ParameterTexts& texts) {
    return caught([&] {
        const GivenParameters context = GivenParameters::from_json(texts.context),
                              request = GivenParameters::from_json(texts.request);
        if (conversation.gives_vectors()) {
            const Embeddings made = conversation.embed(prompt, context, request);
            return Answer{vectors_json(made), vectors_metadata_json(made)};
        }
        Generation generation = conversation.start(prompt, context, request, false);
        const Reply reply = generation.end();
        generation.check();
        return Answer{reply.text, metadata_json(reply, is_set(generation, "return_tokens"))};
    });
}

Error no_prompt() { return failure(Code::invalid_state, "input 0, the prompt, was not set"); }

}  // namespace

/// Keeps an answer, which outputs 0 and 1 give, and drops the error of an earlier call.
void ConversationContext::keep(Answer made) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(made);
    error_.reset();
    note_held();
}

/// Counts the texts that are kept; under mutex_.
void ConversationContext::note_held() {
    const std::size_t of_answer = answer_ ? answer_->text.size() + answer_->metadata.size() : 0;
    conversation_.note_held(prompt_.size() + parameter_bytes_ + of_answer);
}

/// Counts texts before they are kept or read; under mutex_.
Status ConversationContext::hold(std::size_t bytes, std::string_view what) {
    HR_TRY(caught([&] {
        conversation_.hold(bytes, what);
        return std::monostate();
    }));
    return success();
}

/// Counts what a request alone has besides, until the texts that are kept are counted again.
Status ConversationContext::hold_request(std::string_view prompt, std::string_view parameters) {
    const std::lock_guard lock(mutex_);
    return hold(prompt_.size() + parameter_bytes_ + prompt.size() + parameter_bytes(parameters),
                kReadParameters);
}

/// Keeps an error for output 1.
template <class T>
Result<T> ConversationContext::noting_error(Result<T> result) {
    if (result.ok()) return result;
    const std::lock_guard lock(mutex_);
    error_ = result.error();
    return result;
}

// Inputs and outputs.

Status ConversationContext::set_input(std::uint32_t index, const GuestTensor& tensor) {
    if (index > 1) return invalid("there is no input {}: 0 is the prompt, 1 parameters as JSON", index);
    const std::lock_guard lock(mutex_);
    const std::string_view text = tensor.text();
    std::string& input = index == 0 ? prompt_ : parameters_;
    const std::size_t parameters = index == 0 ? parameter_bytes_ : parameter_bytes(text);
    const std::size_t prompt = index == 0 ? text.size() : prompt_.size();
    HR_TRY(hold(prompt + parameters, index == 0 ? "the prompt" : kReadParameters));
    input = text;
    parameter_bytes_ = parameters;
    if (index == 0) {
        has_prompt_ = true;
        ++prompt_number_;
    }
    answer_.reset();
    error_.reset();
    earlier_request_ = conversation_.latest_request();
    return success();
}

Result<ContextInfo> ConversationContext::info() {
    return caught([&] { return ContextInfo{.gives_vectors = conversation_.gives_vectors()}; });
}

Result<int> ConversationContext::read_output(std::uint32_t index, const OutputReader& read) {
    if (index == kDescription) {
        HR_ASSIGN(const ContextInfo told, info());
        return read(model_description_json(told.gives_vectors), OutputForm::json);
    }
    const std::lock_guard lock(mutex_);
    if (index == 1 && error_) return read(error_json(*error_), OutputForm::json);
    if (index == 1 && !piece_metadata_.empty()) return read(piece_metadata_, OutputForm::json);
    if (!answer_) return failure(Code::invalid_state, "nothing was computed since the last input");
    if (index > 1) return invalid("there is no output {}: 0 is the answer, 1 its metadata as JSON", index);
    return index == 0 ? read(answer_->text, OutputForm::text) : read(answer_->metadata, OutputForm::json);
}

// Whole answers.

Status ConversationContext::compute() {
    HR_ASSIGN(Answer made, noting_error(answer_inputs()));
    keep(std::move(made));
    return success();
}

Result<std::string> ConversationContext::run(std::string_view prompt, std::string_view parameters) {
    HR_TRY(set_input(0, text_tensor(prompt)));
    HR_TRY(noting_error(hold_request({}, parameters)));
    std::string own;
    {
        const std::lock_guard lock(mutex_);
        own = parameters_;
    }
    HR_ASSIGN(Answer made,
              noting_error(answer(conversation_, prompt, {.context = own, .request = parameters})));
    std::string text = made.text;
    keep(std::move(made));
    return text;
}

Result<Answer> ConversationContext::infer(std::string_view prompt, std::string_view parameters) {
    HR_TRY(hold_request(prompt, parameters));
    Result<Answer> made = answer(conversation_, prompt, {.context = {}, .request = parameters});
    const std::lock_guard lock(mutex_);
    note_held();
    return made;
}

Result<Answer> ConversationContext::answer_inputs() {
    std::string prompt, parameters;
    {
        const std::lock_guard lock(mutex_);
        answer_.reset();
        if (!has_prompt_) return no_prompt();
        prompt = prompt_;
        parameters = parameters_;
    }
    return answer(conversation_, prompt, {.context = parameters, .request = {}});
}

// Answers piece by piece.

Status ConversationContext::start_pieces() {
    std::string prompt, parameters;
    {
        const std::lock_guard lock(mutex_);
        if (!has_prompt_) return no_prompt();
        prompt = prompt_;
        parameters = parameters_;
        pieces_prompt_number_ = prompt_number_;
    }
    first_piece_.reset();
    return caught([&] {
        by_pieces_ = conversation_.start(prompt, GivenParameters::from_json(parameters), {}, true);
        tells_speed_ = is_set(*by_pieces_, "timings_per_token");
        return std::monostate();
    });
}

Result<std::optional<std::string>> ConversationContext::compute_piece() {
    const std::lock_guard turn(pieces_);
    if (!by_pieces_) HR_TRY(noting_error(start_pieces()));
    Result<std::optional<Piece>> next = std::optional<Piece>();
    do next = caught([&] { return by_pieces_->next(); });
    while (next.ok() && next.value() && next.value()->progress);
    if (next.ok() && next.value()) {
        const Piece& piece = *next.value();
        const PieceTime now{std::chrono::steady_clock::now(), piece.tokens};
        if (!first_piece_) first_piece_ = now;
        const std::lock_guard lock(mutex_);
        if (tells_speed_) piece_metadata_ = piece_metadata_json(*first_piece_, now);
        piece_ = piece.text;
        error_.reset();
        return std::optional(piece.text);
    }
    HR_TRY(noting_error(finish_pieces()));
    return std::optional<std::string>();
}

Result<std::string> ConversationContext::last_piece() {
    const std::lock_guard lock(mutex_);
    return piece_;
}

Status ConversationContext::end_pieces() {
    cancel();  // whoever waits for a piece gets the end
    const std::lock_guard turn(pieces_);
    if (by_pieces_) static_cast<void>(finish_pieces());  // it failed, as it was cancelled
    return success();
}

/// Keeps what there is, and says how the request ended. The prompt is used up then: the next call needs a new
/// one, which may be there already.
Status ConversationContext::finish_pieces() {
    Generation generation = std::move(*by_pieces_);
    by_pieces_.reset();
    generation.cancel();
    const Reply reply = generation.end();
    const std::lock_guard lock(mutex_);
    if (prompt_number_ == pieces_prompt_number_) has_prompt_ = false;
    answer_ = {reply.text, metadata_json(reply, is_set(generation, "return_tokens"))};
    note_held();
    error_.reset();
    piece_.clear();
    piece_metadata_.clear();
    return caught([&] {
        generation.check();
        return std::monostate();
    });
}

Context::Origin ConversationContext::origin() {
    const std::lock_guard lock(mutex_);
    const std::uint64_t latest = conversation_.latest_request();
    return {conversation_.label(), latest == earlier_request_ ? 0 : latest};
}

}  // namespace headrace::wasi_nn
